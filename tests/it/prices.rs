//! `GET /v1/public/prices/{variant_id}`.

use serde_json::json;
use tests::{Stack, marketplace, quote, uuid};

const FRESH: &str = "2026-11-20T11:00:00Z";

fn path() -> String {
    format!("/v1/public/prices/{}", uuid(7))
}

async fn market() -> Stack {
    let stack = Stack::new().await;
    stack.feed(&[marketplace("one", true, 1), marketplace("two", true, 1), marketplace("off", false, 1)]).await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_cover_fresh_asks_of_enabled_marketplaces() {
    let stack = market().await;
    let stale = "2026-11-19T11:59:59.999Z";
    stack
        .feed(&[
            quote(uuid(7), "two", &["12.00", "11.90"], FRESH),
            quote(uuid(7), "one", &["13.00", "40"], "2026-11-19T12:00:00Z"),
            quote(uuid(7), "off", &["0.01"], FRESH),
            quote(uuid(7), "unheard_of", &["0.02"], FRESH),
            quote(uuid(8), "one", &["1.00"], stale),
        ])
        .await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let reply =
        running.client.get(&key, &path().to_uppercase().replace("/V1/PUBLIC/PRICES", "/v1/public/prices")).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "variant_id": uuid(7), "sample_size": 4, "source_keys": ["one", "two"], "lowest_usd": "11.90",
            "mean_usd": "19.22", "median_usd": "12.50", "recommended_list_usd": "11.89",
        })
    );
    let none = running.client.get(&key, &format!("/v1/public/prices/{}", uuid(8))).await;
    assert_eq!(none.status, 404);
    assert_eq!(none.json(), json!({"error": {"code": "prices.not_found", "params": {"variant_id": uuid(8)}}}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_date_does_not_hide_that_a_quote_has_grown_too_old() {
    let stack = market().await;
    let older = "2026-11-20T08:00:00Z";
    stack.feed(&[quote(uuid(7), "one", &["5.00"], older), quote(uuid(7), "two", &["6.00"], FRESH)]).await;
    let running = stack.instance().await;
    let authorization = format!("Bearer {}", stack.full_key().await);
    let ask = async || {
        let condition = [("authorization", &*authorization), ("if-modified-since", "Fri, 20 Nov 2026 11:00:00 GMT")];
        let reply = running.client.send("GET", &path(), &condition).await;
        (reply.status, reply.header("last-modified").to_owned())
    };
    let date = "Fri, 20 Nov 2026 11:00:00 GMT".to_owned();
    // The clock begins at noon, so the older quote has twenty hours left.
    running.wait(20 * 3_600);
    assert_eq!(ask().await, (304, date.clone()));
    running.wait(1);
    assert_eq!(ask().await, (200, date));
}

#[tokio::test(flavor = "multi_thread")]
async fn quotes_age_out_after_a_day() {
    let stack = market().await;
    stack.feed(&[quote(uuid(7), "one", &["5.00"], "2026-11-20T12:00:00Z")]).await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    running.wait(24 * 3_600);
    assert_eq!(running.client.get(&key, &path()).await.status, 200);
    running.wait(1);
    assert_eq!(running.client.get(&key, &path()).await.status, 404);
}
