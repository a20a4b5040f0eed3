//! The served API description, and whether answers match it.

use std::future::ready;
use std::pin::pin;

use api::routes::{CHANGES, MARKETPLACES, ROUTES};
use common::event::EventKind;
use common::scope::Scope;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tests::{HttpReply, PATHS, Target, Template, balance, item, listing, marketplace, order, quote};
use uuid::Uuid;

const TEMPLATES: [(&str, &str); 2] =
    [("/v1/public/items/", "/v1/public/items/{id}"), ("/v1/public/prices/", "/v1/public/prices/{variant_id}")];

/// Returns the path template of a path, which may have a query.
fn template(path: &str) -> &str {
    let path = path.split('?').next().unwrap();
    TEMPLATES.iter().find(|(start, _)| path.starts_with(start)).map_or(path, |(_, template)| template)
}

/// Returns the schema of a response's body: the document with the operation's schema at its root.
pub(crate) fn assert_described(document: &Value, path: &str, reply: &HttpReply) {
    let responses = &document["paths"][template(path)]["get"]["responses"];
    let mut response = &responses[reply.status.to_string()];
    assert!(response.is_object(), "{} of {path} is not described", reply.status);
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(reference.trim_start_matches('#')).unwrap();
    }
    for (header, described) in response["headers"].as_object().unwrap() {
        let described = document.pointer(described["$ref"].as_str().unwrap().trim_start_matches('#')).unwrap();
        assert!(
            described["required"] != true || reply.headers.contains_key(header),
            "{header} of {path}: {:?}",
            reply.headers
        );
    }
    if reply.bytes.is_empty() {
        return;
    }
    let mut schema = document.clone();
    require_nullable(&mut schema["components"]["schemas"]);
    let body = &response["content"]["application/json"]["schema"];
    schema["allOf"] = json!([body]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator.iter_errors(&reply.json()).map(|error| error.to_string()).collect();
    assert_eq!(problems, Vec::<String>::new(), "{} of {path}: {}", reply.status, reply.json());
    let error = &reply.json()["error"];
    for (list, error) in [("x-errors", error), ("x-field-errors", &error["fields"][0])] {
        let Some(code) = error["code"].as_str() else { continue };
        schema["allOf"] = json!([document[list][code]["params"]]);
        assert!(document[list][code].is_object() && jsonschema::is_valid(&schema, &error["params"]), "{error}");
    }
}

