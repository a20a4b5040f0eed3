//! A message of each type that has all its fields, and none of them is bad.

use serde_json::{Value, json};

use common::event::EventKind;

const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
const TIME: &str = "2026-11-20T10:00:00.000Z";

/// Returns a message of this type, or `None` if there is no such type. The data of an event is that of `event`.
pub(super) fn sample(kind: &str, event: EventKind) -> Option<Value> {
    Some(match kind {
        "marketplace" => json!({
            "type": kind, "key": "a", "name": "A", "link": "https://a.example", "kind": "p2p", "enabled": true,
            "version": 1,
        }),
        "item" => json!({
            "type": kind, "id": "a", "removed": false, "kind": "skin", "name": "A", "slug": "a",
            "image": "https://a.example", "version": 1,
            "variants": [{"variant_id": UUID, "wear": "A", "stattrak": false, "market_hash_name": "A"}],
        }),
        "quote" => json!({
            "type": kind, "variant_id": UUID, "marketplace": "a", "asks_usd": ["1.00"], "observed_at": TIME,
        }),
        "listing" => json!({
            "type": kind, "id": UUID, "id8": "a1b2c3d4", "account_id": UUID, "price_usd": "1.00", "kind": "bot",
            "is_auction": false, "created_at": TIME, "item_id": "a", "variant_id": UUID, "market_hash_name": "A",
            "status": "active", "version": 1,
        }),
        "order" => json!({
            "type": kind, "id": UUID, "account_id": UUID, "status": "delivered", "source": "checkout",
            "total_usd": "1.00", "created_at": TIME, "delivered_at": TIME, "version": 1,
            "items": [{"listing_id": UUID, "price_usd": "1.00", "item_id": "a"}],
        }),
        "balance" => json!({
            "type": kind, "account_id": UUID, "available_usd": "1.00", "store_usd": "1.00", "trade_usd": "0.00",
            "withdrawable_usd": "1.00", "held_usd": "0.00", "escrow_usd": "0.00", "version": 1,
        }),
        "event" => json!({
            "type": kind, "id": UUID, "event": event, "account_id": UUID, "created_at": TIME,
            "data": event.sample_data(),
        }),
        _ => return None,
    })
}
