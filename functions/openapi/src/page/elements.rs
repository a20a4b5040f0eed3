//! The elements that several parts of the page share, and the names of anchors.

use maud::{Markup, html};

/// Renders a link within the page.
pub(super) fn jump(anchor: &str, text: &str) -> Markup {
    html! { a href={ "#" (anchor) } { (text) } }
}

/// Renders a table, which scrolls on its own if the screen is narrow.
pub(super) fn table(headings: &[&str], rows: &Markup) -> Markup {
    html! {
        div.table tabindex="0" {
            table {
                thead { tr { @for heading in headings { th scope="col" { (heading) } } } }
                tbody { (rows) }
            }
        }
    }
}

/// Renders a block of code, which scrolls on its own.
pub(super) fn code_block(text: &str) -> Markup {
    html! { pre tabindex="0" { code { (text) } } }
}

/// Converts a name for use in an anchor: lower case, with `-` for everything but ASCII letters and digits.
pub(super) fn slug(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect()
}
