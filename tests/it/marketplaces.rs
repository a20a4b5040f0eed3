//! `GET /v1/public/marketplaces`.

use serde_json::json;
use tests::{Stack, marketplace};

#[tokio::test(flavor = "multi_thread")]
async fn all_are_listed_by_key_disabled_ones_included() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    assert_eq!(running.client.get(&key, "/v1/public/marketplaces").await.json(), json!([]));
    stack.feed(&[marketplace("zeta", true, 1), marketplace("alpha", false, 1)]).await;
    let reply = running.client.get(&key, "/v1/public/marketplaces").await;
    assert_eq!(reply.status, 200);
    let record = |key: &str, name: &str, enabled: bool| json!({"key": key, "name": name, "link": format!("https://{key}.example"), "kind": "p2p", "enabled": enabled});
    assert_eq!(reply.json(), json!([record("alpha", "ALPHA", false), record("zeta", "ZETA", true)]));
}
