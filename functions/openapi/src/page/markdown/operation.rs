//! The section of an operation: its request, its parameters and its responses.

use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::{Components, Required};

use super::super::call::Call;
use super::super::operation::{content, named_examples, responses};
use super::super::{example, parameters, samples};
use super::kind;
use super::table::{block, code, table};

pub(super) fn section(components: &Components, path: &str, operation: &Operation) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let parameters = parameters::all(components, operation);
    let call = Call::new(path, operation, &parameters);
    format!(
        "\n### {}\n\n`GET {path}`\n\n{}\n{}\n{}\n{}{}",
        text(&operation.summary),
        text(&operation.description),
        block("sh", &samples::curl(&call)),
        parameter_table(&parameters),
        response_table(components, operation),
        examples(components, operation),
    )
}

/// Returns a table of parameters.
pub(super) fn parameter_table(parameters: &[&Parameter]) -> String {
    let rows = parameters.iter().map(|parameter| {
        let place = parameters::place(&parameter.parameter_in);
        let required = if matches!(parameter.required, Required::True) { ", required" } else { "" };
        [
            code(&parameter.name),
            format!("{place}{required}"),
            parameter.schema.as_ref().map(kind::words).unwrap_or_default(),
            parameter.description.clone().unwrap_or_default(),
            code(&parameters::sample(parameter)),
        ]
    });
    table(["Parameter", "In", "Type", "Meaning", "Example"], rows)
}

fn response_table(components: &Components, operation: &Operation) -> String {
    let rows = responses(components, operation).into_iter().map(|(status, response)| {
        let schema = content(response).and_then(|content| content.schema.as_ref());
        let headers: Vec<&str> = response.headers.keys().map(String::as_str).collect();
        [
            status.to_owned(),
            response.description.clone(),
            schema.map(kind::words).unwrap_or_default(),
            headers.join(", "),
        ]
    });
    table(["Status", "Meaning", "Body", "Headers"], rows)
}

/// Returns the examples of a 200. Those of errors differ only in their codes, which the guide lists.
fn examples(components: &Components, operation: &Operation) -> String {
    let answered = responses(components, operation).into_iter().filter(|(status, _)| *status == "200");
    let bodies = answered.filter_map(|(_, response)| content(response));
    let shown = bodies.flat_map(|content| {
        let pretty = |value| example::pretty(components, content.schema.as_ref(), value);
        named_examples(content).into_iter().map(|(_, value)| block("json", &pretty(value))).collect::<Vec<_>>()
    });
    shown.collect()
}
