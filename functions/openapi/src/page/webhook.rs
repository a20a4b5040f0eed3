//! Renders the section of an event: the fields of its data, and an example of a delivery's body.

use maud::{Markup, html};
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, Object, RefOr};

use super::elements::{code_block, slug};
use super::{example, parameters, record};
use crate::document::JSON;

/// Renders the headers that every delivery carries, with the examples of one event.
pub(super) fn headers(components: &Components, name: &str, delivery: &Operation) -> Markup {
    html! {
        h3 { "Headers of each delivery (example: " code { (name) } ")" }
        (parameters::table(&parameters::all(components, delivery)))
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
    html! {
        h4 { "Data" }
        (record::fields(&data(components, content).into_iter().collect::<Vec<_>>()))
        h4 { "Body" }
        @if let Some(value) = &content.example { (code_block(&example::pretty(components, schema, value))) }
    }
}

/// Returns the schema of an event's data, from that of a delivery's body.
pub(super) fn data<'a>(components: &'a Components, content: &'a Content) -> Option<&'a Object> {
    let envelope = record::object(components, content.schema.as_ref()?)?;
    record::object(components, envelope.properties.get("data")?)
}

/// Returns the anchor of an event's section.
pub(super) fn anchor(event: &str) -> String {
    format!("event-{}", slug(event))
}

pub(super) fn body(delivery: &Operation) -> Option<&Content> {
    let Some(RefOr::T(body)) = &delivery.request_body else { return None };
    match body.content.get(JSON)? {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}
