//! The section of an event: the fields of its data, and an example of a delivery's body.

use utoipa::openapi::Components;
use utoipa::openapi::path::Operation;

use super::super::webhook::{body, data};
use super::super::{example, parameters};
use super::operation::parameter_table;
use super::record;
use super::table::block;

/// Returns the headers that every delivery carries, with the examples of one event.
pub(super) fn headers(components: &Components, name: &str, delivery: &Operation) -> String {
    let table = parameter_table(&parameters::all(components, delivery));
    format!("\nEach delivery has these headers, here those of `{name}`:\n\n{table}")
}

pub(super) fn section(components: &Components, name: &str, delivery: &Operation) -> String {
    let about = delivery.summary.as_deref().unwrap_or_default();
    let Some(content) = body(delivery) else { return format!("\n### {name}\n\n{about}\n") };
    let fields = record::fields(&data(components, content).into_iter().collect::<Vec<_>>());
    let example = content.example.as_ref();
    let example = example.map(|value| block("json", &example::pretty(components, content.schema.as_ref(), value)));
    format!("\n### {name}\n\n{about}\n\nFields of `data`:\n\n{fields}{}", example.unwrap_or_default())
}
