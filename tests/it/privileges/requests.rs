//! Requests to every route, and the compactions that write the bases.

use runtime::Worker;
use serde_json::Value;
use tests::{Stack, market, uuid};
use types::scope::Scope;

use super::Used;
use crate::access::PATHS;

pub(super) async fn made() -> Used {
    let (stack, user) = (Stack::new().await, uuid(5).into());
    stack.feed(&market(user)).await;
    // An instance that starts without a base reads the entities.
    let (key, _) = stack.key_of(user, &Scope::ALL).await;
    let first = stack.instance().await;
    for path in ["/v1/public/catalog", "/v1/public/listings"] {
        assert_eq!(first.client.get(&key, path).await.status, 200, "{path}");
    }
    // The first run makes a base from the entities; the second instance reads it.
    for _ in 0..2 {
        let compact = stack.compact();
        compact.warm_up().await.unwrap();
        compact.work(Value::Null).await.unwrap();
    }
    let running = stack.instance().await;
    let paths = PATHS.map(|(path, _)| path);
    let others = ["/v1/public/items/ak-47-redline?include=prices", "/v1/openapi.json", "/docs", "/"];
    for path in paths.into_iter().chain(others) {
        let status = running.client.get(&key, path).await.status;
        assert_eq!(status, if path == "/" { 404 } else { 200 }, "{path}");
    }
    // Only behind an edge do the functions look for its secret.
    stack.instance_behind_edge("hush").await;
    stack.ledger.used()
}
