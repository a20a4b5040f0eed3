//! `GET /v1/public/listings`.

use serde_json::{Value, json};
use tests::{Stack, listing, uuid};

fn day(day: u32) -> String {
    format!("2026-11-{day:02}T10:00:00Z")
}

fn of(mut listing: Value, item: &str, variant: u128) -> Value {
    listing["item_id"] = json!(item);
    listing["variant_id"] = json!(uuid(variant));
    listing
}

async fn market() -> Stack {
    let stack = Stack::new().await;
    stack
        .feed(&[
            of(listing(1, "10.00", &day(1), 1), "ak", 1),
            of(listing(2, "5", &day(2), 1), "ak", 2),
            of(listing(3, "10.00", &day(3), 1), "awp", 3),
            of(listing(4, "20.5", &day(3), 1), "awp", 3),
            of(listing(5, "10.00", &day(3), 1), "ak", 1),
        ])
        .await;
    stack
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_every_field() {
    let stack = Stack::new().await;
    let mut bare = listing(1, "12.5", "2026-11-20T12:00:00.999999+02:00", 1);
    for field in ["item_id", "variant_id", "market_hash_name"] {
        bare[field] = Value::Null;
    }
    bare["kind"] = json!("p2p");
    bare["is_auction"] = json!(true);
    stack.feed(&[bare, listing(0xa1b2_c3d4, "0.03", "2026-11-20T11:00:00Z", 1)]).await;
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(reply.status, 200);
    let full = json!({
        "id": uuid(0xa1b2_c3d4), "id8": "a1b2c3d4", "price_usd": "0.03", "kind": "bot", "is_auction": false,
        "created_at": "2026-11-20T11:00:00.000Z", "item_id": "ak-47-redline", "variant_id": uuid(7),
        "market_hash_name": "AK-47 | Redline (Field-Tested)",
    });
    let bare = json!({
        "id": uuid(1), "id8": "00000001", "price_usd": "12.50", "kind": "p2p", "is_auction": true,
        "created_at": "2026-11-20T10:00:00.999Z", "item_id": null, "variant_id": null, "market_hash_name": null,
    });
    assert_eq!(reply.json(), json!({"items": [full, bare], "page": 1, "page_size": 50, "total": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_sorts_combine_and_ties_are_settled() {
    let stack = market().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    let variant = uuid(3);
    for (query, expected) in [
        (String::new(), vec![3, 4, 5, 2, 1]),
        ("sort=newest".to_owned(), vec![3, 4, 5, 2, 1]),
        ("sort=price_asc".to_owned(), vec![2, 3, 5, 1, 4]),
        ("sort=price_desc".to_owned(), vec![4, 3, 5, 1, 2]),
        ("item_id=ak".to_owned(), vec![5, 2, 1]),
        ("item_id=ak&sort=price_asc".to_owned(), vec![2, 5, 1]),
        (format!("variant_id={variant}"), vec![3, 4]),
        (format!("variant_id={variant}&item_id=ak"), vec![]),
        (format!("variant_id={variant}&item_id=awp&max_price=10"), vec![3]),
        ("min_price=10&max_price=10.00".to_owned(), vec![3, 5, 1]),
        ("min_price=10.01".to_owned(), vec![4]),
        ("max_price=9.99&sort=price_desc".to_owned(), vec![2]),
        ("min_price=5&sort=price_desc&item_id=ak".to_owned(), vec![5, 1, 2]),
        ("item_id=unknown".to_owned(), vec![]),
        (format!("variant_id={}", uuid(99)), vec![]),
    ] {
        let reply = running.client.get(&key, &format!("/v1/public/listings?{query}")).await;
        let expected: Vec<String> = expected.into_iter().map(|n: u128| uuid(n).to_string()).collect();
        assert_eq!((reply.json()["total"].as_u64(), reply.ids()), (Some(expected.len() as u64), expected), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_and_cancelled_listings_are_gone_and_stay_gone() {
    let stack = market().await;
    let mut sold = listing(3, "10.00", &day(3), 2);
    sold["status"] = json!("sold");
    let mut cancelled = listing(9, "10.00", &day(3), 5);
    cancelled["status"] = json!("cancelled");
    stack.feed(&[sold, cancelled]).await;
    let late = stack.feed_outcomes(&[listing(3, "10.00", &day(3), 1), listing(9, "1.00", &day(9), 4)]).await;
    assert_eq!(late, [shared::feed::Applied::Unchanged, shared::feed::Applied::Unchanged]);
    let running = stack.instance().await;
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings?page_size=2&page=2").await;
    assert_eq!(reply.ids(), [uuid(2).to_string(), uuid(1).to_string()]);
    assert_eq!(reply.json()["total"], 4);
}
