//! HTTP behaviour: methods, routes, headers, entity tags, compression.

use std::io::Read;

use api::routes::{DOCS, LLMS, MARKDOWN, PUBLIC};
use flate2::read::GzDecoder;
use serde_json::json;
use tests::{Target, item};
use types::scope::Tier;

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_carries_its_request_id_and_rate() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let mut ids = std::collections::BTreeSet::new();
    for path in PATHS.map(|(path, _)| path).into_iter().chain(["/nowhere"]).chain(PUBLIC) {
        for method in ["GET", "HEAD", "POST"] {
            let reply = target.client.send(method, path, &[("authorization", &format!("Bearer {key}"))]).await;
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{method} {path}");
            assert!((1..=60).contains(&reply.rate().2), "{method} {path}");
            let is_text = method == "GET" && [DOCS, MARKDOWN, LLMS].contains(&path);
            if !reply.bytes.is_empty() && !is_text {
                assert_eq!(reply.header("content-type"), "application/json; charset=utf-8", "{method} {path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_405_without_a_key() {
    let target = Target::new().await;
    for path in PATHS.map(|(path, _)| path).into_iter().chain(["/v1/openapi.json"]) {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let reply = target.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method} {path}");
            let params = json!({"method": method});
            assert_eq!(reply.json(), json!({"error": {"code": "routes.method_not_allowed", "params": params}}));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_route_is_404_without_a_key() {
    let target = Target::new().await;
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
            let reply = target.client.send(method, path, &[]).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            assert_eq!(reply.json(), json!({"error": {"code": "routes.not_found", "params": {}}}));
            assert_eq!((reply.rate().0, reply.rate().1, reply.header("cache-control")), (0, 0, "no-store"));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn caching_is_as_private_as_the_data() {
    let target = Target::new().await;
    let id = target.word();
    target.feed(&[item(&id, "skin", Some("AK-47 | Redline"), 1)]).await;
    let key = target.full_key().await;
    for (path, expected) in [
        ("/v1/public/me", "private, no-cache"),
        ("/v1/public/catalog", "private, no-cache"),
        (&format!("/v1/public/items/{id}"), "private, no-cache"),
        ("/v1/public/marketplaces", "private, no-cache"),
        ("/v1/public/listings", "private, no-cache"),
        ("/v1/public/orders", "no-store"),
        ("/v1/public/wallet/balance", "no-store"),
        ("/v1/openapi.json", "public, max-age=300"),
        ("/docs", "public, max-age=300"),
        ("/docs.md", "public, max-age=300"),
        ("/llms.txt", "public, max-age=300"),
    ] {
        let reply = target.client.get(&key, path).await;
        assert_eq!((reply.status, reply.header("cache-control")), (200, expected), "{path}");
        assert!(reply.header("etag").starts_with('"'), "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unchanged_answer_is_304_without_a_body() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let kind = target.word();
    let path = &format!("/v1/public/catalog?kind={kind}");
    let first = target.client.get(&key, path).await;
    let authorization = format!("Bearer {key}");
    for tags in [first.header("etag").to_owned(), format!("\"x\", W/{}", first.header("etag")), "*".to_owned()] {
        let headers = [("authorization", authorization.as_str()), ("if-none-match", &tags)];
        let reply = target.client.send("GET", path, &headers).await;
        assert_eq!((reply.status, reply.bytes.len()), (304, 0), "{tags}");
        assert_eq!(reply.header("etag"), first.header("etag"));
        assert_eq!(reply.header("cache-control"), "private, no-cache");
        assert_eq!(reply.rate().0, Tier::Free.limit());
    }
    target.feed(&[item(&kind, &kind, Some("A"), 1)]).await;
    let headers = [("authorization", authorization.as_str()), ("if-none-match", first.header("etag"))];
    let reply = target.client.send("GET", path, &headers).await;
    assert_eq!(reply.status, 200);
    assert_ne!(reply.header("etag"), first.header("etag"));
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_are_compressed_for_those_who_accept_it() {
    let target = Target::new().await;
    let kind = target.word();
    let items: Vec<_> = (0..40).map(|n| item(&format!("{kind}-{n}"), &kind, Some(&format!("Item {n}")), 1)).collect();
    target.feed(&items).await;
    let authorization = format!("Bearer {}", target.full_key().await);
    let path = &format!("/v1/public/catalog?kind={kind}");
    let get = async |path: &str, encoding| {
        target.client.send("GET", path, &[("authorization", &authorization), ("accept-encoding", encoding)]).await
    };
    let plain = get(path, "identity").await;
    let compressed = get(path, "br, gzip").await;
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), ("", "Accept-Encoding"));
    assert_eq!((compressed.header("content-encoding"), compressed.header("vary")), ("gzip", "Accept-Encoding"));
    assert!(compressed.bytes.len() < plain.bytes.len() / 2);
    let mut body = Vec::new();
    GzDecoder::new(&compressed.bytes[..]).read_to_end(&mut body).unwrap();
    assert_eq!(body, plain.bytes);
    assert_ne!(plain.header("etag"), compressed.header("etag"), "a tag per encoding");
    let small = get(&format!("{path}&page_size=1"), "gzip").await;
    assert_eq!((small.header("content-encoding"), small.header("vary")), ("", ""));
    assert_eq!(get(path, "gzip;q=0").await.header("content-encoding"), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn head_answers_as_get_without_a_body() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let authorization = format!("Bearer {key}");
    for (path, _) in PATHS {
        // Filters to the test's own records: other tests may change the rest between the two requests.
        let filter = match path {
            "/v1/public/catalog" => format!("?kind={}", target.word()),
            "/v1/public/listings" => format!("?item_id={}", target.word()),
            _ => String::new(),
        };
        let path = &format!("{path}{filter}");
        let get = target.client.get(&key, path).await;
        let head = target.client.send("HEAD", path, &[("authorization", &authorization)]).await;
        assert_eq!((head.status, head.bytes.len()), (get.status, 0), "{path}");
        let is_moving = target.is_shared() && path == "/v1/public/marketplaces";
        for name in ["content-type", "etag", "cache-control", "vary", "x-ratelimit-limit"] {
            assert!(is_moving || head.header(name) == get.header(name), "{name} of {path}");
        }
    }
}
