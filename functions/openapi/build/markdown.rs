//! The docs page as Markdown, for programs that read, and the list of what they may fetch.

use yaml_serde::Value;

use super::document::{Chapter, Document, content, text};
use super::page::heading_anchor;
use super::samples::{Call, curl};
use super::tables;

/// Renders the page: the guide, and every operation, event and record.
pub(crate) fn render(document: &Document) -> String {
    let operations: String = document.operations().map(|(path, get)| section(document, path, get)).collect();
    let headers = document.deliveries().next().map(|(event, delivery)| {
        let table = tables::parameters(&document.parameters(delivery), &str::to_owned);
        format!("\nEach delivery has these headers, here those of `{event}`:\n\n{table}")
    });
    let events = document.deliveries().map(|(event, delivery)| {
        let (summary, data) = (text(delivery, "summary"), tables::data(document, delivery, &str::to_owned));
        let body = example(content(&delivery["requestBody"]));
        format!("\n### {event}\n\n{summary}\n\nFields of `data`:\n\n{data}{body}")
    });
    let records = document.records().map(|(name, schema)| {
        let about = Some(text(schema, "description")).filter(|about| !about.is_empty());
        let about = about.map(|about| format!("{about}\n\n")).unwrap_or_default();
        format!("\n### {name}\n\n{about}{}", tables::record(document, schema, &str::to_owned))
    });
    format!(
        "# {}\n\nVersion {}. OpenAPI description: `/v1/openapi.json`\n\n{}\n\n## Operations\n\n{}\nMost operations may also \
         respond with these:\n\n{}{operations}\n\
         ## Events\n{}{}\n## Records\n{}",
        document.title(),
        document.version(),
        document.guide(),
        tables::operations(document, &|operation| format!("#{}", heading_anchor(text(operation, "summary")))),
        tables::common_responses(document, &str::to_owned),
        headers.unwrap_or_default(),
        events.collect::<String>(),
        records.collect::<String>(),
    )
}

fn section(document: &Document, path: &str, operation: &Value) -> String {
    let parameters = document.parameters(operation);
    format!(
        "\n### {}\n\n`GET {path}`\n\n{}\n{}\n{}\n{}{}",
        text(operation, "summary"),
        text(operation, "description"),
        block("sh", &curl(&Call::new(path, operation, &parameters))),
        tables::parameters(&parameters, &str::to_owned),
        tables::responses(document, operation, &str::to_owned),
        // Examples of errors differ only in their codes, which the guide lists.
        example(content(&operation["responses"]["200"])),
    )
}

fn example(content: &Value) -> String {
    block("json", &serde_json::to_string_pretty(&content["example"]).unwrap_or_default())
}

fn block(language: &str, text: &str) -> String {
    format!("\n```{language}\n{text}\n```\n")
}

/// Renders the list of what programs may fetch, in the form that llmstxt.org describes.
pub(crate) fn index(document: &Document) -> String {
    let introduction = document.introduction().replace('\n', " ");
    let chapters = document.chapters().filter_map(|Chapter { title, text }| {
        let (first, _) = text.split_once(['.', ':'])?;
        Some(format!("- {}: {}\n", link(title), first.replace('\n', " ")))
    });
    let operations = document
        .operations()
        .map(|(path, operation)| format!("- {}: `GET {path}`\n", link(text(operation, "summary"))));
    format!(
        "# {}\n\n> {introduction}\n\nAll paths are on the host that serves this text. Requests need an API key in \
         `Authorization: Bearer`, except for the documents below.\n\n## Docs\n\n- [Guide and reference](/docs.md): the \
         guide, and every operation, event and record, as Markdown\n- [OpenAPI 3.1 description](/v1/openapi.json): the \
         same for generators of clients\n- [Docs page](/docs): the same for people, who can send calls on it\n\n## \
         Guide\n\n{}\n## Operations\n\n{}",
        document.title(),
        chapters.collect::<String>(),
        operations.collect::<String>(),
    )
}

/// Returns a link to a heading of the Markdown.
fn link(heading: &str) -> String {
    format!("[{heading}](/docs.md#{})", heading_anchor(heading))
}
