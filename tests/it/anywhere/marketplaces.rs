//! `GET /v1/public/marketplaces`.

use serde_json::{Value, json};
use tests::{Target, marketplace};

#[tokio::test(flavor = "multi_thread")]
async fn all_marketplaces_are_listed_by_key_including_disabled_ones() {
    let target = Target::new().await;
    let key = target.full_key().await;
    let word = target.word();
    let [alpha, zeta] = ["alpha", "zeta"].map(|name| format!("{word}_{name}"));
    let own = async || {
        let reply = target.client.get(&key, "/v1/public/marketplaces").await;
        assert_eq!(reply.status, 200);
        let all = reply.json().as_array().unwrap().clone();
        assert!(all.is_sorted_by_key(|record| record["key"].as_str().unwrap().to_owned()), "{all:?}");
        let is_own = |record: &Value| !target.is_shared() || record["key"].as_str().unwrap().starts_with(&word);
        all.into_iter().filter(is_own).collect::<Vec<_>>()
    };
    assert!(own().await.is_empty());
    target.feed(&[marketplace(&zeta, true, 1), marketplace(&alpha, false, 1)]).await;
    let record = |key: &str, enabled: bool| {
        json!({"key": key, "name": key.to_uppercase(), "link": format!("https://{key}.example"), "kind": "p2p",
            "enabled": enabled})
    };
    assert_eq!(own().await, [record(&alpha, false), record(&zeta, true)]);
}
