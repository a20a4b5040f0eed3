//! What the demo market does with its stock: what other marketplaces ask, what is on sale, and what the demo user bought.

use common::ids::Id8;
use common::money::Usd;
use common::timestamp::Timestamp;
use fastrand::Rng;
use serde_json::{Value, json};

use super::catalog::PricedVariant;
use super::{demo_user, scaled, uuid};

const HOUR_MILLIS: u64 = 60 * 60 * 1_000;
const DAY_MILLIS: u64 = 24 * HOUR_MILLIS;

/// The marketplaces that asks come from: key, name, kind, and price level in percent of what a thing is worth. The last
/// one is disabled, to show that its asks count nowhere.
const MARKETPLACES: [(&str, &str, &str, u64); 5] = [
    ("loot_harbor", "Loot Harbor", "p2p", 97),
    ("pixel_bazaar", "Pixel Bazaar", "p2p", 100),
    ("skin_depot", "Skin Depot", "bot", 108),
    ("trade_wharf", "Trade Wharf", "auction", 102),
    ("old_quay", "Old Quay", "bot", 71),
];
/// The number of those that are enabled.
const ENABLED: usize = MARKETPLACES.len() - 1;
/// The percentage of traded variants that are on sale at a second marketplace, and at the disabled one.
const SECOND_MARKETPLACE_PERCENT: u64 = 30;
const DISABLED_MARKETPLACE_PERCENT: u64 = 8;
/// The percentage of quotes with one ask far above the others.
const STRAY_ASK_PERCENT: u64 = 6;
/// The quotes were observed within this many milliseconds before now.
const MAX_QUOTE_AGE_MILLIS: u64 = 4 * HOUR_MILLIS;

const LISTING_COUNT: u32 = 20_000;
/// The percentage of listings that are of variants traded every day. The other listings are of any variant.
const TRADED_LISTINGS_PERCENT: u64 = 85;
const AUCTION_PERCENT: u64 = 5;
const BOT_PERCENT: u64 = 38;
/// How long before now listings were created at most. Auctions do not run as long.
const MAX_LISTING_AGE_MILLIS: u64 = 60 * DAY_MILLIS;
const MAX_AUCTION_AGE_MILLIS: u64 = 5 * DAY_MILLIS;

const ORDER_COUNT: u64 = 300;
/// Each order lies in a stretch of its own, of this many milliseconds. All stretches together make 18 months.
const ORDER_INTERVAL_MILLIS: u64 = 540 * DAY_MILLIS / ORDER_COUNT;
/// The number of newest orders that are still awaiting delivery.
const UNDELIVERED_ORDERS: u64 = 4;
const REFUNDED_PERCENT: u64 = 6;
const MAX_ORDER_LINES: u64 = 4;
/// The demo user buys nothing that is worth more than this, in cents.
const MAX_PRICE_CENTS: u64 = 12_000;
/// The sources of orders. The usual ones are listed more often.
const ORDER_SOURCES: [&str; 8] =
    ["checkout", "checkout", "checkout", "checkout", "auction", "offer", "buy_order", "trade"];

/// Returns the marketplaces.
pub(super) fn marketplaces() -> Vec<Value> {
    let message = |(index, (key, name, kind, _)): (usize, &(&str, &str, &str, u64))| {
        json!({
            "type": "marketplace", "key": key, "name": name, "kind": kind, "enabled": index < ENABLED, "version": 1,
            "link": format!("https://{}.example.com", key.replace('_', "-")),
        })
    };
    MARKETPLACES.iter().enumerate().map(message).collect()
}

/// Returns the quotes, variant by variant. No variant has a quote from the disabled marketplace only.
pub(super) fn quotes(priced: &[PricedVariant], now: Timestamp) -> Vec<Value> {
    let (mut random, mut quotes) = (Rng::with_seed(2), Vec::new());
    for variant in priced.iter().filter(|variant| variant.traded) {
        let first = random.usize(..ENABLED);
        let mut sellers = vec![first];
        sellers.extend(percent(&mut random, SECOND_MARKETPLACE_PERCENT).then_some((first + 1) % ENABLED));
        sellers.extend(percent(&mut random, DISABLED_MARKETPLACE_PERCENT).then_some(ENABLED));
        for seller in sellers {
            let (marketplace, _, _, level) = MARKETPLACES[seller];
            let cents = scaled(variant.cents, level);
            let mut asks: Vec<_> =
                (0..random.u64(2..10)).map(|_| Usd::from_cents(scaled(cents, random.u64(95..=124)))).collect();
            if percent(&mut random, STRAY_ASK_PERCENT) {
                asks.push(Usd::from_cents(scaled(cents, random.u64(250..=600))));
            }
            quotes.push(json!({
                "type": "quote", "variant_id": variant.id, "marketplace": marketplace, "asks_usd": asks,
                "observed_at": before(&mut random, now, MAX_QUOTE_AGE_MILLIS),
            }));
        }
    }
    quotes
}

