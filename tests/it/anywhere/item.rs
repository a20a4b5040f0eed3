//! `GET /v1/public/items/{id}`.

use serde_json::json;
use tests::{Target, item, uuid};

#[tokio::test(flavor = "multi_thread")]
async fn an_item_comes_with_its_variants() {
    let target = Target::new().await;
    let id = format!("ak-47_red.line~{}", target.word());
    target.feed(&[item(&id, "skin", Some("AK-47 | Redline"), 1)]).await;
    let reply = target.client.get(&target.full_key().await, &format!("/v1/public/items/{id}")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "id": id, "kind": "skin", "name": "AK-47 | Redline", "slug": id, "image": null,
            "variants": [{"variant_id": uuid(7), "wear": "Field-Tested", "stattrak": false,
                "market_hash_name": "AK-47 | Redline"}],
        })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_item_is_404_with_the_id_asked_for() {
    let target = Target::new().await;
    let gone = format!("{}-gone", target.word());
    let removal = json!({"type": "item", "id": gone, "removed": true, "version": 2});
    target.feed(&[item(&gone, "skin", None, 1)]).await;
    target.feed(&[removal]).await;
    let key = target.full_key().await;
    for (path, id) in [(gone.as_str(), gone.as_str()), ("none", "none"), ("a%20b", "a b"), ("%E2%98%85", "★")] {
        let reply = target.client.get(&key, &format!("/v1/public/items/{path}")).await;
        assert_eq!(reply.status, 404, "{path}");
        assert_eq!(reply.json(), json!({"error": {"code": "items.not_found", "params": {"id": id}}}));
        assert_eq!(reply.header("cache-control"), "no-store");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_or_equal_version_changes_nothing() {
    use feed::ApplyOutcome::{Changed, Unchanged};
    let target = Target::new().await;
    let id = target.word();
    let versions = [(3, "Three"), (3, "Three again"), (2, "Two"), (4, "Four")];
    for ((version, name), expected) in versions.into_iter().zip([Changed, Unchanged, Unchanged, Changed]) {
        assert_eq!(target.feed_outcomes(&[item(&id, "skin", Some(name), version)]).await, [expected]);
    }
    let in_one_go: Vec<_> = [6, 5, 7].map(|version| item(&id, "skin", Some("Later"), version)).into();
    assert_eq!(target.feed_outcomes(&in_one_go).await, [Unchanged, Unchanged, Changed]);
    let late = json!({"type": "item", "id": id, "removed": true, "version": 7});
    assert_eq!(target.feed_outcomes(&[late]).await, [Unchanged]);
    let reply = target.client.get(&target.full_key().await, &format!("/v1/public/items/{id}")).await;
    assert_eq!(reply.json()["name"], "Later");
}
