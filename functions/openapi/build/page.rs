//! The docs page: one HTML document, which loads nothing and shows the same without its script.
//!
//! `html!` escapes all values, and `prose` shows raw HTML as text. So markup comes only from this program.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use yaml_serde::Value;

use super::document::{Chapter, Document, content, list, members, plain, text, values};
use super::samples::{self, Call};
use super::{prose, tables};

const STYLE: &str = concat!(include_str!("style.css"), "\n", include_str!("controls.css"));
const SCRIPT: &str = include_str!("page.js");
/// The page's icon, within the page: another request would be refused by its own policy.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Crect width='16' height='16' rx='4' fill='%230a5cad'/%3E\
    %3Cpath d='M7 4 3.5 8 7 12M9 4l3.5 4L9 12' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E";
/// The chapter of the guide that stands before the events.
const WEBHOOKS: &str = "Webhooks";

/// Returns what the page may do (Content Security Policy Level 3): connect to the service that serves it.
///
/// The policy allows the page's own script and style by their hashes. A nonce would protect nothing here: the page is
/// public and cached for five minutes, so everybody could read the nonce and use it while it is valid. A hash allows
/// exactly one text, wherever the page comes from: this function, the edge's cache or a browser's.
pub(crate) fn policy() -> String {
    let [script, style] = [SCRIPT, STYLE].map(|text| STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'sha256-{style}'; img-src data:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// Renders the whole page.
pub(crate) fn render(document: &Document) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                link rel="icon" href=(ICON);
                title { (document.title()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the text" }
                header {
                    button #menu type="button" popovertarget="contents" aria-label="Contents" { "☰" }
                    h1 { (document.title()) }
                    // The script shows what needs it.
                    button #theme type="button" hidden {}
                }
                (navigation(document))
                main #content { (body(document)) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn body(document: &Document) -> Markup {
    let (webhooks, calls): (Vec<_>, Vec<_>) = document.chapters().partition(|chapter| chapter.title == WEBHOOKS);
    html! {
        (prose::render(document.introduction()))
        (prose::render(&tables::operations(document, &|operation| format!("#{}", operation_anchor(operation)))))
        @for chapter in &calls { (guide(chapter)) }
        h2 #operations { "Operations" (link_to("operations", "Operations")) }
        p { "Most operations may also respond with these:" }
        (prose::render(&tables::common_responses(document, &link)))
        @for (path, operation) in document.operations() { (call(document, path, operation)) }
        @for chapter in &webhooks { (guide(chapter)) }
        @if let Some((event, delivery)) = document.deliveries().next() {
            h3 #delivery-headers {
                "Headers of each delivery (example: " code { (event) } ")"
                (link_to("delivery-headers", "the headers of each delivery"))
            }
            (prose::render(&tables::parameters(&document.parameters(delivery), &link)))
        }
        @for (event, delivery) in document.deliveries() {
            @let id = anchor("event-", event);
            section.operation id=(id) {
                h3 { code { (event) } (link_to(&id, event)) }
                p { (text(delivery, "summary")) }
                h4 { "Data" }
                (prose::render(&tables::data(document, delivery, &link)))
                h4 { "Body" }
                (json(&content(&delivery["requestBody"])["example"]))
            }
        }
        h2 #records { "Records" (link_to("records", "Records")) }
        @for (name, schema) in document.records() { (record(document, name, schema)) }
    }
}

/// Renders a record. A link to what is folded unfolds it, so the anchor is within.
fn record(document: &Document, name: &str, schema: &Value) -> Markup {
    let id = anchor("record-", name);
    html! {
        div.record {
            (link_to(&id, name))
            details {
                summary { h3 { code { (name) } } }
                div id=(id) {
                    (prose::render(text(schema, "description")))
                    (prose::render(&tables::record(document, schema, &link)))
                }
            }
        }
    }
}

/// Renders the navigation: a column beside the text, or what a button opens if the screen is narrow.
fn navigation(document: &Document) -> Markup {
    let to = |kind, name| format!("#{}", anchor(kind, name));
    let linked = |heading| (format!("#{}", heading_anchor(heading)), heading);
    let chapters: Vec<_> = document.chapters().map(|chapter| linked(chapter.title)).collect();
    let parts: Vec<_> = document.chapters().flat_map(parts).map(linked).collect();
    let events: Vec<_> = document.deliveries().map(|(event, _)| (to("event-", event), event)).collect();
    let records: Vec<_> = document.records().map(|(name, _)| (to("record-", name), name)).collect();
    let description = format!("OpenAPI description, version {}", document.version());
    let texts =
        [("/v1/openapi.json", description.as_str()), ("/docs.md", "This page as Markdown"), ("/llms.txt", "llms.txt")];
    html! {
        nav #contents popover aria-label="Contents" {
            // The script shows what needs it.
            div.search role="search" hidden {
                input #search type="search" aria-label="Search" placeholder="Search ( / )" autocomplete="off";
                p #found role="status" {}
            }
            (links("Guide", &chapters))
            (links(WEBHOOKS, &parts))
            @for tag in document.tags() { (links(tag, &tagged(document, tag))) }
            div.names {
                (links("Events", &events))
                (links("Records", &records))
            }
            (links("For programs", &texts))
        }
    }
}

/// Returns the headings within the chapter of the webhooks, which is as long as all others.
fn parts(Chapter { title, text }: Chapter<'_>) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| line.strip_prefix("### ")).filter(move |_| title == WEBHOOKS)
}

/// Returns the link and the title of each operation with a tag.
fn tagged<'a>(document: &'a Document, tag: &str) -> Vec<(String, &'a str)> {
    let tagged = document.operations().filter(|(_, operation)| list(&operation["tags"]).any(|name| name == tag));
    tagged.map(|(_, operation)| (format!("#{}", operation_anchor(operation)), text(operation, "summary"))).collect()
}

