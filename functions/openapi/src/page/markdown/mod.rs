//! The page as Markdown, for programs that read: the guide, and every operation, event and record, from the same
//! document.

mod kind;
mod operation;
mod record;
mod table;
mod webhook;

use utoipa::openapi::{Components, OpenApi};

use super::parts::{operations, webhooks};

/// Renders the whole page.
pub(crate) fn render(openapi: &OpenApi) -> String {
    let (info, none) = (&openapi.info, Components::default());
    let components = openapi.components.as_ref().unwrap_or(&none);
    let guide = info.description.as_deref().unwrap_or_default();
    let mut text = format!("# {}\n\nVersion {}. OpenAPI description: `/v1/openapi.json`\n\n", info.title, info.version);
    text.push_str(guide);
    text.push_str("\n\n## Operations\n");
    operations(openapi).for_each(|(path, get)| text.push_str(&operation::section(components, path, get)));
    text.push_str("\n## Events\n");
    if let Some((name, delivery)) = webhooks(openapi).next() {
        text.push_str(&webhook::headers(components, name, delivery));
    }
    webhooks(openapi).for_each(|(name, delivery)| text.push_str(&webhook::section(components, name, delivery)));
    text.push_str("\n## Records\n");
    components.schemas.iter().for_each(|(name, schema)| text.push_str(&record::section(components, name, schema)));
    text
}

#[cfg(test)]
mod tests;
