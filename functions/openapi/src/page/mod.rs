//! The docs page: one HTML document, rendered from the OpenAPI document. It has no script and loads nothing.

mod example;
mod html;
mod kind;
mod nav;
mod operation;
mod prose;
mod record;
mod webhook;

use utoipa::openapi::path::Operation;
use utoipa::openapi::{Components, OpenApi};

use crate::document::guide::{self, Section};
use html::Html;

/// Renders the whole page.
pub(crate) fn render(openapi: &OpenApi) -> String {
    let mut html = Html::default();
    html.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.raw("<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">");
    html.raw("<meta name=\"color-scheme\" content=\"light dark\">");
    html.leaf("title", &openapi.info.title);
    html.raw("<style>");
    html.raw(include_str!("style.css"));
    html.raw("</style></head><body><a class=\"skip\" href=\"#content\">Skip to the text</a>");
    html.element("header", &[], |html| {
        html.leaf("h1", &openapi.info.title);
        html.leaf("p", &format!("Version {}", openapi.info.version));
        html.raw("<p><a href=\"/v1/openapi.json\">OpenAPI description</a></p>");
    });
    nav::write(&mut html, openapi);
    html.element("main", &[("id", "content")], |html| body(html, openapi));
    html.raw("</body></html>\n");
    html.into_string()
}

fn body(html: &mut Html, openapi: &OpenApi) {
    let none = Components::default();
    let components = openapi.components.as_ref().unwrap_or(&none);
    for section in guide::of_calls() {
        chapter(html, &section);
    }
    html.raw("<h2 id=\"operations\">Operations</h2>");
    for (path, told) in operations(openapi) {
        operation::write(html, components, path, told);
    }
    chapter(html, &guide::of_webhooks());
    if let Some((name, delivery)) = webhooks(openapi).next() {
        webhook::write_headers(html, components, name, delivery);
    }
    for (name, delivery) in webhooks(openapi) {
        webhook::write(html, components, name, delivery);
    }
    html.raw("<h2 id=\"records\">Records</h2>");
    for (name, schema) in &components.schemas {
        record::write(html, components, name, schema);
    }
}

fn chapter(html: &mut Html, section: &Section) {
    html.element("h2", &[("id", &nav::anchor(section))], |html| html.text(section.title));
    prose::blocks(html, &section.markdown);
}

fn operations(openapi: &OpenApi) -> impl Iterator<Item = (&str, &Operation)> {
    openapi.paths.paths.iter().filter_map(|(path, item)| Some((path.as_str(), item.get.as_ref()?)))
}

fn webhooks(openapi: &OpenApi) -> impl Iterator<Item = (&str, &Operation)> {
    let items = openapi.webhooks.iter().flat_map(|webhooks| &webhooks.paths);
    items.filter_map(|(name, item)| Some((name.as_str(), item.post.as_ref()?)))
}

#[cfg(test)]
mod tests;
