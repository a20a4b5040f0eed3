//! What programs that read may fetch, in the form that llmstxt.org describes.

use api::routes::{DESCRIPTION, DOCS, MARKDOWN};
use utoipa::openapi::OpenApi;

use super::parts::operations;

/// Renders the list.
pub(crate) fn index(openapi: &OpenApi) -> String {
    let info = &openapi.info;
    let guide = info.description.as_deref().unwrap_or_default();
    let introduction = guide.split("\n\n").next().unwrap_or_default().replace('\n', " ");
    let operations = operations(openapi).map(|(path, get)| {
        let summary = get.summary.as_deref().unwrap_or_default();
        let anchor = summary.to_ascii_lowercase().replace(' ', "-");
        format!("- [{summary}]({MARKDOWN}#{anchor}): `GET {path}`\n")
    });
    let operations: String = operations.collect();
    format!(
        "# {}\n\n> {introduction}\n\nAll paths are on the host that serves this text. Requests need an API key in \
         `Authorization: Bearer`, except for the documents below.\n\n## Docs\n\n- [Guide and reference]({MARKDOWN}): the \
         guide, and every operation, event and record, as Markdown\n- [OpenAPI 3.1 description]({}): the same for \
         generators of clients\n- [Docs page]({DOCS}): the same for people, who can send calls on it\n\n## \
         Operations\n\n{operations}",
        info.title, DESCRIPTION.path,
    )
}
