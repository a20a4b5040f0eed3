//! HTTP behaviour: methods, routes, headers, entity tags, compression.
//!
//! What headers tell a client beyond the body: its budget, and the state that an answer was made from.

use std::collections::BTreeSet;
use std::io::Read;
use std::time::{Duration, SystemTime};

use api::routes::PUBLIC;
use common::scope::{Budget, Scope, Tier};
use common::timestamp::Timestamp;
use flate2::read::GzDecoder;
use serde_json::json;
use tests::{HttpReply, PATHS, Target, item, listing, marketplace, quote};

use super::description::{is_moving, market, paths};

/// Asserts that both headers say of this budget what `X-RateLimit-*` say.
pub(super) fn assert_told(reply: &HttpReply, budget: Budget) {
    let ((limit, remaining, reset), name) = (reply.rate(), budget.as_str());
    assert_eq!(reply.header("ratelimit-policy"), format!("\"{name}\";q={limit};w=60"), "{reply:?}");
    assert_eq!(reply.header("ratelimit"), format!("\"{name}\";r={remaining};t={reset}"), "{reply:?}");
}

/// Asserts that no budget is told, because no key was checked.
pub(super) fn assert_untold(reply: &HttpReply) {
    assert!(!reply.headers.contains_key("ratelimit") && !reply.headers.contains_key("ratelimit-policy"), "{reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_its_request_its_budget_and_how_private_it_is_and_head_tells_the_same() {
    let target = Target::new().await;
    let user = target.uuid(100);
    target.feed(&market(&target, user)).await;
    target.wait_for_marketplaces().await;
    let key = target.key_of(user.into(), &Scope::ALL).await.0;
    let authorization = format!("Bearer {key}");
    let mut ids = BTreeSet::new();
    for (path, scope) in &paths(&target) {
        let get = target.client.get(&key, path).await;
        let head = target.client.send("HEAD", path, &[("authorization", &authorization)]).await;
        assert_eq!((get.status, head.status, head.bytes.len()), (200, 200, 0), "{path}");
        let is_own = path.ends_with("/orders") || path.ends_with("/balance");
        assert_eq!(get.header("cache-control"), if is_own { "no-store" } else { "private, no-cache" }, "{path}");
        assert_eq!(get.header("content-type"), "application/json; charset=utf-8", "{path}");
        assert!(get.header("etag").starts_with('"'), "{path}");
        for name in ["content-type", "etag", "cache-control", "vary", "x-ratelimit-limit"] {
            assert!(is_moving(&target, path) || head.header(name) == get.header(name), "{name} of {path}");
        }
        let invalid =
            target.client.get(&key, &format!("{path}{}x=1", if path.contains('?') { '&' } else { '?' })).await;
        let unchanged = [("authorization", authorization.as_str()), ("if-none-match", "*")];
        let unchanged = target.client.send("HEAD", path, &unchanged).await;
        assert_eq!((invalid.status, unchanged.status), (400, 304), "{path}");
        for reply in [get, head, invalid, unchanged] {
            assert_told(&reply, scope.map_or(Budget::Me, Budget::Scope));
            assert_eq!((reply.rate().0, (1..=60).contains(&reply.rate().2)), (Tier::Free.limit(), true), "{path}");
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{path}");
        }
    }
    for path in PUBLIC {
        for method in ["GET", "HEAD", "POST"] {
            let reply = target.client.send(method, path, &[("authorization", &authorization)]).await;
            let caching = if method == "POST" { "no-store" } else { "public, max-age=300" };
            assert_eq!(reply.header("cache-control"), caching, "{method} {path}");
            assert_eq!(reply.header("etag").starts_with('"'), method != "POST", "{method} {path}");
            assert!((1..=60).contains(&reply.rate().2), "{method} {path}");
            assert!(ids.insert(reply.header("x-request-id").to_owned()), "{method} {path}");
            assert_untold(&reply);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_method_is_405_without_a_key() {
    let target = Target::new().await;
    for path in PATHS.iter().map(|(path, _)| path.as_str()).chain(PUBLIC) {
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let reply = target.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method} {path}");
            let params = json!({"method": method});
            assert_eq!(reply.json(), json!({"error": {"code": "routes.method_not_allowed", "params": params}}));
            assert_eq!((reply.rate().0, reply.rate().1), (0, 0));
            assert_untold(&reply);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_route_is_404_without_a_key() {
    let target = Target::new().await;
    for (path, meant) in [
        ("/", Some("/docs")),
        ("/v1", Some("/docs")),
        ("/v1/public/me/", Some("/v1/public/me")),
        ("/v1/public/items", Some("/v1/public/catalog")),
        ("/v1/public/items/", Some("/v1/public/catalog")),
        ("/v1/public/items/a/b", None),
        ("/v1/public/item/a", Some("/v1/public/items/a")),
        ("/v2/public/me", None),
        ("/V1/public/me", Some("/v1/public/me")),
        ("/v1/openapi.json/", Some("/v1/openapi.json")),
        ("//", Some("/docs")),
    ] {
        let params = meant.map_or_else(|| json!({}), |meant| json!({"suggestion": meant}));
        for method in ["GET", "POST", "DELETE"] {
            let reply = target.client.send(method, path, &[]).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            assert_eq!(reply.json(), json!({"error": {"code": "routes.not_found", "params": params}}));
            assert!(!reply.headers.contains_key("allow"), "{method} {path}");
            assert_eq!((reply.rate().0, reply.rate().1, reply.header("cache-control")), (0, 0, "no-store"));
            assert_untold(&reply);
        }
    }
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

const HOUR_SECONDS: i64 = 3_600;

/// The same date as HTTP has it, cut to the second.
fn http_date(rfc3339: &str) -> String {
    let at: Timestamp = rfc3339.parse().unwrap();
    httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + Duration::from_secs(at.seconds().try_into().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn prices_carry_the_date_of_the_newest_quote_and_are_304_until_there_is_a_newer_one() {
    let target = Target::new().await;
    let [one, two] = ["1", "2"].map(|name| format!("{}_{name}", target.word()));
    let [oldest, older, newest] = [3, 2, 1].map(|hours| target.ago(hours * HOUR_SECONDS));
    let quoted = |place: &str, at: &str| quote(target.uuid(7), place, &["5.00"], at);
    target.feed(&[marketplace(&one, true, 1), marketplace(&two, true, 1)]).await;
    target.wait_for_marketplaces().await;
    target.feed(&[quoted(&one, &oldest), quoted(&two, &older)]).await;
    let key = target.full_key().await;
    let path = &format!("/v1/public/prices/{}", target.uuid(7));
    let first = target.client.get(&key, path).await;
    assert_eq!((first.status, first.header("last-modified")), (200, http_date(&older).as_str()));

    let authorization = format!("Bearer {key}");
    let ask = async |condition: &[(&str, &str)]| {
        let headers = [&[("authorization", authorization.as_str())], condition].concat();
        let reply = target.client.send("GET", path, &headers).await;
        (reply.status, reply.bytes.len(), reply.header("last-modified").to_owned())
    };
    let (date, before) = (http_date(&older), http_date(&oldest));
    assert_eq!(ask(&[("if-modified-since", &date)]).await, (304, 0, date.clone()));
    assert_eq!(ask(&[("if-modified-since", &before)]).await.0, 200);
    let another_tag = [("if-modified-since", date.as_str()), ("if-none-match", "\"another\"")];
    assert_eq!(ask(&another_tag).await.0, 200, "the tag decides");
    target.feed(&[quoted(&one, &newest)]).await;
    let (status, _, now) = ask(&[("if-modified-since", &date)]).await;
    assert_eq!((status, now), (200, http_date(&newest)));
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_one_state_carry_one_position_in_the_log_and_those_of_the_next_a_later_one() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let (kind, other) = (target.word(), format!("{}-other", target.word()));
    let items = ["a", "b"].map(|name| item(&format!("{kind}-{name}"), &kind, Some(name), 1));
    target.feed(&items).await;
    let mut sold = listing(1, "10.00", "2026-11-20T10:00:00Z", 1);
    (sold["id"], sold["item_id"]) = (json!(target.uuid(1)), json!(kind));
    target.feed(&[sold.clone()]).await;
    sold["id"] = json!(target.uuid(2));
    sold["item_id"] = json!(other);
    for (path, change) in [
        (format!("/v1/public/catalog?kind={kind}"), item(&other, "another", Some("c"), 1)),
        (format!("/v1/public/listings?item_id={kind}"), sold),
    ] {
        let position = |reply: &HttpReply| reply.header("x-log-position").parse::<u64>().unwrap();
        let first = target.client.get(&key, &format!("{path}&page_size=1")).await;
        let second = target.client.get(&key, &format!("{path}&page_size=1&page=2")).await;
        // Beside other tests the state may move on between two requests.
        assert!(target.is_shared() || position(&first) == position(&second), "{first:?} {second:?}");
        target.feed(&[change]).await;
        // By then every instance answers from a state that has the change.
        target.wait(2).await;
        let authorization = format!("Bearer {key}");
        let condition = [("authorization", authorization.as_str()), ("if-none-match", first.header("etag"))];
        let later = target.client.send("GET", &format!("{path}&page_size=1"), &condition).await;
        assert_eq!(later.status, 304, "the page itself has not changed");
        assert!(position(&later) > position(&first), "{path}");
    }
}
