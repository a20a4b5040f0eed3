//! `GET /v1/public/items/{id}`.

use serde_json::json;
use tests::{Stack, item, uuid};

#[tokio::test(flavor = "multi_thread")]
async fn an_item_comes_with_its_variants() {
    let stack = Stack::new().await;
    stack.feed(&[item("ak-47_red.line~1", "skin", Some("AK-47 | Redline"), 1)]).await;
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, "/v1/public/items/ak-47_red.line~1").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "id": "ak-47_red.line~1", "kind": "skin", "name": "AK-47 | Redline", "slug": "ak-47_red.line~1", "image": null,
            "variants": [{"variant_id": uuid(7), "wear": "Field-Tested", "stattrak": false,
                "market_hash_name": "AK-47 | Redline"}],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_404_with_the_id_asked_for() {
    let stack = Stack::new().await;
    let removal = json!({"type": "item", "id": "gone", "removed": true, "version": 2});
    stack.feed(&[item("gone", "skin", None, 1)]).await;
    stack.feed(&[removal]).await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    for (path, id) in [("gone", "gone"), ("none", "none"), ("a%20b", "a b"), ("%E2%98%85", "★"), ("a%2Fb", "a/b")] {
        let reply = running.client.get(&key, &format!("/v1/public/items/{path}")).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.json(), json!({"error": {"code": "items.not_found", "params": {"id": id}}}));
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_or_equal_version_changes_nothing() {
    use shared::feed::Applied::{Changed, Unchanged};
    let stack = Stack::new().await;
    let versions = [(3, "Three"), (3, "Three again"), (2, "Two"), (4, "Four")];
    for ((version, name), expected) in versions.into_iter().zip([Changed, Unchanged, Unchanged, Changed]) {
        assert_eq!(stack.feed_outcomes(&[item("x", "skin", Some(name), version)]).await, [expected]);
    }
    let in_one_go: Vec<_> = [6, 5, 7].map(|version| item("x", "skin", Some("Later"), version)).into();
    assert_eq!(stack.feed_outcomes(&in_one_go).await, [Changed, Unchanged, Changed]);
    let late = json!({"type": "item", "id": "x", "removed": true, "version": 7});
    assert_eq!(stack.feed_outcomes(&[late]).await, [Unchanged]);
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, "/v1/public/items/x").await;
    assert_eq!(reply.json()["name"], "Later");
}
