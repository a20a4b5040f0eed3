//! The parameters of an operation, and the table that shows them.

use maud::{Markup, html};
use utoipa::openapi::path::{Operation, Parameter, ParameterIn};
use utoipa::openapi::{Components, RefOr, Required, Schema};

use super::{elements, kind, prose};

/// Returns an operation's parameters, with references resolved.
pub(super) fn all<'a>(components: &'a Components, operation: &'a Operation) -> Vec<&'a Parameter> {
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
pub(super) fn table(parameters: &[&Parameter]) -> Markup {
    let rows = html! {
        @for parameter in parameters {
            tr {
                td { code { (parameter.name) } }
                td {
                    (place(&parameter.parameter_in))
                    @if matches!(parameter.required, Required::True) { ", required" }
                }
                td { @if let Some(schema) = &parameter.schema { (kind::render(schema)) } }
                td { (prose::inline(parameter.description.as_deref().unwrap_or_default())) }
                td { code { (sample(parameter)) } }
            }
        }
    };
    elements::table(&["Name", "In", "Type", "Meaning", "Example"], &rows)
}

/// Returns where a parameter is sent, in the document's word for it.
pub(super) fn place(place: &ParameterIn) -> String {
    kind::plain(&serde_json::to_value(place).unwrap_or_default())
}

/// Returns the example of a parameter. It comes from the schema, because the library does not expose the parameter's
/// own example.
pub(super) fn sample(parameter: &Parameter) -> String {
    match &parameter.schema {
        Some(RefOr::T(Schema::Object(object))) => object.examples.first().map(kind::plain).unwrap_or_default(),
        _ => String::new(),
    }
}
