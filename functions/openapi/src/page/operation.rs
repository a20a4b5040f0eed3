//! Renders the section of an operation: its request, its parameters and its responses.

use maud::{Markup, html};
use serde_json::Value;
use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, Content, RefOr, Response};

use super::call::Call;
use super::elements::{code_block, table};
use super::{example, form, kind, parameters, prose, samples};
use crate::document::{EVERY, JSON};

pub(super) fn render(components: &Components, path: &str, operation: &Operation) -> Markup {
    let parameters = parameters::all(components, operation);
    let call = Call::new(path, operation, &parameters);
    html! {
        section.operation id=(anchor(operation)) {
            h3 { (text(operation.summary.as_ref())) }
            p.route {
                span.method { "GET" }
                code { (path) }
            }
            (prose::blocks(text(operation.description.as_ref())))
            (samples::render(&call))
            h4 { "Parameters" }
            (parameters::table(&parameters))
            (form::render(path, &parameters, call.needs_key))
            h4 { "Responses" }
            (response_table(components, operation))
            (examples(components, operation))
        }
    }
}

/// Returns the anchor of an operation's section.
pub(super) fn anchor(operation: &Operation) -> String {
    format!("operation-{}", text(operation.operation_id.as_ref()))
}

fn response_table(components: &Components, operation: &Operation) -> Markup {
    let rows = html! {
        @for (status, response) in responses(components, operation) {
            tr {
                td { (status) }
                td { (prose::inline(&response.description)) }
                td {
                    @if let Some(schema) = content(response).and_then(|content| content.schema.as_ref()) {
                        (kind::render(schema))
                    }
                }
                td { (additional_headers(response)) }
            }
        }
    };
    table(&["Status", "Meaning", "Body", "Additional headers"], &rows)
}

fn additional_headers(response: &Response) -> String {
    let own = response.headers.keys().map(String::as_str).filter(|name| !EVERY.contains(name));
    own.collect::<Vec<_>>().join(", ")
}

fn examples(components: &Components, operation: &Operation) -> Markup {
    let responses = responses(components, operation).into_iter();
    let bodies = responses.filter_map(|(status, response)| Some((status, content(response)?)));
    html! {
        @for (status, content) in bodies {
            @for (name, value) in named_examples(content) {
                details open[status == "200"] {
                    summary { "Example of " (status) " " code { (name) } }
                    (code_block(&example::pretty(components, content.schema.as_ref(), value)))
                }
            }
        }
    }
}

/// Returns the examples of a body by name. The only example of a body has no name.
pub(super) fn named_examples(content: &Content) -> Vec<(&str, &Value)> {
    let named = content.examples.iter().filter_map(|(name, example)| match example {
        RefOr::T(example) => Some((name.as_str(), example.value.as_ref()?)),
        RefOr::Ref(_) => None,
    });
    content.example.as_ref().map(|example| ("", example)).into_iter().chain(named).collect()
}

pub(super) fn responses<'a>(components: &'a Components, operation: &'a Operation) -> Vec<(&'a str, &'a Response)> {
    let follow = |response: &'a RefOr<Response>| match response {
        RefOr::T(response) => Some(response),
        RefOr::Ref(reference) => match components.responses.get(kind::named(reference))? {
            RefOr::T(response) => Some(response),
            RefOr::Ref(_) => None,
        },
    };
    let all = operation.responses.responses.iter();
    all.filter_map(|(status, response)| Some((status.as_str(), follow(response)?))).collect()
}

pub(super) fn content(response: &Response) -> Option<&Content> {
    match response.content.get(JSON)? {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}

fn text(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
