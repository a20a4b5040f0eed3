//! Renders Markdown: the guide, the descriptions and the tables. Raw HTML in it is shown as text.

use maud::{Markup, PreEscaped, html};
use pulldown_cmark::html::push_html;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// From this number of columns on, the cells of a row stand below each other if the screen is narrow.
const STACKED_FROM: usize = 3;

/// Renders a text. Blocks of code scroll on their own. Cells that may be stacked name their column.
pub(crate) fn render(markdown: &str) -> Markup {
    let (mut is_heading, mut is_stacked, mut column) = (false, false, 0);
    let mut columns: Vec<String> = Vec::new();
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| {
        match &event {
            Event::Start(Tag::Table(alignments)) => {
                is_stacked = alignments.len() >= STACKED_FROM;
                columns.clear();
            }
            Event::Start(Tag::TableHead) => is_heading = true,
            Event::Start(Tag::TableCell) if is_heading => columns.push(String::new()),
            Event::End(TagEnd::TableHead) => is_heading = false,
            Event::Start(Tag::TableRow) => column = 0,
            Event::Text(text) | Event::Code(text) if is_heading => {
                columns.last_mut().into_iter().for_each(|column| column.push_str(text));
            }
            Event::End(TagEnd::TableCell) => column += 1,
            _ => {}
        }
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
            Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
            Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
            Event::Start(Tag::Table(_)) if is_stacked => Event::Html("<table class=\"stacked\">".into()),
            Event::Start(Tag::TableCell) if is_heading => Event::Html("<th scope=\"col\">".into()),
            Event::Start(Tag::TableCell) if is_stacked => Event::Html(cell(columns.get(column)).into()),
            Event::Start(Tag::CodeBlock(_)) => Event::Html("<pre tabindex=\"0\"><code>".into()),
            event => event,
        }
    });
    let mut markup = String::new();
    push_html(&mut markup, anchored(events.collect()).into_iter());
    PreEscaped(markup)
}

/// Returns the start of a cell that names its column.
fn cell(column: Option<&String>) -> String {
    let column = html! { (column.map_or("", String::as_str)) };
    format!("<td data-label=\"{}\">", column.into_string())
}

/// Gives each heading the anchor that it has in Markdown.
fn anchored(mut events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut anchor = String::new();
    for event in events.iter_mut().rev() {
        match event {
            Event::End(TagEnd::Heading(_)) => anchor.clear(),
            Event::Text(text) | Event::Code(text) => anchor.insert_str(0, text),
            Event::Start(Tag::Heading { id, .. }) => *id = Some(super::page::heading_anchor(&anchor).into()),
            _ => {}
        }
    }
    events
}
