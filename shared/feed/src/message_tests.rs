use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

const UUID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

fn now() -> Timestamp {
    "2026-11-20T12:00:00Z".parse().unwrap()
}

fn examples() -> Vec<Value> {
    vec![
        json!({"type": "marketplace", "key": "skinport", "name": "Skinport", "link": "https://skinport.example",
            "kind": "p2p", "enabled": true, "version": 1}),
        json!({"type": "item", "id": "ak-47-redline", "kind": "skin", "name": "AK-47 | Redline", "slug": "ak-47-redline",
            "image": "https://img.example/1.png", "variants": [{"variant_id": UUID, "wear": "Field-Tested",
            "stattrak": false, "market_hash_name": "AK-47 | Redline (Field-Tested)"}], "version": 1}),
        json!({"type": "item", "id": "ak-47-redline", "removed": true, "version": 2}),
        json!({"type": "quote", "variant_id": UUID, "marketplace": "skinport", "asks_usd": ["11.90", "12.00"],
            "observed_at": "2026-11-20T10:00:00Z"}),
        json!({"type": "listing", "id": UUID, "id8": "a1b2c3d4", "account_id": UUID, "price_usd": "12.50",
            "kind": "bot", "is_auction": false, "created_at": "2026-11-20T10:00:00+02:00", "item_id": "ak-47-redline",
            "variant_id": UUID, "market_hash_name": "AK-47 | Redline", "status": "active", "version": 1}),
        json!({"type": "order", "id": UUID, "account_id": UUID, "status": "awaiting_delivery", "source": "checkout",
            "total_usd": "12.50", "created_at": "2026-11-20T10:00:00Z", "delivered_at": null,
            "items": [{"listing_id": UUID, "price_usd": "12.50", "item_id": "ak-47-redline"}], "version": 1}),
        json!({"type": "balance", "account_id": UUID, "available_usd": "15.00", "store_usd": "10.00",
            "trade_usd": "5.00", "withdrawable_usd": "10.00", "held_usd": "0.00", "escrow_usd": "0.00", "version": 1}),
        json!({"type": "event", "id": UUID, "event": "listing.sold", "account_id": UUID,
            "created_at": "2026-11-20T10:00:00Z", "data": {"listing_id": UUID, "order_id": UUID, "price_usd": "12.50",
            "kind": "bot"}}),
    ]
}

fn refusal(message: &Value) -> Rejection {
    parse(&message.to_string(), now()).unwrap_err()
}

/// Returns an example with one field changed or added.
fn with(example: usize, pointer: &str, value: Value) -> Value {
    let mut message = examples().remove(example);
    if let Some(known) = message.pointer_mut(pointer) {
        *known = value;
    } else {
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        message.pointer_mut(parent).unwrap()[name] = value;
    }
    message
}

