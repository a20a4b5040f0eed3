//! HTTP manners: methods, routes, headers, entity tags, compression.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::json;
use tests::{Stack, item};

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_its_request_id_and_rate() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let mut ids = std::collections::BTreeSet::new();
    for path in PATHS.map(|(path, _)| path).into_iter().chain(["/nowhere", "/v1/openapi.json", "/docs"]) {
        for method in ["GET", "HEAD", "POST"] {
            let reply = running.client.send(method, path, &[("authorization", &format!("Bearer {key}"))]).await;
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{method} {path}");
            assert!((1..=60).contains(&reply.rate().2), "{method} {path}");
            if !reply.bytes.is_empty() && path != "/docs" {
                assert_eq!(reply.header("content-type"), "application/json; charset=utf-8", "{method} {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_405_before_the_key_is_asked_for() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    proxy.take_calls();
    for path in PATHS.map(|(path, _)| path).into_iter().chain(["/v1/openapi.json"]) {
        for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"] {
            let reply = running.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method} {path}");
            let params = json!({"method": method});
            assert_eq!(reply.json(), json!({"error": {"code": "routes.method_not_allowed", "params": params}}));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
        }
    }
    assert_eq!(proxy.take_calls().len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_route_is_404_without_a_key() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    for path in [
        "/",
        "/v1",
        "/v1/public/me/",
        "/v1/public/items",
        "/v1/public/items/",
        "/v1/public/items/a/b",
        "/v2/public/me",
        "/V1/public/me",
        "//",
    ] {
        for method in ["GET", "POST"] {
            let reply = running.client.send(method, path, &[]).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            assert_eq!(reply.json(), json!({"error": {"code": "routes.not_found", "params": {}}}));
            assert_eq!((reply.rate().0, reply.rate().1, reply.header("cache-control")), (0, 0, "no-store"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn caching_is_as_private_as_the_data() {
    let stack = Stack::new().await;
    stack.feed(&[item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1)]).await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    for (path, expected) in [
        ("/v1/public/me", "private, no-cache"),
        ("/v1/public/catalog", "private, no-cache"),
        ("/v1/public/items/ak-47-redline", "private, no-cache"),
        ("/v1/public/marketplaces", "private, no-cache"),
        ("/v1/public/listings", "private, no-cache"),
        ("/v1/public/orders", "no-store"),
        ("/v1/public/wallet/balance", "no-store"),
        ("/v1/openapi.json", "public, max-age=300"),
        ("/docs", "public, max-age=300"),
    ] {
        let reply = running.client.get(&key, path).await;
        assert_eq!((reply.status, reply.header("cache-control")), (200, expected), "{path}");
        assert!(reply.header("etag").starts_with('"'), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_answer_is_304_without_a_body() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let path = "/v1/public/catalog";
    let first = running.client.get(&key, path).await;
    let authorization = format!("Bearer {key}");
    for tags in [first.header("etag").to_owned(), format!("\"x\", W/{}", first.header("etag")), "*".to_owned()] {
        let headers = [("authorization", authorization.as_str()), ("if-none-match", &tags)];
        let reply = running.client.send("GET", path, &headers).await;
        assert_eq!((reply.status, reply.bytes.len()), (304, 0), "{tags}");
        assert_eq!(reply.header("etag"), first.header("etag"));
        assert_eq!(reply.header("cache-control"), "private, no-cache");
        assert_eq!(reply.rate().0, 60);
    }
    stack.feed(&[item("a", "skin", Some("A"), 1)]).await;
    running.wait(2);
    let headers = [("authorization", authorization.as_str()), ("if-none-match", first.header("etag"))];
    let reply = running.client.send("GET", path, &headers).await;
    assert_eq!(reply.status, 200);
    assert_ne!(reply.header("etag"), first.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_compressed_for_those_who_accept_it() {
    let stack = Stack::new().await;
    let items: Vec<_> = (0..40).map(|n| item(&format!("item-{n}"), "skin", Some(&format!("Item {n}")), 1)).collect();
    stack.feed(&items).await;
    let running = stack.instance().await;
    let authorization = format!("Bearer {}", stack.full_key().await);
    let get = async |path, encoding| {
        running.client.send("GET", path, &[("authorization", &authorization), ("accept-encoding", encoding)]).await
    };
    let plain = get("/v1/public/catalog", "identity").await;
    let compressed = get("/v1/public/catalog", "br, gzip").await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), ("", "Accept-Encoding"));
    assert_eq!((compressed.header("content-encoding"), compressed.header("vary")), ("gzip", "Accept-Encoding"));
    assert!(compressed.bytes.len() < plain.bytes.len() / 2);
    let mut body = Vec::new();
    GzDecoder::new(&compressed.bytes[..]).read_to_end(&mut body).unwrap();
    assert_eq!(body, plain.bytes);
    assert_ne!(plain.header("etag"), compressed.header("etag"), "a tag per encoding");
    let small = get("/v1/public/catalog?page_size=1", "gzip").await;
    assert_eq!((small.header("content-encoding"), small.header("vary")), ("", ""));
    assert_eq!(get("/v1/public/catalog", "gzip;q=0").await.header("content-encoding"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_answers_as_get_without_a_body() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let authorization = format!("Bearer {key}");
    for (path, _) in PATHS {
        let get = running.client.get(&key, path).await;
        let head = running.client.send("HEAD", path, &[("authorization", &authorization)]).await;
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        for name in ["content-type", "etag", "cache-control", "vary", "x-ratelimit-limit"] {
            assert_eq!(head.header(name), get.header(name), "{name} of {path}");
        }
    }
}
