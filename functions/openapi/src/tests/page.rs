//! The docs page and its Markdown have what the description has.

use std::collections::BTreeSet;
use std::sync::Arc;

use api::line::RequestLog;
use api::origin::Origin;
use api::routes::{DOCS, LLMS, PUBLIC};
use api::{Handler, Request, Response};
use common::clock::ManualClock;
use common::timestamp::Timestamp;
use http::header::{HOST, HeaderValue, IF_NONE_MATCH};
use serde_json::Value;

use super::{description, operations, resolved};
use crate::{Description, HOST as HOST_IN_TEXTS};

const PAGE: &str = made!("docs.html");
const MARKDOWN: &str = made!("docs.md");

/// Returns the parameters of an operation, with references followed.
fn parameters<'a>(document: &'a Value, operation: &'a Value) -> impl Iterator<Item = &'a Value> {
    operation["parameters"].as_array().unwrap().iter().map(|parameter| resolved(document, parameter))
}

fn between<'a>(text: &'a str, start: &str, end: char) -> BTreeSet<&'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn every_link_leads_somewhere_and_no_anchor_is_double() {
    let anchors = between(PAGE, " id=\"", '"');
    assert_eq!(anchors.len(), PAGE.matches(" id=\"").count());
    let links = between(PAGE, "href=\"#", '"');
    assert!(links.is_subset(&anchors), "{:?}", links.difference(&anchors));
    assert!(links.len() > 40, "{}", links.len());
    let others = between(PAGE, "<a href=\"", '"').into_iter().filter(|link| !link.starts_with('#'));
    let lost: Vec<_> = others.filter(|link| !link.starts_with("https://") && !PUBLIC.contains(link)).collect();
    assert_eq!(lost, [""; 0]);
}

async fn get(path: &str, known_tag: Option<&HeaderValue>) -> Response {
    ask(path, known_tag, None).await
}

async fn ask(path: &str, known_tag: Option<&HeaderValue>, host: Option<&'static str>) -> Response {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(45_000)));
    let mut request = Request::default();
    *request.uri_mut() = path.parse().unwrap();
    request.headers_mut().extend(known_tag.map(|tag| (IF_NONE_MATCH, tag.clone())));
    request.headers_mut().extend(host.map(|host| (HOST, HeaderValue::from_static(host))));
    let log = RequestLog::new(clock.clone(), Arc::default());
    Description::new(Origin::default(), log, clock).handle(request).await
}

#[tokio::test]
async fn the_page_alone_says_what_it_may_do_and_a_304_repeats_it() {
    for path in PUBLIC {
        let full = get(path, None).await;
        let unchanged = get(path, Some(&full.headers()["etag"])).await;
        assert_eq!((full.status().as_u16(), unchanged.status().as_u16()), (200, 304), "{path}");
        for name in ["content-security-policy", "x-content-type-options", "referrer-policy"] {
            assert_eq!(full.headers().contains_key(name), path == DOCS, "{name} of {path}");
            assert_eq!(full.headers().get(name), unchanged.headers().get(name), "{name} of {path}");
        }
    }
}

#[tokio::test]
async fn the_texts_name_the_host_that_was_asked_and_may_be_read_by_any_page() {
    for path in PUBLIC {
        let response = ask(path, None, Some("h.example:8080")).await;
        assert_eq!(response.headers()["access-control-allow-origin"], "*", "{path}");
        let text = std::str::from_utf8(response.body()).unwrap();
        assert!(!text.contains(HOST_IN_TEXTS), "{path}");
        assert_eq!(text.contains("http://h.example:8080"), path != LLMS, "{path}");
    }
    let unknown: Value = serde_json::from_slice(get(PUBLIC[0], None).await.body()).unwrap();
    assert_eq!(unknown["servers"][0]["url"], "/");
    assert!(!get("/nowhere", None).await.headers().contains_key("access-control-allow-origin"));
}

/// Returns the section of the Markdown with this heading.
fn section(heading: &str) -> &'static str {
    let section = MARKDOWN.split_once(&format!("\n### {heading}\n"));
    section.unwrap_or_else(|| panic!("no section {heading}")).1.split("\n##").next().unwrap()
}

#[track_caller]
fn assert_has_rows<'a>(heading: &str, first_cells: impl Iterator<Item = &'a str>) {
    for cell in first_cells {
        let is_there = [cell.to_owned(), format!("`{cell}`")]
            .iter()
            .any(|cell| section(heading).contains(&format!("\n| {cell} | ")));
        assert!(is_there, "{heading}: {cell}");
    }
}

#[test]
fn the_markdown_has_every_parameter_response_and_field() {
    let document = description();
    for (path, operation) in operations(&document) {
        let heading = operation["summary"].as_str().unwrap();
        assert!(section(heading).contains(&format!("\n`GET {path}`\n")), "{path}");
        assert!(section(heading).contains("\n```sh\ncurl --compressed "), "{path}");
        // The guide has the header that every operation takes.
        let names = parameters(&document, operation).map(|one| one["name"].as_str().unwrap());
        assert_has_rows(heading, names.filter(|name| *name != "If-None-Match"));
        let (common, own): (Vec<_>, Vec<_>) =
            operation["responses"].as_object().unwrap().iter().partition(|(_, response)| response["$ref"].is_string());
        assert_has_rows(heading, own.iter().map(|(status, _)| status.as_str()));
        // What many operations have stands once, before them.
        let before = MARKDOWN.split_once("\n## Operations\n").unwrap().1.split("\n### ").next().unwrap();
        for (status, _) in common {
            assert!(before.contains(&format!("\n| {status} | ")), "{path}: {status}");
            assert!(!section(heading).contains(&format!("\n| {status} | ")), "{path}: {status}");
        }
        assert!(before.contains(&format!("\n| `GET {path}` | [{heading}](#")), "{path}");
    }
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        assert_has_rows(name, schema["properties"].as_object().into_iter().flatten().map(|(field, _)| field.as_str()));
    }
    for (event, item) in document["webhooks"].as_object().unwrap() {
        let content = &item["post"]["requestBody"]["content"]["application/json"];
        assert_has_rows(event, content["example"]["data"].as_object().unwrap().keys().map(String::as_str));
        for header in parameters(&document, &item["post"]) {
            let required = if header["required"] == true { ", required" } else { "" };
            assert!(MARKDOWN.contains(&format!("\n| `{}` | header{required} | ", header["name"].as_str().unwrap())));
        }
    }
}