#[test]
fn every_field_is_strict_and_named() {
    let cases = [
        (with(0, "/link", json!("ftp://x")), "link"),
        (with(0, "/link", json!("https:///x")), "link"),
        (with(1, "/image", json!("https://h/100%.png")), "image"),
        (with(0, "/kind", json!("P2P")), "kind"),
        (with(0, "/extra", json!(1)), "extra"),
        (with(0, "/version", json!(-1)), "version"),
        (with(0, "/version", json!("1")), "version"),
        (with(0, "/version", json!(9_223_372_036_854_775_808_u64)), "version"),
        (with(6, "/version", json!(u64::MAX)), "version"),
        (with(1, "/id", json!("no spaces")), "id"),
        (with(1, "/variants/0/variant_id", json!("x")), "variants[0].variant_id"),
        (with(1, "/variants/0/colour", json!("red")), "variants[0].colour"),
        (with(1, "/name", json!("tab\t")), "name"),
        (with(2, "/name", json!("gone")), "name"),
        (with(3, "/asks_usd/1", json!("1.234")), "asks_usd[1]"),
        (with(3, "/asks_usd/0", json!("-1")), "asks_usd[0]"),
        (with(3, "/asks_usd/0", json!(11.9)), "asks_usd[0]"),
        (with(3, "/observed_at", json!("2026-11-20T12:05:00.001Z")), "observed_at"),
        (with(4, "/id8", json!("A1B2C3D4")), "id8"),
        (with(4, "/kind", json!("drone")), "kind"),
        (with(4, "/status", json!("paused")), "status"),
        (with(4, "/created_at", json!("yesterday")), "created_at"),
        (with(4, "/created_at", json!("2026-11-21T12:00:00.001Z")), "created_at"),
        (with(5, "/created_at", json!("9999-12-31T23:59:59Z")), "created_at"),
        (with(5, "/source", json!("gift")), "source"),
        (with(5, "/items/0/item_id", json!("ß")), "items[0].item_id"),
        (with(6, "/available_usd", json!("15.01")), "available_usd"),
        (with(6, "/held_usd", json!("-0.01")), "held_usd"),
        (with(7, "/event", json!("listing.renamed")), "event"),
        (with(7, "/version", json!(1)), "version"),
        (with(7, "/data/price_usd", json!("12.505")), "data.price_usd"),
        (with(1, "/variants/0", json!([UUID, "FT", false, "x"])), "variants[0]"),
        (with(5, "/items/0", json!([UUID, "1.00", "x"])), "items[0]"),
        (with(1, "/colour at line 3", json!(1)), "colour at line 3"),
        (json!({"type": "gossip"}), "type"),
        (json!({"type": 7}), "type"),
        (json!({}), "type"),
        (json!({"type": "item", "id": "x", "version": 1}), "kind"),
        (json!({"type": "item", "kind": "skin", "version": 1}), "id"),
    ];
    for (message, field) in cases {
        let refused = refusal(&message);
        assert_eq!(refused.field, field, "{message}: {refused}");
        assert!(!refused.reason.is_empty());
        assert!(refused.others.is_empty(), "{message}: {:?}", refused.others);
    }
}

#[test]
fn a_sample_of_each_type_has_no_bad_field() {
    for kind in ["marketplace", "item", "quote", "listing", "order", "balance", "event"] {
        for event in EventKind::ALL {
            let sample = sample(kind, event).unwrap().to_string();
            assert!(parse(&sample, now()).is_ok(), "{sample}");
        }
    }
}

/// Returns every field for which a message is refused.
fn refused_fields(message: &Value) -> BTreeSet<String> {
    let Rejection { field, others, .. } = refusal(message);
    others.into_iter().map(|other| other.field).chain([field]).collect()
}

#[test]
fn every_bad_field_is_named_at_any_depth() {
    let mut item = with(1, "/id", json!("no spaces"));
    item["variants"][0]["wear"] = json!("tab\t");
    item["variants"][0]["colour"] = json!("red");
    item["variants"].as_array_mut().unwrap().push(json!({"stattrak": "no"}));
    let mut order = with(5, "/items/0/item_id", json!("ß"));
    order["source"] = json!("gift");
    order.as_object_mut().unwrap().remove("total_usd");
    let mut quote = with(3, "/asks_usd", json!(["1.234", "1.00", "-1"]));
    quote["observed_at"] = json!("yesterday");
    let mut event = with(7, "/data/price_usd", json!("12.505"));
    event["account_id"] = json!("x");
    event["data"].as_object_mut().unwrap().remove("kind");
    let mut unknown_event = with(7, "/event", json!("listing.renamed"));
    unknown_event["id"] = json!(7);
    let mut removed = with(2, "/name", json!("gone"));
    removed["slug"] = json!("gone");
    let cases: [(Value, &[&str]); 6] = [
        (item, &["id", "variants[0].colour", "variants[0].wear", "variants[1].stattrak", "variants[1].variant_id"]),
        (order, &["items[0].item_id", "source", "total_usd"]),
        (quote, &["asks_usd[0]", "asks_usd[2]", "observed_at"]),
        (event, &["account_id", "data.kind", "data.price_usd"]),
        (unknown_event, &["event", "id"]),
        (removed, &["name", "slug"]),
    ];
    for (message, fields) in cases {
        assert_eq!(refused_fields(&message), fields.iter().map(|field| (*field).to_owned()).collect(), "{message}");
    }
}

