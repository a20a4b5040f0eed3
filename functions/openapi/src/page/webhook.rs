//! Writes the section of an event: the fields of its data, and an example of a delivery's body.

use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, RefOr};

use super::html::{Html, slug};
use super::{example, operation, prose, record};
use crate::document::JSON;

/// Writes the headers that every delivery carries, with the examples of one event.
pub(super) fn write_headers(html: &mut Html, components: &Components, name: &str, delivery: &Operation) {
    html.element("h3", &[], |html| prose::inline(html, &format!("Headers of each delivery (example: `{name}`)")));
    operation::write_parameters(html, &operation::parameters(components, delivery));
}

pub(super) fn write(html: &mut Html, components: &Components, name: &str, delivery: &Operation) {
    html.element("section", &[("id", &anchor(name)), ("class", "operation")], |html| {
        html.element("h3", &[], |html| html.leaf("code", name));
        html.element("p", &[], |html| prose::inline(html, delivery.summary.as_deref().unwrap_or_default()));
        let Some(content) = body(delivery) else { return };
        let envelope = content.schema.as_ref().and_then(|schema| record::object(components, schema));
        let data = envelope.and_then(|envelope| record::object(components, envelope.properties.get("data")?));
        html.raw("<h4>Data</h4>");
        record::fields(html, &data.into_iter().collect::<Vec<_>>());
        html.raw("<h4>Body</h4>");
        if let Some(value) = &content.example {
            html.code(&example::pretty(components, content.schema.as_ref(), value));
        }
    });
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
