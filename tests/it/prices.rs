//! `GET /v1/public/prices/{variant_id}` as time passes, and the prices that an item includes.

use common::scope::Tier;
use serde_json::json;
use tests::{AwsCall, Stack, item_with_variants, marketplace, quote, uuid};

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
async fn prices_are_included_with_at_most_25_variants() {
    let stack = Stack::new().await;
    stack.feed(&[item_with_variants("few", 25), item_with_variants("many", 26)]).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = stack.full_key().await;
    let left = |requests| Tier::Free.limit() - requests;
    let get = async |id: &str, include: &str| {
        let reply = running.client.get(&key, &format!("/v1/public/items/{id}{include}")).await;
        let queries = AwsCall::count(&proxy.take_calls(), "Query");
        ((reply.status, reply.rate().1, queries), reply.json()["error"]["fields"].clone())
    };
    proxy.take_calls();
    // The first request reads the marketplaces, too.
    assert_eq!(get("few", "?include=prices").await.0, (200, left(1), 26));
    assert_eq!(get("many", "").await.0, (200, left(2), 0));
    let refused = json!([{"field": "include", "code": "too_many", "params": {"max": 25, "found": 26}}]);
    assert_eq!(get("many", "?include=prices").await, ((400, left(3), 0), refused));
}
