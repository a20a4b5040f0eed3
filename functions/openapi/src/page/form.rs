//! The form that makes a call from the page. It is hidden until the script shows it, because only the script can send
//! the key in a header.

use maud::{Markup, html};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Required, Schema};

use super::kind;
use super::parameters::sample;

pub(super) fn render(path: &str, parameters: &[&Parameter], needs_key: bool) -> Markup {
    let sent = parameters.iter().filter(|parameter| parameter.parameter_in != ParameterIn::Header);
    html! {
        form.call data-path=(path) hidden {
            h4 { "Try it" }
            div.fields {
                @for parameter in sent { label { (parameter.name) " " (field(parameter)) } }
                // A field of the type `password` would make browsers offer to store the key. The style hides the text
                // instead. Without a name, the key is in no form data; `autocomplete` keeps it out of stored sessions.
                @if needs_key {
                    label {
                        "API key, forgotten on reload "
                        input.key autocomplete="off" spellcheck="false" placeholder="sk_…";
                    }
                }
            }
            button { "Send" }
            p role="status" {}
            div.answer {}
        }
    }
}

fn field(parameter: &Parameter) -> Markup {
    let is_required = matches!(parameter.required, Required::True);
    let example = sample(parameter);
    html! {
        @if let Some(values) = choices(parameter) {
            select name=(parameter.name) {
                option value="" {}
                @for value in values { option { (value) } }
            }
        } @else if is_required {
            input name=(parameter.name) value=(example) required autocomplete="off";
        } @else {
            input name=(parameter.name) placeholder=(example) autocomplete="off";
        }
    }
}

/// Returns the values of a parameter that accepts only some.
fn choices(parameter: &Parameter) -> Option<Vec<String>> {
    match &parameter.schema {
        Some(RefOr::T(Schema::Object(object))) => Some(object.enum_values.as_ref()?.iter().map(kind::plain).collect()),
        _ => None,
    }
}