/// Returns the listings. Popular items have more of them.
pub(super) fn listings(priced: &[PricedVariant], now: Timestamp) -> Vec<Value> {
    let random = &mut Rng::with_seed(3);
    let all: Vec<&PricedVariant> = priced.iter().collect();
    let traded: Vec<&PricedVariant> = priced.iter().filter(|variant| variant.traded).collect();
    let listing = |number: u32| {
        let choices = if percent(random, TRADED_LISTINGS_PERCENT) { &traded } else { &all };
        let sold = early(random, choices);
        let is_auction = percent(random, AUCTION_PERCENT);
        // Auctions start low, and instant delivery costs a little more.
        let (kind, level) = match is_auction {
            true => ("p2p", 45..=95),
            false if percent(random, BOT_PERCENT) => ("bot", 98..=122),
            false => ("p2p", 92..=128),
        };
        // The odd factor makes this a permutation of all short ids, so no two listings share one.
        let id8 = Id8::from_bits(number.wrapping_mul(0x9E37_79B1).wrapping_add(0x7F4A_7C15));
        json!({
            "type": "listing", "id": uuid("listing", &number.to_string()), "id8": id8, "account_id": uuid("user", "seller"),
            "price_usd": Usd::from_cents(scaled(sold.cents, random.u64(level))), "kind": kind, "is_auction": is_auction,
            "created_at": before(random, now, if is_auction { MAX_AUCTION_AGE_MILLIS } else { MAX_LISTING_AGE_MILLIS }),
            "item_id": sold.item, "variant_id": sold.id, "market_hash_name": sold.market_hash_name,
            "status": "active", "version": 1,
        })
    };
    (0..LISTING_COUNT).map(listing).collect()
}

/// Returns the orders, oldest first.
pub(super) fn orders(priced: &[PricedVariant], now: Timestamp) -> Vec<Value> {
    let random = &mut Rng::with_seed(4);
    let affordable: Vec<_> =
        priced.iter().filter(|variant| variant.traded && variant.cents <= MAX_PRICE_CENTS).collect();
    let order = |number: u64| {
        let newer = ORDER_COUNT - 1 - number;
        let end = now.plus_millis(-(newer * ORDER_INTERVAL_MILLIS).cast_signed());
        let created_at = before(random, end, ORDER_INTERVAL_MILLIS);
        let source = ORDER_SOURCES[random.usize(..ORDER_SOURCES.len())];
        // Only a checkout can hold several things. All other orders have one line.
        let count = if source == "checkout" { random.u64(1..=MAX_ORDER_LINES) } else { 1 };
        let (mut cents, mut lines) = (0, Vec::new());
        for line in 0..count {
            let bought = early(random, &affordable);
            let price = scaled(bought.cents, random.u64(90..=115));
            cents += price;
            // What was bought is not one of the active listings any more.
            let listing_id = uuid("sold", &format!("{number}/{line}"));
            lines
                .push(json!({ "listing_id": listing_id, "price_usd": Usd::from_cents(price), "item_id": bought.item }));
        }
        let delivered_at = created_at.plus_millis(random.u64(60_000..=30 * HOUR_MILLIS).cast_signed());
        let (status, delivered_at) = match percent(random, REFUNDED_PERCENT) {
            _ if newer < UNDELIVERED_ORDERS => ("awaiting_delivery", None),
            true => ("refunded", None),
            false => ("delivered", Some(delivered_at)),
        };
        json!({
            "type": "order", "id": uuid("order", &number.to_string()), "account_id": demo_user(), "status": status,
            "source": source, "total_usd": Usd::from_cents(cents), "created_at": created_at,
            "delivered_at": delivered_at, "items": lines, "version": 1,
        })
    };
    (0..ORDER_COUNT).map(order).collect()
}

/// Returns true in `chance` of a hundred cases.
fn percent(random: &mut Rng, chance: u64) -> bool {
    random.u64(..100) < chance
}

/// Returns one of the choices, earlier ones more often.
fn early<'v>(random: &mut Rng, choices: &[&'v PricedVariant]) -> &'v PricedVariant {
    choices[random.usize(..choices.len()).min(random.usize(..choices.len()))]
}

/// Returns a time within the last `millis` milliseconds before `now`.
fn before(random: &mut Rng, now: Timestamp, millis: u64) -> Timestamp {
    now.plus_millis(-random.u64(..millis).cast_signed())
}
