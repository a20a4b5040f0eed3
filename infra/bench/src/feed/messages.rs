//! Messages as a marketplace sends them: mostly listings that come and go, and some of everything else.

use serde_json::{Value, json};
use types::records::PublicListing;

use crate::market::{GeneratedMarket, variant_id};

/// The number of users that listings and orders belong to.
const USERS: u64 = 500;
/// The number of items whose variants are quoted. They are those with the most listings.
const QUOTED_ITEMS: u64 = 500;

/// Returns `count` messages. Of twenty, twelve are new listings, four are listings that were sold, two are quotes, one
/// is an item and one is an order.
pub(super) fn messages(market: &GeneratedMarket, count: u64) -> Option<Vec<String>> {
    (0..count).map(|number| message(market, number).map(|message| message.to_string())).collect()
}

/// Returns `count` messages, each of which is a new listing.
pub(crate) fn new_listings(market: &GeneratedMarket, count: u64) -> Option<Vec<String>> {
    (0..count).map(|number| Some(listing(market.listing(number)?, "active", 1)?.to_string())).collect()
}

fn message(market: &GeneratedMarket, number: u64) -> Option<Value> {
    match number % 20 {
        0..12 => listing(market.listing(number)?, "active", 1),
        12..16 => listing(market.listing(number - 12)?, "sold", 2),
        16 | 17 => Some(quote(market, number)),
        18 => {
            let item = serde_json::to_value(market.item(number)?).ok()?;
            typed("item", item, json!({ "version": 1 }))
        }
        _ => order(market, number),
    }
}

fn listing(listing: PublicListing, status: &str, version: u64) -> Option<Value> {
    let rest = json!({ "account_id": user(listing.price_usd.cents()), "status": status, "version": version });
    typed("listing", serde_json::to_value(listing).ok()?, rest)
}

fn quote(market: &GeneratedMarket, number: u64) -> Value {
    let asks: Vec<String> = (0..20).map(|ask| format!("{}.{:02}", 1 + number % 900, ask)).collect();
    json!({
        "type": "quote", "variant_id": variant_id(number % QUOTED_ITEMS, 0), "marketplace": "harbour",
        "asks_usd": asks, "observed_at": market.now(),
    })
}

fn order(market: &GeneratedMarket, number: u64) -> Option<Value> {
    let listing = market.listing(number)?;
    Some(json!({
        "type": "order", "id": listing.id, "account_id": user(number / 20), "status": "delivered",
        "source": "checkout", "total_usd": listing.price_usd, "created_at": listing.created_at,
        "delivered_at": market.now(), "version": 1,
        "items": [{ "listing_id": listing.id, "price_usd": listing.price_usd, "item_id": listing.item_id }],
    }))
}

fn user(number: u64) -> String {
    uuid::Uuid::from_u128(u128::from(number % USERS)).to_string()
}

/// Joins a record's fields with the other fields of its message.
fn typed(name: &str, record: Value, rest: Value) -> Option<Value> {
    let (Value::Object(mut message), Value::Object(rest)) = (record, rest) else { return None };
    message.insert("type".to_owned(), name.into());
    message.extend(rest);
    Some(Value::Object(message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use feed::parse;
    use types::timestamp::Timestamp;

    #[test]
    fn every_message_is_one_that_the_feed_takes() {
        let now = Timestamp::from_millis(1_795_176_000_000);
        for message in messages(&GeneratedMarket::new(1_000, now), 200).unwrap() {
            assert!(parse(&message, now).is_ok(), "{message}: {:?}", parse(&message, now));
        }
    }
}
