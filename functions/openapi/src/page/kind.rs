//! Describes in a few words which values a schema accepts.

use serde_json::Value;
use utoipa::Number;
use utoipa::openapi::schema::{ArrayItems, SchemaType};
use utoipa::openapi::{Object, Ref, RefOr, Schema, Type};

use super::html::{Html, slug};

/// Returns the anchor of a record's section.
pub(super) fn anchor(record: &str) -> String {
    format!("record-{}", slug(record))
}

/// Returns the name of the component that a reference points to.
pub(super) fn named(reference: &Ref) -> &str {
    reference.ref_location.rsplit('/').next().unwrap_or_default()
}

/// Writes the kind of value that a schema accepts. A record becomes a link to its section.
pub(super) fn write(html: &mut Html, schema: &RefOr<Schema>) {
    match schema {
        RefOr::Ref(reference) => html.jump(&anchor(named(reference)), named(reference)),
        RefOr::T(Schema::Array(array)) => {
            html.raw("array of ");
            if let ArrayItems::RefOrSchema(items) = &array.items {
                write(html, items);
            }
        }
        RefOr::T(Schema::Object(object)) => write_plain(html, object),
        RefOr::T(_) => html.raw("object"),
    }
}

fn write_plain(html: &mut Html, object: &Object) {
    html.text(&types(&object.schema_type));
    if let Some(format) = object.format.as_ref().and_then(|format| serde_json::to_value(format).ok()) {
        html.raw(" (");
        html.text(format.as_str().unwrap_or_default());
        html.raw(")");
    }
    if let (Some(low), high) = (&object.minimum, &object.maximum) {
        let high = high.as_ref().map_or_else(|| " or more".to_owned(), |high| format!(" to {}", number(high)));
        html.text(&format!(", {}{high}", number(low)));
    }
    if let Some(values) = &object.enum_values {
        for (at, value) in values.iter().enumerate() {
            html.raw(if at == 0 { ": " } else { ", " });
            html.leaf("code", &plain(value));
        }
    }
    if let Some(default) = &object.default {
        html.raw(", default ");
        html.leaf("code", &plain(default));
    }
    if let Some(pattern) = &object.pattern {
        html.raw(", ");
        html.leaf("code", pattern);
    }
}

/// Returns a value as it is written in a query: strings without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn types(kind: &SchemaType) -> String {
    let name = |kind: &Type| serde_json::to_value(kind).map(|name| plain(&name)).unwrap_or_default();
    match kind {
        SchemaType::Type(kind) => name(kind),
        SchemaType::Array(kinds) => kinds.iter().map(name).collect::<Vec<_>>().join(" or "),
        SchemaType::AnyValue => "any value".to_owned(),
    }
}

fn number(number: &Number) -> String {
    match number {
        Number::Int(number) => number.to_string(),
        Number::UInt(number) => number.to_string(),
        Number::Float(number) => number.to_string(),
    }
}
