use std::collections::BTreeSet;

use serde_json::json;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, Info, ObjectBuilder, OpenApiBuilder, PathItem, PathsBuilder, Ref,
    ResponseBuilder, Type,
};

use super::*;
use crate::document;

const SCRIPT: &str = "<script>alert(\"1\")</script>";

fn page() -> String {
    render(&document::openapi())
}

/// Returns a document in which every text is this one.
fn document_of(text: &str) -> OpenApi {
    let string = ObjectBuilder::new().schema_type(Type::String).description(Some(text)).pattern(Some(text));
    let value = string.enum_values(Some([text])).default(Some(json!(text))).examples([json!(text)]).build();
    let parameter = ParameterBuilder::new().name(text).parameter_in(ParameterIn::Query).description(Some(text));
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(text))).example(Some(json!(text))).build();
    let operation = OperationBuilder::new()
        .tags(Some([text]))
        .operation_id(Some(text))
        .summary(Some(text))
        .description(Some(text))
        .parameter(parameter.schema(Some(value.clone())).build())
        .response(text, ResponseBuilder::new().description(text).content(document::JSON, content).build())
        .build();
    let record = ObjectBuilder::new().description(Some(text)).property(text, value).build();
    let webhook = PathItem::new(HttpMethod::Post, operation.clone());
    OpenApiBuilder::new()
        .info(Info::new(text, text))
        .tags(Some([TagBuilder::new().name(text).build()]))
        .paths(PathsBuilder::new().path(text, PathItem::new(HttpMethod::Get, operation)).build())
        .webhooks(Some(PathsBuilder::new().path(text, webhook).build()))
        .components(Some(ComponentsBuilder::new().schema(text, record).build()))
        .build()
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
    let empty = ["meta", "input", "!DOCTYPE"];
    for page in [page(), render(&document_of(SCRIPT))] {
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
}

#[test]
fn markup_in_the_document_is_shown_as_text() {
    let page = render(&document_of(SCRIPT));
    assert!(!page.contains("<script"));
    // The quotes of Markdown are not escaped. It describes the operation, its parameter (also as the webhook's header),
    // its response, the record and its field.
    assert_eq!(page.matches("&lt;script&gt;alert(\"1\")&lt;/script&gt;").count(), 6);
    let escaped = "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;";
    let link = "<li class=\"name\"><a href=\"#operation-";
    for place in ["<title>", "Version ", link, "id=\"operation-", "<h3>", ", <code>"] {
        assert!(page.contains(&format!("{place}{escaped}")), "{place}");
    }
    assert!(page.contains("<code>&quot;&lt;script&gt;alert(\\&quot;1\\&quot;)&lt;/script&gt;&quot;</code>"));
}
