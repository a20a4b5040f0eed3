//! `GET /v1/public/listings`.

use feed::ApplyOutcome::Unchanged;
use serde_json::{Value, json};
use tests::{Target, listing};

fn day(day: u32) -> String {
    format!("2026-11-{day:02}T10:00:00Z")
}

/// Returns a listing with the test's id of this number, of the test's own item and variant.
fn own(target: &Target, listing: Value, item: &str, variant: u32) -> Value {
    let mut listing = listing;
    let number = u32::from_str_radix(listing["id8"].as_str().unwrap(), 16).unwrap();
    listing["id"] = json!(target.uuid(number));
    listing["item_id"] = json!(format!("{}-{item}", target.word()));
    listing["variant_id"] = json!(target.uuid(variant));
    listing
}

async fn market() -> Target {
    let target = Target::new().await;
    let listings = [
        (listing(1, "10.00", &day(1), 1), "ak", 1),
        (listing(2, "5", &day(2), 1), "ak", 2),
        (listing(3, "10.00", &day(3), 1), "awp", 3),
        (listing(4, "20.5", &day(3), 1), "awp", 3),
        (listing(5, "10.00", &day(3), 1), "ak", 1),
    ];
    target.feed(&listings.map(|(listing, item, variant)| own(&target, listing, item, variant))).await;
    target
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_shows_every_field() {
    let target = Target::new().await;
    let mut nameless = own(&target, listing(1, "12.5", "2026-11-20T12:00:00.999999+02:00", 1), "ak", 7);
    let mut single = nameless.clone();
    for field in ["item_id", "market_hash_name"] {
        nameless[field] = Value::Null;
    }
    (nameless["kind"], nameless["is_auction"]) = (json!("p2p"), json!(true));
    (single["id"], single["variant_id"]) = (json!(target.uuid(2)), Value::Null);
    let full = own(&target, listing(0xa1b2_c3d4, "0.03", "2026-11-20T11:00:00Z", 1), "ak", 7);
    target.feed(&[nameless, single, full]).await;

    let item = format!("{}-ak", target.word());
    let full = json!({
        "id": target.uuid(0xa1b2_c3d4), "id8": "a1b2c3d4", "price_usd": "0.03", "kind": "bot", "is_auction": false,
        "created_at": "2026-11-20T11:00:00.000Z", "item_id": item, "variant_id": target.uuid(7),
        "market_hash_name": "AK-47 | Redline (Field-Tested)",
    });
    let nameless = json!({
        "id": target.uuid(1), "id8": "00000001", "price_usd": "12.50", "kind": "p2p", "is_auction": true,
        "created_at": "2026-11-20T10:00:00.999Z", "item_id": null, "variant_id": target.uuid(7),
        "market_hash_name": null,
    });
    let single = json!({
        "id": target.uuid(2), "id8": "00000001", "price_usd": "12.50", "kind": "bot", "is_auction": false,
        "created_at": "2026-11-20T10:00:00.999Z", "item_id": item, "variant_id": null,
        "market_hash_name": "AK-47 | Redline (Field-Tested)",
    });
    let key = target.full_key().await;
    for (query, second) in [(format!("variant_id={}", target.uuid(7)), nameless), (format!("item_id={item}"), single)] {
        let reply = target.client.get(&key, &format!("/v1/public/listings?{query}")).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json(), json!({"items": [full, second], "page": 1, "page_size": 50, "total": 2}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_and_sorts_combine_and_ties_are_settled() {
    let target = market().await;
    let key = target.full_key().await;
    let (ak, awp) = (format!("item_id={}-ak", target.word()), format!("item_id={}-awp", target.word()));
    let variant = |number| format!("variant_id={}", target.uuid(number));
    for (query, expected) in [
        (ak.clone(), vec![5, 2, 1]),
        (format!("{awp}&sort=newest"), vec![3, 4]),
        (format!("{ak}&sort=price_asc"), vec![2, 5, 1]),
        (format!("{ak}&sort=price_desc"), vec![5, 1, 2]),
        (format!("{awp}&sort=price_desc"), vec![4, 3]),
        (variant(1), vec![5, 1]),
        (format!("{}&{ak}", variant(3)), vec![]),
        (format!("{}&{awp}&max_price=10", variant(3)), vec![3]),
        (format!("{ak}&min_price=10&max_price=10.00"), vec![5, 1]),
        (format!("{awp}&min_price=10.01"), vec![4]),
        (format!("{ak}&max_price=9.99&sort=price_desc"), vec![2]),
        (format!("min_price=5&sort=price_desc&{ak}"), vec![5, 1, 2]),
        (format!("{ak}&page_size=1&page=2"), vec![2]),
        (variant(99), vec![]),
    ] {
        let reply = target.client.get(&key, &format!("/v1/public/listings?{query}")).await;
        let expected: Vec<String> = expected.into_iter().map(|number| target.uuid(number).to_string()).collect();
        let total = if query.contains("page_size") { 3 } else { expected.len() as u64 };
        assert_eq!((reply.json()["total"].as_u64(), reply.ids()), (Some(total), expected), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sold_and_cancelled_listings_are_gone_and_stay_gone() {
    let target = market().await;
    let ak = |number, price, day: &str, version| own(&target, listing(number, price, day, version), "ak", 1);
    let mut sold = ak(5, "10.00", &day(3), 2);
    sold["status"] = json!("sold");
    let mut cancelled = ak(9, "10.00", &day(3), 5);
    cancelled["status"] = json!("cancelled");
    target.feed(&[sold, cancelled]).await;
    let late = target.feed_outcomes(&[ak(5, "10.00", &day(3), 1), ak(9, "1.00", &day(9), 4)]).await;
    assert_eq!(late, [Unchanged, Unchanged]);
    let path = format!("/v1/public/listings?item_id={}-ak&page_size=1&page=2", target.word());
    let reply = target.client.get(&target.full_key().await, &path).await;
    assert_eq!((reply.ids(), &reply.json()["total"]), (vec![target.uuid(1).to_string()], &json!(2)));
}
