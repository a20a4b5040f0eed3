//! The docs page: one HTML document, rendered from the OpenAPI document. It has no script and loads nothing.
//!
//! `html!` escapes all values, and `prose` shows raw HTML as text. So markup comes only from this program.

mod elements;
mod example;
mod kind;
mod nav;
mod operation;
mod parts;
mod prose;
mod record;
mod webhook;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use utoipa::openapi::{Components, OpenApi};

use crate::document::guide::{self, Section};

use parts::{operations, webhooks};

const STYLE: &str = include_str!("style.css");

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
                title { (info.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the text" }
                header {
                    h1 { (info.title) }
                    p { "Version " (info.version) }
                    p { a href="/v1/openapi.json" { "OpenAPI description" } }
                }
                (nav::render(openapi))
                main #content { (content(openapi)) }
            }
        }
    };
    page.into_string()
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
        h2 id=(nav::anchor(section)) { (section.title) }
        (prose::blocks(&section.markdown))
    }
}

#[cfg(test)]
mod tests;
