//! What a request costs: a warm one costs one sequential DynamoDB round trip, on every endpoint.
//!
//! A request that did not come through the deployment's edge costs nothing (specification 7.2.4).

use std::time::Duration;

use api::origin::ORIGIN_HEADER;
use common::scope::Scope;
use serde_json::json;
use tests::{AwsCall, Fault, PATHS, Stack, item_with_variants, market, uuid};

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_request_costs_one_round_trip() {
    let stack = Stack::new().await;
    let user = uuid(1);
    stack.feed(&market(user.into())).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (key, _) = stack.key_of(user.into(), &Scope::ALL).await;
    for (path, _) in PATHS.iter() {
        assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
    }
    // Calls are slow enough for those sent together to overlap on a busy machine.
    proxy.set_fault(Fault::Slow(Duration::from_millis(250)));
    // After one second replicas follow their log again; after 31 seconds `prices` reads the marketplaces again.
    for pause in [0, 1, 31] {
        running.wait(pause);
        for (path, _) in PATHS.iter() {
            proxy.take_calls();
            assert_eq!(running.client.get(&key, path).await.status, 200, "{path}");
            let calls = proxy.take_calls();
            let writes = AwsCall::count(&calls, "UpdateItem");
            assert_eq!((AwsCall::round_trips(&calls), writes), (1, 1), "{path} after {pause} s: {calls:?}");
            assert!(calls.len() <= 3, "{path}: {calls:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prices_of_an_items_variants_cost_one_round_trip_more() {
    let stack = Stack::new().await;
    stack.feed(&[item_with_variants("ten", 10)]).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let get = async || {
        proxy.take_calls();
        let reply = running.client.get(&key, "/v1/public/items/ten?include=prices").await;
        assert_eq!(reply.status, 200);
        proxy.take_calls()
    };
    get().await;
    proxy.set_fault(Fault::Slow(Duration::from_millis(250)));
    // After 31 seconds the marketplaces are read again, at the same time as the quotes.
    for (pause, queries) in [(0, 10), (31, 11)] {
        running.wait(pause);
        let calls = get().await;
        assert_eq!(AwsCall::round_trips(&calls), 2, "after {pause} s: {calls:?}");
        assert_eq!(
            ["UpdateItem", "GetItem", "Query"].map(|name| AwsCall::count(&calls, name)),
            [1, 1, queries],
            "{calls:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_key_and_another_method_cost_no_call() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    proxy.take_calls();
    for (path, _) in PATHS.iter() {
        assert_eq!(running.client.get("sk_nonsense", path).await.status, 401);
        // Not every gateway passes on OPTIONS.
        for method in ["POST", "OPTIONS"] {
            let reply = running.client.send(method, path, &[]).await;
            assert_eq!((reply.status, reply.header("allow")), (405, "GET, HEAD"), "{method} {path}");
        }
    }
    assert_eq!(proxy.take_calls().len(), 0);
}

/// Every path, those that need no key and those that do not exist included.
fn paths() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|(path, _)| path.as_str()).chain(["/v1/openapi.json", "/docs", "/nowhere"])
}

#[tokio::test(flavor = "multi_thread")]
async fn with_a_secret_nothing_but_the_edge_gets_in_and_nothing_is_read() {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    stack.feed(&market(user)).await;
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    let key = format!("Bearer {key}");
    let (running, proxy) = stack.instance_behind_edge("right").await;
    proxy.take_calls();
    let refused = json!({"error": {"code": "hosts.not_allowed", "params": {}}});
    for path in paths() {
        for method in ["GET", "POST"] {
            for secret in [None, Some(""), Some("wrong"), Some("right, right")] {
                let mut headers = vec![("authorization", key.as_str())];
                headers.extend(secret.map(|secret| (ORIGIN_HEADER, secret)));
                let reply = running.client.send(method, path, &headers).await;
                assert_eq!((reply.status, reply.json()), (403, refused.clone()), "{method} {path} {secret:?}");
                assert_eq!(reply.header("cache-control"), "no-store");
            }
        }
    }
    assert_eq!(proxy.take_operations(), [""; 0]);
    for path in paths() {
        let reply = running.client.send("GET", path, &[("authorization", &key), (ORIGIN_HEADER, "right")]).await;
        assert_eq!(reply.status, if path == "/nowhere" { 404 } else { 200 }, "{path}");
    }
}
