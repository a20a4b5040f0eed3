//! The check that a request came through the deployment's edge (specification 7.2.4).

use api::origin::{ORIGIN_HEADER, ORIGIN_VARIABLE};
use local::environment::Variables;
use serde_json::json;
use tests::{PATHS, RuntimeApi, Stack, market, uuid};
use types::scope::Scope;

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

#[tokio::test(flavor = "multi_thread")]
async fn two_secrets_are_accepted_during_a_rotation() {
    let stack = Stack::new().await;
    let (running, _proxy) = stack.instance_behind_edge("old new").await;
    for (secret, status) in [("old", 200), ("new", 200), ("old new", 403)] {
        let reply = running.client.send("GET", "/docs", &[(ORIGIN_HEADER, secret)]).await;
        assert_eq!(reply.status, status, "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_shows_in_a_log() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url).with(ORIGIN_VARIABLE, "hush-1 hush-2");
    for (function, path) in [("me", "/v1/public/me"), ("openapi", "/docs")] {
        let mut running = RuntimeApi::run(function, &variables).await;
        for (sent, is_accepted) in [("hush-3", false), ("hush-1", true), ("hush-2", true)] {
            let answer = running.invoke(RuntimeApi::event(path, path, "", &json!({ORIGIN_HEADER: sent}))).await;
            assert_eq!(answer["statusCode"] != 403, is_accepted, "{function} {sent}");
        }
        let log = running.log();
        assert!(log.contains("\"status\":403") && !log.contains("hush"), "{log}");
    }
}
