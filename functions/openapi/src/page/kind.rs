//! Describes in a few words which values a schema accepts.

use maud::{Markup, html};
use serde_json::Value;
use utoipa::Number;
use utoipa::openapi::schema::{ArrayItems, SchemaType};
use utoipa::openapi::{Object, RefOr, Schema, Type};

use super::elements::{jump, slug};
pub(super) use crate::document::schema_set::named;

/// Returns the anchor of a record's section.
pub(super) fn anchor(record: &str) -> String {
    format!("record-{}", slug(record))
}

/// Renders the kind of value that a schema accepts. A record becomes a link to its section.
pub(super) fn render(schema: &RefOr<Schema>) -> Markup {
    match schema {
        RefOr::Ref(reference) => jump(&anchor(named(reference)), named(reference)),
        RefOr::T(Schema::Array(array)) => html! {
            "array of "
            @if let ArrayItems::RefOrSchema(items) = &array.items { (render(items)) }
        },
        RefOr::T(Schema::Object(object)) => plain_kind(object),
        RefOr::T(Schema::OneOf(choice)) => html! {
            @for (at, item) in choice.items.iter().enumerate() {
                @if at > 0 { " or " }
                (render(item))
            }
        },
        RefOr::T(_) => html! { "object" },
    }
}

fn plain_kind(object: &Object) -> Markup {
    let format = object.format.as_ref().and_then(|format| serde_json::to_value(format).ok());
    html! {
        (types(&object.schema_type))
        @if let Some(format) = &format { " (" (plain(format)) ")" }
        @if let Some(low) = &object.minimum {
            ", " (number(low))
            @if let Some(high) = &object.maximum { " to " (number(high)) } @else { " or more" }
        }
        @for (at, value) in object.enum_values.iter().flatten().enumerate() {
            @if at == 0 { ": " } @else { ", " }
            code { (plain(value)) }
        }
        @if let Some(default) = &object.default { ", default " code { (plain(default)) } }
        @if let Some(pattern) = &object.pattern { ", " code { (pattern) } }
    }
}

/// Returns a value as it is written in a query: strings without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

pub(super) fn types(kind: &SchemaType) -> String {
    let name = |kind: &Type| serde_json::to_value(kind).map(|name| plain(&name)).unwrap_or_default();
    match kind {
        SchemaType::Type(kind) => name(kind),
        SchemaType::Array(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
        SchemaType::AnyValue => "any value".to_owned(),
    }
}

pub(super) fn number(number: &Number) -> String {
    match number {
        Number::Int(number) => number.to_string(),
        Number::UInt(number) => number.to_string(),
        Number::Float(number) => number.to_string(),
    }
}
