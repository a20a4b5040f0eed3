//! Renders Markdown: the guide, and the descriptions of the OpenAPI document. Raw HTML in it is shown as text.

use maud::{Markup, PreEscaped};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Renders whole blocks: paragraphs, lists, tables and code.
pub(super) fn blocks(markdown: &str) -> Markup {
    render(events(markdown))
}

/// Renders a text within a block, such as a table cell. Its paragraphs are not elements of their own.
pub(super) fn inline(markdown: &str) -> Markup {
    render(events(markdown).filter_map(|event| match event {
        Event::Start(Tag::Paragraph) => None,
        Event::End(TagEnd::Paragraph) => Some(Event::SoftBreak),
        event => Some(event),
    }))
}

fn render<'a>(events: impl Iterator<Item = Event<'a>>) -> Markup {
    let mut markup = String::new();
    push_html(&mut markup, events);
    PreEscaped(markup)
}

/// Parses a text. Its tables and blocks of code get the attributes of those that `elements` renders.
fn events(markdown: &str) -> impl Iterator<Item = Event<'_>> {
    let mut is_heading = false;
    Parser::new_ext(markdown, Options::ENABLE_TABLES).map(move |event| {
        match event {
            Event::Start(Tag::TableHead) => is_heading = true,
            Event::End(TagEnd::TableHead) => is_heading = false,
            _ => {}
        }
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Table(_)) => Event::Html("<div class=\"table\" tabindex=\"0\"><table>".into()),
            Event::End(TagEnd::Table) => Event::Html("</tbody></table></div>\n".into()),
            Event::Start(Tag::TableCell) if is_heading => Event::Html("<th scope=\"col\">".into()),
            Event::Start(Tag::CodeBlock(_)) => Event::Html("<pre tabindex=\"0\"><code>".into()),
            event => event,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(markdown: &str) -> String {
        blocks(markdown).into_string()
    }

    #[test]
    fn paragraphs_lists_and_code() {
        assert_eq!(
            shown("One\ntwo `<a>`.\n\nThree **`b` c**."),
            "<p>One\ntwo <code>&lt;a&gt;</code>.</p>\n<p>Three <strong><code>b</code> c</strong>.</p>\n"
        );
        assert_eq!(shown("- one\n  more\n- two"), "<ul>\n<li>one\nmore</li>\n<li>two</li>\n</ul>\n");
        let code = "<pre tabindex=\"0\"><code>a\n\n| &lt;b&gt;\n</code></pre>\n<p>c</p>\n";
        assert_eq!(shown("```\na\n\n| <b>\n```\nc"), code);
    }

    #[test]
    fn a_table_has_headings_and_empty_cells() {
        let head = "<thead><tr><th scope=\"col\">A</th><th scope=\"col\">B</th></tr></thead>";
        let body = "<tbody>\n<tr><td><code>1</code></td><td></td></tr>\n</tbody>";
        let table = format!("<div class=\"table\" tabindex=\"0\"><table>{head}{body}</table></div>\n");
        assert_eq!(shown("| A | B |\n|---|---|\n| `1` | |"), table);
    }

    #[test]
    fn text_within_a_block_has_no_paragraphs() {
        assert_eq!(inline("One.\n\n**Two**.").into_string(), "One.\n<strong>Two</strong>.\n");
    }

    #[test]
    fn raw_html_is_shown_as_text() {
        let (block, shown_block) = ("<script>a &amp; b</script>", "&lt;script&gt;a &amp;amp; b&lt;/script&gt;");
        assert_eq!(shown(block), format!("<p>{shown_block}</p>\n"));
        assert_eq!(inline(block).into_string().trim(), shown_block);
        assert_eq!(shown("a <b id=\"x\">c</b>"), "<p>a &lt;b id=\"x\"&gt;c&lt;/b&gt;</p>\n");
        assert_eq!(shown("<!-- a -->"), "<p>&lt;!-- a --&gt;</p>\n");
    }
}
