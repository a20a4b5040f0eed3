//! Renders the part of Markdown that the guide uses: paragraphs, lists, tables, code and bold.

use super::html::Html;

/// Writes whole blocks: paragraphs, lists, tables and code.
pub(super) fn blocks(html: &mut Html, markdown: &str) {
    let mut lines = markdown.lines().peekable();
    while let Some(line) = lines.next() {
        let mut more = |belongs: fn(&str) -> bool| {
            let mut block = vec![line];
            while let Some(next) = lines.next_if(|next| belongs(next)) {
                block.push(next);
            }
            block
        };
        if line.starts_with("```") {
            let block = more(|next| !next.starts_with("```"));
            lines.next();
            html.code(&block[1..].join("\n"));
        } else if line.starts_with('|') {
            table(html, &more(|next| next.starts_with('|')));
        } else if line.starts_with("- ") {
            list(html, &more(|next| next.starts_with("- ") || next.starts_with("  ")));
        } else if !line.is_empty() {
            let block = more(|next| !(next.is_empty() || next.starts_with("```")));
            html.element("p", &[], |html| inline(html, &block.join(" ")));
        }
    }
}

/// Writes text within a block: `code` between back-ticks and **bold** between stars. Bold text cannot contain code.
pub(super) fn inline(html: &mut Html, text: &str) {
    for (at, part) in text.split('`').enumerate() {
        if at % 2 == 1 {
            html.leaf("code", part);
            continue;
        }
        for (at, part) in part.split("**").enumerate() {
            if at % 2 == 1 { html.leaf("strong", part) } else { html.text(part) }
        }
    }
}

fn list(html: &mut Html, lines: &[&str]) {
    let mut entries: Vec<String> = Vec::new();
    for line in lines {
        match (line.strip_prefix("- "), entries.last_mut()) {
            (None, Some(entry)) => *entry = format!("{entry} {}", line.trim()),
            (entry, _) => entries.push(entry.unwrap_or(line).to_owned()),
        }
    }
    html.element("ul", &[], |html| {
        for entry in &entries {
            html.element("li", &[], |html| inline(html, entry));
        }
    });
}

/// Writes a table. The first line has the headings, and the second is the rule below them.
fn table(html: &mut Html, lines: &[&str]) {
    let mut rows = lines.iter().map(|line| line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let headings = rows.next().unwrap_or_default();
    html.table(&headings, |html| {
        for row in rows.skip(1) {
            html.element("tr", &[], |html| {
                for cell in row {
                    html.element("td", &[], |html| inline(html, cell));
                }
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &str) -> String {
        let mut html = Html::default();
        blocks(&mut html, markdown);
        html.into_string()
    }

    #[test]
    fn paragraphs_lists_and_code() {
        assert_eq!(
            shown("One\ntwo `<a>`.\n\nThree **b**."),
            "<p>One two <code>&lt;a&gt;</code>.</p><p>Three <strong>b</strong>.</p>"
        );
        assert_eq!(shown("- one\n  more\n- two"), "<ul><li>one more</li><li>two</li></ul>");
        assert_eq!(shown("```\na\n\n| b\n```\nc"), "<pre tabindex=\"0\"><code>a\n\n| b</code></pre><p>c</p>");
    }

    #[test]
    fn a_table_has_headings_and_empty_cells() {
        let table = shown("| A | B |\n|---|---|\n| `1` | |");
        assert!(table.contains("<th scope=\"col\">A</th><th scope=\"col\">B</th>"), "{table}");
        assert!(table.contains("<tbody><tr><td><code>1</code></td><td></td></tr></tbody>"), "{table}");
    }
}
