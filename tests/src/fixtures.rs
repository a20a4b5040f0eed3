//! Messages of the feed for tests, and the paths that they give an answer.

use std::sync::LazyLock;

use api::routes::{CHANGES, ROUTES, Route};
use common::ids::UserId;
use common::scope::Scope;
use serde_json::{Value, json};
use uuid::Uuid;

/// A path of each route that needs a key, and the scope it needs. After [`market()`] each answers with 200.
pub static PATHS: LazyLock<Vec<(String, Option<Scope>)>> = LazyLock::new(|| {
    let variant = uuid(7).to_string();
    let segment = |segment: &'static str| match segment {
        "{id}" => "ak-47-redline".to_owned(),
        "{variant_id}" => variant.clone(),
        fixed => {
            assert!(!fixed.starts_with('{'), "which {fixed} has an answer?");
            fixed.to_owned()
        }
    };
    let path = |route: &Route| {
        let path = route.path.split('/').map(segment).collect::<Vec<_>>().join("/");
        if *route == CHANGES { path + "?after=0" } else { path }
    };
    ROUTES.iter().filter_map(|route| Some((path(route), route.budget?.scope()))).collect()
});

/// Returns messages that give every path of the API an answer for this user.
pub fn market(user: UserId) -> Vec<Value> {
    vec![
        item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1),
        marketplace("one", true, 1),
        quote(uuid(7), "one", &["5.00"], "2026-11-20T11:00:00Z"),
        listing(1, "1.00", "2026-11-20T10:00:00Z", 1),
        order(user, 1, "2026-11-20T10:00:00Z", 1),
        balance(user, "1.00", "2.00", "3.00", 1),
    ]
}

/// Returns the UUID with this number.
pub fn uuid(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

pub fn item(id: &str, kind: &str, name: Option<&str>, version: u64) -> Value {
    json!({
        "type": "item", "id": id, "kind": kind, "name": name, "slug": id, "image": null,
        "variants": [{"variant_id": uuid(7), "wear": "Field-Tested", "stattrak": false, "market_hash_name": name}],
        "version": version,
    })
}

/// Returns an item that takes some 4 KB of the log. Its name consists of this letter.
pub fn large_item(number: u32, letter: &str, version: u64) -> Value {
    let mut item = item(&format!("i{number}"), "skin", Some(&letter.repeat(1_000)), version);
    (item["slug"], item["image"]) = (json!("s".repeat(1_000)), json!(format!("https://{}", "i".repeat(2_000))));
    item
}

/// Returns the message about an item with this many variants.
pub fn item_with_variants(id: &str, count: u128) -> Value {
    let mut item = item(id, "skin", None, 1);
    let variant =
        |number| json!({"variant_id": uuid(number), "wear": null, "stattrak": false, "market_hash_name": null});
    item["variants"] = (100..100 + count).map(variant).collect();
    item
}

/// Returns a listing whose id is the UUID with this number.
pub fn listing(number: u32, price_usd: &str, created_at: &str, version: u64) -> Value {
    json!({
        "type": "listing", "id": uuid(u128::from(number)), "id8": format!("{number:08x}"),
        "account_id": uuid(1), "price_usd": price_usd, "kind": "bot", "is_auction": false, "created_at": created_at,
        "item_id": "ak-47-redline", "variant_id": uuid(7), "market_hash_name": "AK-47 | Redline (Field-Tested)",
        "status": "active", "version": version,
    })
}

/// Returns the listing with this number, sold.
pub fn sold_listing(number: u32, version: u64) -> Value {
    let mut message = listing(number, "1.00", "2026-11-20T10:00:00Z", version);
    message["status"] = json!("sold");
    message
}

pub fn marketplace(key: &str, enabled: bool, version: u64) -> Value {
    json!({
        "type": "marketplace", "key": key, "name": key.to_uppercase(), "link": format!("https://{key}.example"),
        "kind": "p2p", "enabled": enabled, "version": version,
    })
}

pub fn quote(variant: Uuid, marketplace: &str, asks_usd: &[&str], observed_at: &str) -> Value {
    json!({
        "type": "quote", "variant_id": variant, "marketplace": marketplace, "asks_usd": asks_usd,
        "observed_at": observed_at,
    })
}

/// Returns an order whose id is the UUID with this number.
pub fn order(user: UserId, number: u32, created_at: &str, version: u64) -> Value {
    json!({
        "type": "order", "id": uuid(u128::from(number)), "account_id": user, "status": "delivered",
        "source": "checkout", "total_usd": "12.50", "created_at": created_at, "delivered_at": created_at,
        "items": [{"listing_id": uuid(9), "price_usd": "12.50", "item_id": "ak-47-redline"}], "version": version,
    })
}

pub fn balance(user: UserId, store: &str, trade: &str, available: &str, version: u64) -> Value {
    json!({
        "type": "balance", "account_id": user, "available_usd": available, "store_usd": store, "trade_usd": trade,
        "withdrawable_usd": store, "held_usd": "2.50", "escrow_usd": "0.00", "version": version,
    })
}
