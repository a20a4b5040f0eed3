//! The docs page: one HTML document, rendered from the OpenAPI document. It loads nothing, and shows the same without
//! its script.
//!
//! `html!` escapes all values, and `prose` shows raw HTML as text. So markup comes only from this program.

mod assets;
mod call;
mod elements;
mod example;
mod form;
mod kind;
mod llms;
pub(crate) mod markdown;
mod nav;
mod operation;
mod parameters;
mod parts;
mod policy;
mod prose;
mod record;
mod samples;
mod webhook;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use utoipa::openapi::{Components, OpenApi};

use api::routes::{DESCRIPTION, LLMS, MARKDOWN};

use crate::document::guide::{self, Section};

use assets::{ICON, SCRIPT, STYLE};
pub(crate) use llms::index;
use parts::{operations, webhooks};
pub(crate) use policy::headers;

/// Renders the whole page.
pub(crate) fn render(openapi: &OpenApi) -> String {
    let info = &openapi.info;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href=(ICON);
                title { (info.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the text" }
                header {
                    h1 { (info.title) }
                    p { "Version " (info.version) }
                    p { a href=(DESCRIPTION.path) { "OpenAPI description" } }
                    p { a href=(MARKDOWN) { "As Markdown" } }
                    p { a href=(LLMS) { "llms.txt" } }
                    (tools())
                }
                (nav::render(openapi))
                main #content { (content(openapi)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// Renders what needs the script. The script shows it.
fn tools() -> Markup {
    html! {
        div.tools role="search" hidden {
            input #search type="search" aria-label="Search" placeholder="Search ( / )" autocomplete="off";
            p #found role="status" {}
            button #theme type="button" aria-pressed="false" { "Dark" }
        }
    }
}

fn content(openapi: &OpenApi) -> Markup {
    let none = Components::default();
    let components = openapi.components.as_ref().unwrap_or(&none);
    html! {
        @for section in guide::of_calls() { (chapter(&section)) }
        h2 #operations { "Operations" }
        @for (path, operation) in operations(openapi) { (operation::render(components, path, operation)) }
        (chapter(&guide::of_webhooks()))
        @if let Some((name, delivery)) = webhooks(openapi).next() {
            (webhook::headers(components, name, delivery))
        }
        @for (name, delivery) in webhooks(openapi) { (webhook::render(components, name, delivery)) }
        h2 #records { "Records" }
        @for (name, schema) in &components.schemas { (record::render(components, name, schema)) }
    }
}

fn chapter(section: &Section) -> Markup {
    html! {
        section.chapter id=(nav::anchor(section)) {
            h2 { (section.title) }
            (prose::blocks(&section.markdown))
        }
    }
}

#[cfg(test)]
mod tests;