/// Makes the schemas require the fields that may be null. They do not say so themselves, but answers always have them.
fn require_nullable(schemas: &mut Value) {
    for schema in schemas.as_object_mut().unwrap().values_mut() {
        let fields = schema["properties"].as_object().into_iter().flatten();
        let nullable = fields.filter(|(_, field)| field["type"] == json!(["string", "null"]));
        let nullable: Vec<Value> = nullable.map(|(name, _)| json!(name)).collect();
        if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
            required.extend(nullable);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_description_is_served_without_a_key() {
    let target = Target::new().await;
    let reply = target.client.send("GET", "/v1/openapi.json", &[]).await;
    let document = reply.json();
    assert_eq!(
        (reply.status, &document["openapi"], &document["info"]["version"]),
        (200, &json!("3.1.0"), &json!("1.0.0"))
    );
    assert_eq!(document["webhooks"].as_object().unwrap().len(), EventKind::ALL.len());
    let page = target.client.send("GET", "/docs", &[]).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(String::from_utf8(page.bytes).unwrap().contains("/v1/public/wallet/balance"));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_read_find_every_text_from_one_list() {
    let target = Target::new().await;
    let list = target.client.send("GET", "/llms.txt", &[]).await;
    assert_eq!((list.status, list.header("content-type")), (200, "text/plain; charset=utf-8"));
    let list = String::from_utf8(list.bytes).unwrap();
    assert!(list.starts_with("# Marketplace Public API\n\n> "), "{list}");
    let markdown = target.client.send("GET", "/docs.md", &[]).await;
    assert_eq!((markdown.status, markdown.header("content-type")), (200, "text/markdown; charset=utf-8"));
    let markdown = String::from_utf8(markdown.bytes).unwrap();
    let headings: Vec<_> = markdown.lines().filter(|line| line.starts_with("##")).collect();
    let links: Vec<_> = list.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()).collect();
    assert!(links.len() > 3 + ROUTES.len(), "{list}");
    for guide in ["Following the listings", "Webhooks"] {
        assert!(list.contains(&format!("\n- [{guide}](/docs.md#")), "{list}");
    }
    for link in links {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        assert_eq!(target.client.send("GET", path, &[]).await.status, 200, "{link}");
        let has =
            |heading: &&str| heading.trim_start_matches(['#', ' ']).to_ascii_lowercase().replace(' ', "-") == anchor;
        assert!(anchor.is_empty() || headings.iter().any(has), "{link}");
    }
}

/// Returns a path of each route that needs a key, filtered to the test's own records, and the scope it needs.
pub(super) fn paths(target: &Target) -> Vec<(String, Option<Scope>)> {
    let (item, variant) = (target.word(), target.uuid(7));
    let own = |(path, scope): &(String, Option<Scope>)| {
        let path = match path.as_str() {
            "/v1/public/catalog" => format!("{path}?kind={item}"),
            "/v1/public/listings" => format!("{path}?item_id={item}"),
            _ if path.contains("/items/") => format!("/v1/public/items/{item}"),
            _ if path.contains("/prices/") => format!("/v1/public/prices/{variant}"),
            path => path.to_owned(),
        };
        (path, *scope)
    };
    PATHS.iter().map(own).collect()
}

/// Returns whether other tests may change the answer on a shared stack between two requests.
pub(super) fn is_moving(target: &Target, path: &str) -> bool {
    target.is_shared() && (path == MARKETPLACES.path || path.starts_with(CHANGES.path))
}

/// Returns messages that give every path an answer for this user.
pub(super) fn market(target: &Target, user: Uuid) -> Vec<Value> {
    let (word, variant) = (target.word(), target.uuid(7));
    let mut own = item(&word, &word, Some("AK-47 | Redline"), 1);
    own["variants"][0]["variant_id"] = json!(variant);
    let mut listed = listing(1, "1.00", "2026-11-20T10:00:00Z", 1);
    (listed["id"], listed["item_id"], listed["variant_id"]) = (json!(target.uuid(1)), json!(word), json!(variant));
    let mut ordered = order(user.into(), 1, "2026-11-20T10:00:00Z", 1);
    ordered["id"] = json!(target.uuid(1));
    let asks = quote(variant, &word, &["5.00"], &target.ago(3_600));
    vec![own, marketplace(&word, true, 1), asks, listed, ordered, balance(user.into(), "1.00", "2.00", "3.00", 1)]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_described() {
    let target = Target::new().await;
    let user = target.uuid(100);
    target.feed(&market(&target, user)).await;
    target.wait_for_marketplaces().await;
    let document = target.client.send("GET", "/v1/openapi.json", &[]).await.json();
    let key = target.key_of(user.into(), &Scope::ALL).await.0;
    for (path, scope) in &paths(&target) {
        let good = target.client.get(&key, path).await;
        assert_eq!(good.status, 200, "{path}");
        assert_described(&document, path, &good);
        let function = ROUTES.iter().find(|route| route.path == template(path)).unwrap().function;
        let tells_position = good.headers.contains_key("x-log-position");
        assert!(tells_position || !Template::read().functions[function].has_replica(), "{path}");
        let authorization = format!("Bearer {key}");
        let tag = if is_moving(&target, path) { "*" } else { good.header("etag") };
        let headers = [("authorization", authorization.as_str()), ("if-none-match", tag)];
        let unchanged = target.client.send("GET", path, &headers).await;
        assert_eq!(unchanged.status, 304, "{path}");
        assert_described(&document, path, &unchanged);
        let missing = target.client.send("GET", path, &[]).await;
        assert_described(&document, path, &missing);
        let query = if path.contains('?') { "&nonsense=1" } else { "?nonsense=1" };
        assert_described(&document, path, &target.client.get(&key, &format!("{path}{query}")).await);
        assert_described(&document, path, &target.client.send("POST", path, &[]).await);
        if scope.is_some() {
            let other = target.key(&[Scope::ALL.into_iter().find(|held| Some(*held) != *scope).unwrap()]).await;
            let forbidden = target.client.get(&other, path).await;
            assert_eq!(forbidden.status, 403);
            assert_described(&document, path, &forbidden);
        }
    }
    for path in [format!("/v1/public/items/{}-none", target.word()), format!("/v1/public/prices/{}", target.uuid(8))] {
        let none = target.client.get(&key, &path).await;
        assert_eq!(none.status, 404);
        assert_described(&document, &path, &none);
    }
    target.minute_with(40).await;
    let asked = stream::iter(0..100).map(|_| target.client.get(&key, "/v1/public/me")).buffer_unordered(8);
    let limited = pin!(asked.filter(|reply| ready(reply.status != 200))).next().await.unwrap();
    assert_eq!(limited.status, 429);
    assert_described(&document, "/v1/public/me", &limited);
}
