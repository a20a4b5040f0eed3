//! Writes the section of an operation: its request, its parameters and its responses.

use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Components, Content, RefOr, Required, Response, Schema};

use super::html::Html;
use super::{example, kind, prose};
use crate::document::{EVERY, JSON};

pub(super) fn write(html: &mut Html, components: &Components, path: &str, operation: &Operation) {
    html.element("section", &[("id", &anchor(operation)), ("class", "operation")], |html| {
        html.leaf("h3", text(operation.summary.as_ref()));
        html.element("p", &[("class", "route")], |html| {
            html.element("span", &[("class", "method")], |html| html.raw("GET"));
            html.leaf("code", path);
        });
        html.element("p", &[], |html| prose::inline(html, text(operation.description.as_ref())));
        let parameters = parameters(components, operation);
        html.code(&curl(path, operation, &parameters));
        html.raw("<h4>Parameters</h4>");
        write_parameters(html, &parameters);
        html.raw("<h4>Responses</h4>");
        write_responses(html, components, operation);
        write_examples(html, components, operation);
    });
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

/// Writes a table of parameters.
pub(super) fn write_parameters(html: &mut Html, parameters: &[&Parameter]) {
    html.table(&["Name", "In", "Type", "Meaning", "Example"], |html| {
        for parameter in parameters {
            html.element("tr", &[], |html| {
                html.element("td", &[], |html| html.leaf("code", &parameter.name));
                let place = serde_json::to_value(&parameter.parameter_in).unwrap_or_default();
                let need = if matches!(parameter.required, Required::True) { ", required" } else { "" };
                html.leaf("td", &format!("{}{need}", kind::plain(&place)));
                html.element("td", &[], |html| {
                    if let Some(schema) = &parameter.schema {
                        kind::write(html, schema);
                    }
                });
                html.element("td", &[], |html| prose::inline(html, text(parameter.description.as_ref())));
                html.element("td", &[], |html| html.leaf("code", &sample(parameter)));
            });
        }
    });
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

fn write_responses(html: &mut Html, components: &Components, operation: &Operation) {
    html.table(&["Status", "Meaning", "Body", "Additional headers"], |html| {
        for (status, response) in responses(components, operation) {
            html.element("tr", &[], |html| {
                html.leaf("td", status);
                html.element("td", &[], |html| prose::inline(html, &response.description));
                html.element("td", &[], |html| {
                    if let Some(schema) = content(response).and_then(|content| content.schema.as_ref()) {
                        kind::write(html, schema);
                    }
                });
                let own = response.headers.keys().map(String::as_str).filter(|name| !EVERY.contains(name));
                html.leaf("td", &own.collect::<Vec<_>>().join(", "));
            });
        }
    });
}

fn write_examples(html: &mut Html, components: &Components, operation: &Operation) {
    for (status, response) in responses(components, operation) {
        let Some(content) = content(response) else { continue };
        let named = content.examples.iter().filter_map(|(name, example)| match example {
            RefOr::T(example) => Some((name.as_str(), example.value.as_ref()?)),
            RefOr::Ref(_) => None,
        });
        for (name, value) in content.example.as_ref().map(|example| ("", example)).into_iter().chain(named) {
            let open: &[_] = if status == "200" { &[("open", "")] } else { &[] };
            html.element("details", open, |html| {
                html.element("summary", &[], |html| {
                    html.text(&format!("Example of {status} "));
                    html.leaf("code", name);
                });
                html.code(&example::pretty(components, content.schema.as_ref(), value));
            });
        }
    }
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
