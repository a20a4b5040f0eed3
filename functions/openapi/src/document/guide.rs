//! What holds for every endpoint, told once: the description's own text, and the page's first sections.

use std::fmt::Write;

use super::errors;

/// A section of the guide.
pub(crate) struct Section {
    /// Its heading.
    pub(crate) title: &'static str,
    /// Its text: paragraphs, lists, tables, code.
    pub(crate) markdown: String,
}

/// What the API is.
const INTRODUCTION: &str = "Read-only access to an item marketplace: the catalog, prices on other marketplaces, \
    active listings, and the account's own orders and balance; and signed webhooks that report events on the account.";

/// What a caller reads first, in this order.
pub(crate) fn of_calls() -> [Section; 6] {
    let section = |title, markdown: &str| Section { title, markdown: markdown.to_owned() };
    [
        section("Introduction", INTRODUCTION),
        section("Authentication", include_str!("../guide/authentication.md")),
        section("Rate limits", include_str!("../guide/rate_limits.md")),
        section("Paging", include_str!("../guide/paging.md")),
        section("Requests and answers", include_str!("../guide/requests.md")),
        Section { title: "Errors", markdown: format!("{}\n{}", include_str!("../guide/errors.md"), table_of_codes()) },
    ]
}

/// What a receiver of events reads first.
pub(crate) fn of_webhooks() -> Section {
    Section { title: "Webhooks", markdown: include_str!("../guide/webhooks.md").to_owned() }
}

/// The guide as one text.
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
