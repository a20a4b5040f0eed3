//! The docs page: one HTML document, which loads nothing and shows the same without its script.
//!
//! `html!` escapes all values, and `prose` shows raw HTML as text. So markup comes only from this program.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};
use yaml_serde::Value;

use super::document::{Chapter, Document, content, list, members, plain, text};
use super::samples::{self, Call};
use super::{prose, tables};

const STYLE: &str = concat!(include_str!("style.css"), "\n", include_str!("controls.css"));
const SCRIPT: &str = include_str!("page.js");
/// The page's icon, within the page: another request would be refused by its own policy.
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E\
    %3Crect width='16' height='16' rx='4' fill='%230a5cad'/%3E\
    %3Cpath d='M7 4 3.5 8 7 12M9 4l3.5 4L9 12' fill='none' stroke='white' stroke-width='1.6'/%3E%3C/svg%3E";
/// The headers of every response. The guide explains them.
const COMMON: [&str; 4] = ["X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"];
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
                    h1 { (document.title()) }
                    p { "Version " (document.version()) }
                    p { a href="/v1/openapi.json" { "OpenAPI description" } }
                    p { a href="/docs.md" { "As Markdown" } }
                    p { a href="/llms.txt" { "llms.txt" } }
                    // The script shows what needs it.
                    div.tools role="search" hidden {
                        input #search type="search" aria-label="Search" placeholder="Search ( / )" autocomplete="off";
                        p #found role="status" {}
                        button #theme type="button" aria-pressed="false" { "Dark" }
                    }
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
        @for chapter in &calls { (guide(chapter)) }
        h2 #operations { "Operations" }
        @for (path, operation) in document.operations() { (call(document, path, operation)) }
        @for chapter in &webhooks { (guide(chapter)) }
        @if let Some((event, delivery)) = document.deliveries().next() {
            h3 { "Headers of each delivery (example: " code { (event) } ")" }
            (prose::render(&tables::parameters(&document.parameters(delivery), &link)))
        }
        @for (event, delivery) in document.deliveries() {
            section.operation id=(anchor("event-", event)) {
                h3 { code { (event) } }
                p { (text(delivery, "summary")) }
                h4 { "Data" }
                (prose::render(&tables::data(document, delivery, &link)))
                h4 { "Body" }
                (json(&content(&delivery["requestBody"])["example"]))
            }
        }
        h2 #records { "Records" }
        @for (name, schema) in document.records() {
            section.record id=(anchor("record-", name)) {
                h3 { code { (name) } }
                (prose::render(text(schema, "description")))
                (prose::render(&tables::record(document, schema, &link)))
            }
        }
    }
}

/// Renders the navigation: a column beside the text, or hidden behind a button if the screen is narrow.
fn navigation(document: &Document) -> Markup {
    let events: Vec<_> = document.deliveries().map(|(event, _)| (anchor("event-", event), event)).collect();
    let records: Vec<_> = document.records().map(|(name, _)| (anchor("record-", name), name)).collect();
    html! {
        nav aria-label="Contents" {
            input type="checkbox" id="menu";
            label for="menu" { "Contents" }
            div.links {
                h2 { "Guide" }
                ul {
                    @for chapter in document.chapters() {
                        li { a href={ "#" (anchor("", chapter.title)) } { (chapter.title) } }
                    }
                }
                @for tag in document.tags() { (links(tag, &tagged(document, tag))) }
                (links("Events", &events))
                (links("Records", &records))
            }
        }
    }
}

/// Returns the anchor and the shortened path of each operation with a tag.
fn tagged<'a>(document: &'a Document, tag: &str) -> Vec<(String, &'a str)> {
    let tagged = document.operations().filter(|(_, operation)| list(&operation["tags"]).any(|name| name == tag));
    tagged.map(|(path, operation)| (operation_anchor(operation), path.trim_start_matches("/v1/public"))).collect()
}

/// Renders a heading with links to anchors, or nothing if there are none.
fn links(heading: &str, links: &[(String, &str)]) -> Markup {
    html! {
        @if !links.is_empty() {
            h2 { (heading) }
            ul { @for (anchor, name) in links { li.name { a href={ "#" (anchor) } { (name) } } } }
        }
    }
}

fn guide(chapter: &Chapter<'_>) -> Markup {
    html! {
        section.chapter id=(anchor("", chapter.title)) {
            h2 { (chapter.title) }
            (prose::render(chapter.text))
        }
    }
}

fn call(document: &Document, path: &str, operation: &Value) -> Markup {
    let parameters = document.parameters(operation);
    let call = Call::new(path, operation, &parameters);
    html! {
        section.operation id=(operation_anchor(operation)) {
            h3 { (text(operation, "summary")) }
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
            h4 { "Parameters" }
            (prose::render(&tables::parameters(&parameters, &link)))
            (form(path, &parameters, call.needs_key))
            h4 { "Responses" }
            (prose::render(&tables::responses(document, operation, &COMMON, &link)))
            @for (status, response) in document.responses(operation) {
                @for (name, value) in examples(content(response)) {
                    details open[status == "200"] {
                        summary { "Example of " (status) " " code { (name) } }
                        (json(value))
                    }
                }
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
    let choices: Vec<String> = list(&parameter["schema"]["enum"]).map(plain).collect();
    html! {
        @if !choices.is_empty() {
            select name=(name) {
                option value="" {}
                @for value in choices { option { (value) } }
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

/// Returns an anchor: the kind of section, and a name in lower case with `-` for everything but ASCII letters and digits.
fn anchor(kind: &str, name: &str) -> String {
    let name = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
    kind.chars().chain(name).collect()
}
