//! Renders the section of an event: the fields of its data, and an example of a delivery's body.

use maud::{Markup, html};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, RefOr};

use super::elements::{code_block, slug};
use super::{example, operation, record};
use crate::document::JSON;

/// Renders the headers that every delivery carries, with the examples of one event.
pub(super) fn headers(components: &Components, name: &str, delivery: &Operation) -> Markup {
    html! {
        h3 { "Headers of each delivery (example: " code { (name) } ")" }
        (operation::parameter_table(&operation::parameters(components, delivery)))
    }
}

pub(super) fn render(components: &Components, name: &str, delivery: &Operation) -> Markup {
    html! {
        section.operation id=(anchor(name)) {
            h3 { code { (name) } }
            p { (delivery.summary.as_deref().unwrap_or_default()) }
            @if let Some(content) = body(delivery) { (data_and_body(components, content)) }
        }
    }
}

fn data_and_body(components: &Components, content: &Content) -> Markup {
    let schema = content.schema.as_ref();
    let envelope = schema.and_then(|schema| record::object(components, schema));
    let data = envelope.and_then(|envelope| record::object(components, envelope.properties.get("data")?));
    html! {
        h4 { "Data" }
        (record::fields(&data.into_iter().collect::<Vec<_>>()))
        h4 { "Body" }
        @if let Some(value) = &content.example { (code_block(&example::pretty(components, schema, value))) }
    }
}

/// Returns the anchor of an event's section.
pub(super) fn anchor(event: &str) -> String {
    format!("event-{}", slug(event))
}

fn body(delivery: &Operation) -> Option<&Content> {
    let Some(RefOr::T(body)) = &delivery.request_body else { return None };
    match body.content.get(JSON)? {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}
