use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;
use sha2::{Digest, Sha256};
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, HttpMethod, Info, ObjectBuilder, OpenApiBuilder, PathItem, PathsBuilder, Ref,
    ResponseBuilder, Type,
};

use super::call::Call;
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
    assert_eq!(page.matches("<code>curl --compressed").count(), operations(&openapi).count());
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
    for foreign in ["<img", "src=", "@import", "url(", " style=", " onclick=", "javascript:"] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<link").count(), page.matches("<link rel=\"icon\" href=\"data:").count());
}

#[test]
fn the_policy_allows_the_pages_own_script_and_style_and_nothing_else() {
    let (page, headers) = (page(), headers());
    let text_of = |element: &str| {
        let (_, rest) = page.split_once(&format!("<{element}>")).unwrap();
        rest.split_once(&format!("</{element}>")).unwrap().0
    };
    let hash = |element: &str| STANDARD.encode(Sha256::digest(text_of(element)));
    let expected = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash("script"),
        hash("style"),
    );
    assert_eq!(headers["content-security-policy"], expected);
    assert_eq!(headers["x-content-type-options"], "nosniff");
    assert_eq!(headers["referrer-policy"], "no-referrer");
    for element in ["script", "style"] {
        assert_eq!(page.matches(&format!("<{element}")).count(), 1);
    }
}

#[test]
fn an_operation_has_a_sample_in_every_language_and_a_form() {
    let (page, openapi) = (page(), document::openapi());
    let count = operations(&openapi).count();
    for language in ["curl", "Python", "TypeScript", "Rust", "Go"] {
        assert_eq!(page.matches(&format!("<summary>{language}</summary>")).count(), count, "{language}");
    }
    for (path, _) in operations(&openapi) {
        assert!(page.contains(&format!("<form class=\"call\" data-path=\"{path}\" hidden>")), "{path}");
    }
    // Only the description needs no key.
    assert_eq!(page.matches("<input class=\"key\"").count(), count - 1);
    assert!(!page.contains("type=\"password\""));
}

#[test]
fn a_sample_means_the_same_in_every_language() {
    let parameter = |name: &str, place, example: &str| {
        let schema = ObjectBuilder::new().examples([json!(example)]).build();
        ParameterBuilder::new().name(name).parameter_in(place).schema(Some(schema)).build()
    };
    let parameters = [parameter("id", ParameterIn::Path, "a/\"$é"), parameter("q", ParameterIn::Query, "b'`&\\")];
    let call = Call::new("/items/{id}", &OperationBuilder::new().build(), &parameters.each_ref());
    assert_eq!((call.target.as_str(), call.needs_key), ("/items/a%2F%22%24%C3%A9?q=b%27%60%26%5C", false));
    let shown = samples::render(&call).into_string();
    assert_eq!(shown.matches(&format!("{}&quot;", call.target.replace('&', "&amp;"))).count(), 5);
    assert!(!shown.contains("API_KEY"));
}

#[test]
fn what_is_opened_is_closed() {
    let empty = ["meta", "link", "input", "!DOCTYPE"];
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
    assert_eq!(page.matches("<script").count(), 1);
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
