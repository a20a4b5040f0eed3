//! `GET /v1/public/prices/{variant_id}` and `GET /v1/public/marketplaces`.

use serde_json::{Value, json};
use tests::{Target, marketplace, quote};

const HOUR_SECONDS: i64 = 3_600;

/// Adds three marketplaces of the test's own, the last one disabled.
async fn market() -> (Target, [String; 3]) {
    let target = Target::new().await;
    let keys = ["1", "2", "off"].map(|name| format!("{}_{name}", target.word()));
    let [one, two, off] = &keys;
    target.feed(&[marketplace(one, true, 1), marketplace(two, true, 1), marketplace(off, false, 1)]).await;
    (target, keys)
}

fn path(target: &Target, variant: u32) -> String {
    format!("/v1/public/prices/{}", target.uuid(variant))
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_cover_fresh_asks_of_enabled_marketplaces() {
    let (target, [one, two, off]) = market().await;
    let (fresh, aging, stale) =
        (target.ago(HOUR_SECONDS), target.ago(23 * HOUR_SECONDS), target.ago(25 * HOUR_SECONDS));
    target
        .feed(&[
            quote(target.uuid(7), &two, &["12.00", "11.90"], &fresh),
            quote(target.uuid(7), &one, &["13.00", "40"], &aging),
            quote(target.uuid(7), &off, &["0.01"], &fresh),
            quote(target.uuid(7), &format!("{one}_unheard_of"), &["0.02"], &fresh),
            quote(target.uuid(8), &one, &["1.00"], &stale),
        ])
        .await;
    let key = target.full_key().await;
    let upper = path(&target, 7).to_uppercase().replace("/V1/PUBLIC/PRICES", "/v1/public/prices");
    // Prices take up to half a minute to know a new marketplace.
    let reply = target.get_until(&key, &upper, |reply| reply.status == 200 && reply.json()["sample_size"] == 4).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "variant_id": target.uuid(7), "sample_size": 4, "source_keys": [one, two], "lowest_usd": "11.90",
            "mean_usd": "19.22", "median_usd": "12.50", "recommended_list_usd": "11.89",
        })
    );
    let none = target.client.get(&key, &path(&target, 8)).await;
    assert_eq!(none.status, 404);
    assert_eq!(none.json(), json!({"error": {"code": "prices.not_found", "params": {"variant_id": target.uuid(8)}}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_marketplace_is_out_within_a_minute_and_an_enabled_one_in() {
    let (target, [one, _, off]) = market().await;
    let sources = |body: Value| body["source_keys"].clone();
    let asks = [(&one, "5.00"), (&off, "6.00")];
    target.feed(&asks.map(|(key, ask)| quote(target.uuid(7), key, &[ask], &target.ago(HOUR_SECONDS)))).await;
    let key = target.full_key().await;
    let reply = target.get_until(&key, &path(&target, 7), |reply| reply.status == 200).await;
    assert_eq!(sources(reply.json()), json!([one]));
    target.feed(&[marketplace(&one, false, 2), marketplace(&off, true, 2)]).await;
    target.wait(58).await;
    for _ in 0..5 {
        assert_eq!(sources(target.client.get(&key, &path(&target, 7)).await.json()), json!([off]));
    }
}

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
