use std::collections::BTreeSet;

use super::*;
use crate::document;

fn page() -> String {
    render(&document::openapi())
}

fn between<'a>(text: &'a str, start: &str, end: char) -> BTreeSet<&'a str> {
    text.split(start).skip(1).filter_map(|rest| rest.split(end).next()).collect()
}

#[test]
fn it_contains_every_operation() {
    let (page, openapi) = (page(), document::openapi());
    for (path, told) in operations(&openapi) {
        assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
        assert!(page.contains(&format!("id=\"{}\"", operation::anchor(told))), "{path}");
        let heading = html! { h3 { (told.summary.as_deref().unwrap()) } };
        assert!(page.contains(&heading.into_string()), "{path}");
    }
    assert_eq!(page.matches("curl --compressed").count(), operations(&openapi).count());
}

#[test]
fn it_contains_every_event_record_and_error() {
    let (page, openapi) = (page(), document::openapi());
    for (name, _) in webhooks(&openapi) {
        assert!(page.contains(&format!("id=\"{}\"", webhook::anchor(name))), "{name}");
    }
    for name in openapi.components.unwrap().schemas.keys() {
        assert!(page.contains(&format!("id=\"{}\"", kind::anchor(name))), "{name}");
    }
    for code in ["request.invalid", "api_keys.missing", "api_keys.scope_missing", "routes.not_found"] {
        assert!(page.contains(&format!("<td><code>{code}</code></td>")), "{code}");
    }
}

#[test]
fn every_link_leads_somewhere_and_no_anchor_is_double() {
    let page = page();
    let anchors = between(&page, " id=\"", '"');
    assert_eq!(anchors.len(), page.matches(" id=\"").count());
    let links = between(&page, "href=\"#", '"');
    assert!(links.is_subset(&anchors), "{:?}", links.difference(&anchors));
    assert!(links.len() > 40, "{}", links.len());
}

#[test]
fn it_is_self_contained() {
    let page = page();
    for foreign in ["<script", "<link", "<img", "src=", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
}

#[test]
fn what_is_opened_is_closed() {
    let page = page();
    let empty = ["meta", "input", "!DOCTYPE"];
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1).filter_map(|rest| rest.split('>').next()) {
        let name = tag.split(' ').next().unwrap();
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if empty.contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, Vec::<&str>::new());
}

#[test]
fn examples_are_escaped() {
    assert!(page().contains("&quot;rate_limits.exceeded&quot;"));
}