/// Renders a heading with links, or nothing if there are none.
fn links<T: AsRef<str>>(heading: &str, links: &[(T, &str)]) -> Markup {
    html! {
        @if !links.is_empty() {
            h2 { (heading) }
            ul { @for (address, name) in links { li { a href=(address.as_ref()) { (name) } } } }
        }
    }
}

/// Renders the link of a heading to itself, for people who want its address. The style gives it a sign.
fn link_to(anchor: &str, title: &str) -> Markup {
    html! { a.anchor href={ "#" (anchor) } aria-label={ "Link to " (title) } {} }
}

fn guide(chapter: &Chapter<'_>) -> Markup {
    let id = heading_anchor(chapter.title);
    html! {
        section.chapter id=(id) {
            h2 { (chapter.title) (link_to(&id, chapter.title)) }
            (prose::render(chapter.text))
        }
    }
}

fn call(document: &Document, path: &str, operation: &Value) -> Markup {
    let parameters = document.parameters(operation);
    let call = Call::new(path, operation, &parameters);
    let (id, title) = (operation_anchor(operation), text(operation, "summary"));
    let table = tables::parameters(&parameters, &link);
    html! {
        section.operation id=(id) {
            h3 { (title) (link_to(&id, title)) }
            p.route {
                span.method { "GET" }
                code { (path) }
            }
            (prose::render(text(operation, "description")))
            // The script makes tabs of them.
            div.samples {
                @for (language, sample) in samples::all(&call) {
                    details open[language == "curl"] {
                        summary { (language) }
                        (code_block(&sample))
                    }
                }
            }
            @if !table.is_empty() {
                h4 { "Parameters" }
                (prose::render(&table))
            }
            (form(path, &parameters, call.needs_key))
            h4 { "Responses" }
            (prose::render(&tables::responses(document, operation, &link)))
            // The guide shows what is the same for all operations: these responses are references.
            @for (status, response) in document.responses(operation) {
                @if operation["responses"][status]["$ref"].is_null() { (example_of(status, response)) }
            }
        }
    }
}

fn example_of(status: &str, response: &Value) -> Markup {
    html! {
        @for (name, value) in examples(content(response)) {
            details open[status == "200"] {
                summary { "Example of " (status) " " code { (name) } }
                (json(value))
            }
        }
    }
}

/// Returns the examples of a body by name. The only example of a body has no name.
fn examples(content: &Value) -> Vec<(&str, &Value)> {
    let one = Some(("", &content["example"])).filter(|(_, example)| !example.is_null());
    one.into_iter().chain(members(&content["examples"]).map(|(name, example)| (name, &example["value"]))).collect()
}

/// Renders the form that makes a call from the page. It is hidden until the script shows it, because only the script can
/// send the key in a header.
fn form(path: &str, parameters: &[&Value], needs_key: bool) -> Markup {
    let sent = parameters.iter().filter(|parameter| parameter["in"] != "header");
    html! {
        form.call data-path=(path) hidden {
            h4 { "Try it" }
            div.fields {
                @for parameter in sent { label { (text(parameter, "name")) " " (field(parameter)) } }
                // A field of the type `password` would make browsers offer to store the key. The style hides the text
                // instead. Without a name, the key is in no form data; `autocomplete` keeps it out of stored sessions.
                @if needs_key {
                    label {
                        "API key, forgotten on reload "
                        input.key autocomplete="off" spellcheck="false" placeholder="sk_…";
                    }
                }
            }
            button { "Send" }
            p role="status" {}
            div.answer {}
        }
    }
}

fn field(parameter: &Value) -> Markup {
    let (name, example) = (text(parameter, "name"), plain(&parameter["example"]));
    let schema = &parameter["schema"];
    let choices = values(schema);
    html! {
        @if !choices.is_empty() {
            select name=(name) {
                @if schema["default"].is_null() { option value="" {} }
                @for value in choices { option selected[*value == schema["default"]] { (plain(value)) } }
            }
        } @else if parameter["required"] == true {
            input name=(name) value=(example) required autocomplete="off";
        } @else {
            input name=(name) placeholder=(example) autocomplete="off";
        }
    }
}

fn json(value: &Value) -> Markup {
    code_block(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// Renders a block of code, which scrolls on its own.
fn code_block(text: &str) -> Markup {
    html! { pre tabindex="0" { code { (text) } } }
}

/// Returns a link to a record, in Markdown.
fn link(record: &str) -> String {
    format!("[{record}](#{})", anchor("record-", record))
}

fn operation_anchor(operation: &Value) -> String {
    format!("operation-{}", text(operation, "operationId"))
}

/// Returns the anchor of a heading, which is the same in the page, in its Markdown, and in the repository.
pub(crate) fn heading_anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// Returns an anchor: the kind of section, and a name in lower case with `-` for everything but ASCII letters and digits.
fn anchor(kind: &str, name: &str) -> String {
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    kind.chars().chain(name).collect()
}
