//! The served description, and the answers it describes.

use serde_json::{Value, json};
use tests::{Reply, Stack, uuid};

use crate::access::PATHS;

const TEMPLATES: [(&str, &str); 2] = [
    ("/v1/public/items/ak-47-redline", "/v1/public/items/{id}"),
    ("/v1/public/prices/", "/v1/public/prices/{variant_id}"),
];

/// The path template of a concrete path.
fn template(path: &str) -> &str {
    TEMPLATES.iter().find(|(start, _)| path.starts_with(start)).map_or(path, |(_, template)| template)
}

/// The schema of a response's body: as the document stands, with the operation's own schema at its root.
fn assert_described(document: &Value, path: &str, reply: &Reply) {
    let responses = &document["paths"][template(path)]["get"]["responses"];
    let mut response = &responses[reply.status.to_string()];
    assert!(response.is_object(), "{} of {path} is not described", reply.status);
    if let Some(reference) = response["$ref"].as_str() {
        response = document.pointer(reference.trim_start_matches('#')).unwrap();
    }
    for header in response["headers"].as_object().unwrap().keys() {
        let always = !["Vary", "Content-Encoding"].contains(&header.as_str());
        assert!(!always || reply.headers.contains_key(header), "{header} of {path}: {:?}", reply.headers);
    }
    if reply.bytes.is_empty() {
        return;
    }
    let mut schema = document.clone();
    let body = &response["content"]["application/json"]["schema"];
    schema["allOf"] = json!([body]);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator.iter_errors(&reply.json()).map(|error| error.to_string()).collect();
    assert_eq!(problems, Vec::<String>::new(), "{} of {path}: {}", reply.status, reply.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn it_is_served_without_a_key() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let reply = running.client.send("GET", "/v1/openapi.json", &[]).await;
    let document = reply.json();
    assert_eq!(
        (reply.status, &document["openapi"], &document["info"]["version"]),
        (200, &json!("3.1.0"), &json!("1.0.0"))
    );
    assert_eq!(document["webhooks"].as_object().unwrap().len(), 9);
    let page = running.client.send("GET", "/docs", &[]).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(String::from_utf8(page.bytes).unwrap().contains("/v1/public/wallet/balance"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_is_as_described() {
    let stack = Stack::new().await;
    let user = uuid(1);
    stack.feed(&tests::market(user.into())).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let document = running.client.send("GET", "/v1/openapi.json", &[]).await.json();
    let key = stack.key_of(user.into(), &shared::scope::Scope::ALL).await.0;
    for (path, scope) in PATHS {
        let good = running.client.get(&key, path).await;
        assert_eq!(good.status, 200, "{path}");
        assert_described(&document, path, &good);
        let authorization = format!("Bearer {key}");
        let headers = [("authorization", authorization.as_str()), ("if-none-match", good.header("etag"))];
        let unchanged = running.client.send("GET", path, &headers).await;
        // What changes with every request has a tag of its own each time, and nothing here does.
        assert_eq!(unchanged.status, 304, "{path}");
        assert_described(&document, path, &unchanged);
        let missing = running.client.send("GET", path, &[]).await;
        assert_described(&document, path, &missing);
        assert_described(&document, path, &running.client.get(&key, &format!("{path}?nonsense=1")).await);
        assert_described(&document, path, &running.client.send("POST", path, &[]).await);
        if scope.is_some() {
            let other =
                stack.key(&[shared::scope::Scope::ALL.into_iter().find(|held| Some(*held) != scope).unwrap()]).await;
            let forbidden = running.client.get(&other, path).await;
            assert_eq!(forbidden.status, 403);
            assert_described(&document, path, &forbidden);
        }
    }
    for path in ["/v1/public/items/ak-47-redline-none", &format!("/v1/public/prices/{}", uuid(8))] {
        let none = running.client.get(&key, path).await;
        assert_eq!(none.status, 404);
        assert_described(&document, path, &none);
    }
    for _ in 0..61 {
        running.client.get(&key, "/v1/public/me").await;
    }
    let limited = running.client.get(&key, "/v1/public/me").await;
    assert_eq!(limited.status, 429);
    assert_described(&document, "/v1/public/me", &limited);
    proxy.set(tests::Fault::Refuse);
    let unavailable = running.client.get(&key, "/v1/public/orders").await;
    assert_eq!(unavailable.status, 503);
    assert_described(&document, "/v1/public/orders", &unavailable);
}