#[test]
fn the_first_bad_field_comes_first_and_the_number_of_the_others_is_bounded() {
    let mut marketplace = with(0, "/link", json!("ftp://x"));
    for number in 0..100 {
        marketplace[format!("extra_{number:03}")] = json!(number);
    }
    let refused = refusal(&marketplace);
    assert_eq!(refused.field, "extra_000");
    assert!(refused.reason.starts_with("unknown field `extra_000`, expected "), "{refused}");
    assert_eq!(refused.others.len(), 31);
    let text = marketplace.to_string().replacen('{', r#"{"last": 1, "#, 1);
    let refused = parse(&text, now()).unwrap_err();
    assert_eq!((refused.field.as_str(), refused.others.len()), ("last", 31));
}

#[test]
fn what_is_no_single_object_is_refused() {
    for text in ["", " ", "[]", "[\"item\"]", "null", "{", "{\"type\":\"item\"}{}", "\u{0}"] {
        assert!(parse(text, now()).is_err(), "{text:?}");
    }
    let repeated = r#"{"type":"item","id":"a","id":"b","kind":"skin","version":1}"#;
    assert_eq!(parse(repeated, now()).unwrap_err().field, "id");
}

#[test]
fn sizes_are_bounded() {
    let mut item = with(1, "/variants", json!([]));
    let variant = examples()[1]["variants"][0].clone();
    item["variants"] = json!(vec![variant.clone(); 500]);
    assert!(parse(&item.to_string(), now()).is_ok());
    item["variants"] = json!(vec![variant; 501]);
    assert_eq!(refusal(&item).field, "variants");
    assert!(parse(&with(3, "/asks_usd", json!(vec!["1"; 1_000])).to_string(), now()).is_ok());
    assert_eq!(refusal(&with(3, "/asks_usd", json!(vec!["1"; 1_001]))).field, "asks_usd");
    let padded = format!("{}{}", examples()[0], " ".repeat(MAX_MESSAGE_BYTES));
    assert!(parse(&padded, now()).unwrap_err().reason.contains("bytes"));
}

#[test]
fn versions_and_times_of_creation_reach_up_to_their_bounds() {
    let highest = with(0, "/version", json!(9_223_372_036_854_775_807_u64));
    let Message::Marketplace(_, version) = parse(&highest.to_string(), now()).unwrap() else { panic!() };
    assert_eq!(version, 9_223_372_036_854_775_807);
    for example in [4, 5] {
        let in_a_day = with(example, "/created_at", json!("2026-11-21T12:00:00Z"));
        assert!(parse(&in_a_day.to_string(), now()).is_ok(), "{in_a_day}");
    }
}

#[test]
fn a_listing_that_was_created_too_far_ahead_can_be_ended() {
    let mut listing = with(4, "/created_at", json!("9999-12-31T23:59:59Z"));
    for status in ["sold", "cancelled"] {
        listing["status"] = json!(status);
        assert!(matches!(parse(&listing.to_string(), now()), Ok(Message::ListingEnded(_, 1))), "{status}");
    }
}

#[test]
fn optional_fields_may_be_absent() {
    let item = json!({"type": "item", "id": "x", "kind": "case", "version": 1});
    let Message::Item(item, 1) = parse(&item.to_string(), now()).unwrap() else { panic!() };
    assert_eq!((item.item.name, item.variants.len()), (None, 0));
}

#[test]
fn a_refusal_quotes_little_of_its_message() {
    let long = "x".repeat(MAX_MESSAGE_BYTES / 2);
    let mut unknown = examples()[0].clone();
    unknown[&long] = json!(1);
    for message in [with(0, "/version", json!(long)), unknown, with(0, "/key", json!(long))] {
        let Rejection { field, reason, others } = refusal(&message);
        let quoted = others.iter().map(|other| other.field.len() + other.reason.len()).sum::<usize>();
        assert!(field.len() + reason.len() + quoted <= 1_024, "{}", &reason[..200]);
    }
}

#[test]
fn an_item_has_no_id_that_clients_take_for_a_step_in_a_path() {
    for (id, is_allowed) in [(".", false), ("..", false), ("...", true), (".a", true)] {
        let item = json!({"type": "item", "id": id, "kind": "case", "version": 1});
        assert_eq!(parse(&item.to_string(), now()).is_ok(), is_allowed, "{id}");
    }
}
