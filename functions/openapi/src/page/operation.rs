//! Renders the section of an operation: its request, its parameters and its responses.

use maud::{Markup, html};
use serde_json::Value;
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Components, Content, RefOr, Required, Response, Schema};

use super::elements::{code_block, table};
use super::{example, kind, prose};
use crate::document::{EVERY, JSON};

pub(super) fn render(components: &Components, path: &str, operation: &Operation) -> Markup {
    let parameters = parameters(components, operation);
    html! {
        section.operation id=(anchor(operation)) {
            h3 { (text(operation.summary.as_ref())) }
            p.route {
                span.method { "GET" }
                code { (path) }
            }
            (prose::blocks(text(operation.description.as_ref())))
            (code_block(&curl(path, operation, &parameters)))
            h4 { "Parameters" }
            (parameter_table(&parameters))
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

/// Returns an operation's parameters, with references resolved.
pub(super) fn parameters<'a>(components: &'a Components, operation: &'a Operation) -> Vec<&'a Parameter> {
    let follow = |parameter: &'a RefOr<Parameter>| match parameter {
        RefOr::T(parameter) => Some(parameter),
        RefOr::Ref(reference) => match components.parameters.get(kind::named(reference))? {
            RefOr::T(parameter) => Some(parameter),
            RefOr::Ref(_) => None,
        },
    };
    operation.parameters.iter().flatten().filter_map(follow).collect()
}

/// Renders a table of parameters.
pub(super) fn parameter_table(parameters: &[&Parameter]) -> Markup {
    let rows = html! {
        @for parameter in parameters {
            tr {
                td { code { (parameter.name) } }
                td {
                    (place(&parameter.parameter_in))
                    @if matches!(parameter.required, Required::True) { ", required" }
                }
                td { @if let Some(schema) = &parameter.schema { (kind::render(schema)) } }
                td { (prose::inline(text(parameter.description.as_ref()))) }
                td { code { (sample(parameter)) } }
            }
        }
    };
    table(&["Name", "In", "Type", "Meaning", "Example"], &rows)
}

/// Returns where a parameter is sent, in the document's word for it.
fn place(place: &ParameterIn) -> String {
    kind::plain(&serde_json::to_value(place).unwrap_or_default())
}

/// Returns a `curl` command for the operation, with its first query parameter as an example.
fn curl(path: &str, operation: &Operation, parameters: &[&Parameter]) -> String {
    let of = |place: ParameterIn| parameters.iter().filter(move |parameter| parameter.parameter_in == place);
    let template = path.to_owned();
    let path = of(ParameterIn::Path).fold(template, |path, p| path.replace(&format!("{{{}}}", p.name), &sample(p)));
    let query = of(ParameterIn::Query).next().map(|p| format!("?{}={}", p.name, sample(p))).unwrap_or_default();
    let needs_key = operation.security.as_ref().is_some_and(|security| !security.is_empty());
    let key = if needs_key { "-H \"Authorization: Bearer $API_KEY\" " } else { "" };
    format!("curl --compressed {key}\"$BASE_URL{path}{query}\"")
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
fn named_examples(content: &Content) -> Vec<(&str, &Value)> {
    let named = content.examples.iter().filter_map(|(name, example)| match example {
        RefOr::T(example) => Some((name.as_str(), example.value.as_ref()?)),
        RefOr::Ref(_) => None,
    });
    content.example.as_ref().map(|example| ("", example)).into_iter().chain(named).collect()
}

fn responses<'a>(components: &'a Components, operation: &'a Operation) -> Vec<(&'a str, &'a Response)> {
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

fn content(response: &Response) -> Option<&Content> {
    match response.content.get(JSON)? {
        RefOr::T(content) => Some(content),
        RefOr::Ref(_) => None,
    }
}

/// Returns the example of a parameter. It comes from the schema, because the library does not expose the parameter's
/// own example.
fn sample(parameter: &Parameter) -> String {
    match &parameter.schema {
        Some(RefOr::T(Schema::Object(object))) => object.examples.first().map(kind::plain).unwrap_or_default(),
        _ => String::new(),
    }
}

fn text(text: Option<&String>) -> &str {
    text.map_or("", String::as_str)
}
