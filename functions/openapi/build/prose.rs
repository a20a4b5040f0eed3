//! Renders Markdown: the guide, the descriptions and the tables. Raw HTML in it is shown as text.

use maud::{Markup, PreEscaped};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Renders a text. Tables and blocks of code scroll on their own if the screen is narrow.
pub(crate) fn render(markdown: &str) -> Markup {
    let mut is_heading = false;
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| {
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
    });
    let mut markup = String::new();
    push_html(&mut markup, events);
    PreEscaped(markup)
}
