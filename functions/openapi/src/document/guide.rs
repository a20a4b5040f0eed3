//! What holds for every endpoint: the text of the document's `info.description`, and the sections of the docs page.

use std::fmt::Write;

use super::errors;

pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// The text in Markdown. The docs page shows raw HTML in it as text.
    pub(crate) markdown: String,
}

const INTRODUCTION: &str = "Read-only access to an item marketplace: its catalog, prices on other marketplaces, \
    active listings, and your account's own orders and balance. Signed webhooks report events on your account.";

/// Returns the sections for callers, in reading order.
pub(crate) fn of_calls() -> [Section; 6] {
    let section = |title, markdown: &str| Section { title, markdown: markdown.to_owned() };
    [
        section("Introduction", INTRODUCTION),
        section("Authentication", include_str!("../guide/authentication.md")),
        section("Rate limits", include_str!("../guide/rate_limits.md")),
        section("Paging", include_str!("../guide/paging.md")),
        section("Requests and responses", include_str!("../guide/requests.md")),
        Section { title: "Errors", markdown: format!("{}\n{}", include_str!("../guide/errors.md"), table_of_codes()) },
    ]
}

/// Returns the section for receivers of webhooks.
pub(crate) fn of_webhooks() -> Section {
    Section { title: "Webhooks", markdown: include_str!("../guide/webhooks.md").to_owned() }
}

/// Joins all sections into one text, with a heading before each but the first.
pub(super) fn markdown() -> String {
    let mut text = String::new();
    for Section { title, markdown } in of_calls().into_iter().chain([of_webhooks()]) {
        let heading = if text.is_empty() { String::new() } else { format!("\n\n## {title}\n\n") };
        text.push_str(&heading);
        text.push_str(markdown.trim());
    }
    text
}

fn table_of_codes() -> String {
    let mut table = "| Status | Code | Params | When |\n|---|---|---|---|\n".to_owned();
    for (error, when) in errors::catalogue() {
        let (status, code) = (error.status(), error.code());
        let params = errors::params(error).iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        // Writing to a string cannot fail.
        let _ = writeln!(table, "| {status} | `{code}` | {params} | {when} |");
    }
    table
}
