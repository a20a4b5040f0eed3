//! The orders of the demo user.

use types::money::Usd;
use types::records::{OrderSource, PublicOrder, PublicOrderLine};
use types::timestamp::Timestamp;

use super::ids;
use super::items::PricedVariant;
use super::price::scaled;
use super::random::{DAY_MILLIS, HOUR_MILLIS, MINUTE_MILLIS, Random};

const RANDOM_PART: u64 = 6;

/// The number of orders.
pub(super) const ORDER_COUNT: u64 = 300;

/// Each order lies in a stretch of its own, of this many milliseconds. All stretches together make 18 months.
const ORDER_INTERVAL_MILLIS: u64 = 540 * DAY_MILLIS / ORDER_COUNT;
/// The number of newest orders that are still awaiting delivery.
const UNDELIVERED_ORDERS: u64 = 4;
const REFUNDED_PERCENT: u64 = 6;
const MAX_ORDER_LINES: u64 = 4;
/// The demo user buys nothing that is worth more than this, in cents.
const MAX_PRICE_CENTS: u64 = 12_000;

/// The sources of orders. The usual ones are listed more often.
const ORDER_SOURCES: [OrderSource; 10] = [
    OrderSource::Checkout,
    OrderSource::Checkout,
    OrderSource::Checkout,
    OrderSource::Checkout,
    OrderSource::Checkout,
    OrderSource::Auction,
    OrderSource::Offer,
    OrderSource::Offer,
    OrderSource::BuyOrder,
    OrderSource::Trade,
];

/// Returns the orders, oldest first.
pub(super) fn orders(priced: &[PricedVariant], now: Timestamp) -> Vec<PublicOrder> {
    let mut random = Random::from_part(RANDOM_PART);
    let affordable: Vec<&PricedVariant> =
        priced.iter().filter(|priced| priced.traded && priced.cents <= MAX_PRICE_CENTS).collect();
    (0..ORDER_COUNT).filter_map(|number| order(&mut random, number, &affordable, now)).collect()
}

fn order(random: &mut Random, number: u64, affordable: &[&PricedVariant], now: Timestamp) -> Option<PublicOrder> {
    let newer = ORDER_COUNT - 1 - number;
    let created_at =
        random.before(now, ORDER_INTERVAL_MILLIS).plus_millis(-(newer * ORDER_INTERVAL_MILLIS).cast_signed());
    let source = random.pick(&ORDER_SOURCES).copied()?;
    // Only a checkout can hold several things. All other orders have one line.
    let lines = if matches!(source, OrderSource::Checkout) { random.between(1, MAX_ORDER_LINES) } else { 1 };
    let lines: Vec<(u64, PublicOrderLine)> =
        (0..lines).filter_map(|line| bought(random, number, line, affordable)).collect();
    let delivery = random.between(MINUTE_MILLIS, 30 * HOUR_MILLIS);
    let (status, delivered_at) = match random.percent(REFUNDED_PERCENT) {
        _ if newer < UNDELIVERED_ORDERS => ("awaiting_delivery", None),
        true => ("refunded", None),
        false => ("delivered", Some(created_at.plus_millis(delivery.cast_signed()))),
    };
    Some(PublicOrder {
        id: ids::uuid("order", &number.to_string()),
        status: status.parse().ok()?,
        source,
        total_usd: Usd::from_cents(lines.iter().map(|(cents, _)| cents).sum()),
        created_at,
        delivered_at,
        items: lines.into_iter().map(|(_, line)| line).collect(),
    })
}

/// Returns an order line and its price in cents. Its listing has been sold, so it is not one of the active listings.
fn bought(random: &mut Random, order: u64, line: u64, affordable: &[&PricedVariant]) -> Option<(u64, PublicOrderLine)> {
    let bought = random.pick_early(affordable)?;
    let cents = scaled(bought.cents, random.between(90, 115));
    let listing_id = ids::uuid("sold", &format!("{order}/{line}"));
    Some((cents, PublicOrderLine { listing_id, price_usd: Usd::from_cents(cents), item_id: Some(bought.item.clone()) }))
}
