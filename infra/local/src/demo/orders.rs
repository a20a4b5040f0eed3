//! The orders of the demo user.

use types::money::Usd;
use types::records::{OrderSource, PublicOrder, PublicOrderLine};
use types::timestamp::Timestamp;

use super::ids;
use super::items::Priced;
use super::price::scaled;
use super::random::{DAY, HOUR, MINUTE, Random};

const PART: u64 = 6;

/// The number of orders.
pub(super) const COUNT: u64 = 300;

/// Each order lies in a stretch of its own, of this many milliseconds. All stretches together make 18 months.
const STRETCH: u64 = 540 * DAY / COUNT;
/// The number of newest orders that are still awaiting delivery.
const UNDER_WAY: u64 = 4;
const REFUNDED_PERCENT: u64 = 6;
const MOST_LINES: u64 = 4;
/// The demo user buys nothing that is worth more than this, in cents.
const DEAREST: u64 = 12_000;

/// The sources of orders. The usual ones are listed more often.
const SOURCES: [OrderSource; 10] = [
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
pub(super) fn orders(priced: &[Priced], now: Timestamp) -> Vec<PublicOrder> {
    let mut random = Random::of_part(PART);
    let wanted: Vec<&Priced> = priced.iter().filter(|priced| priced.traded && priced.cents <= DEAREST).collect();
    (0..COUNT).filter_map(|number| order(&mut random, number, &wanted, now)).collect()
}

fn order(random: &mut Random, number: u64, wanted: &[&Priced], now: Timestamp) -> Option<PublicOrder> {
    let newer = COUNT - 1 - number;
    let created_at = random.before(now, STRETCH).plus_millis(-(newer * STRETCH).cast_signed());
    let source = random.pick(&SOURCES).copied()?;
    // Only a checkout can hold several things. All other orders have one line.
    let lines = if matches!(source, OrderSource::Checkout) { random.between(1, MOST_LINES) } else { 1 };
    let lines: Vec<(u64, PublicOrderLine)> =
        (0..lines).filter_map(|line| bought(random, number, line, wanted)).collect();
    let delivery = random.between(MINUTE, 30 * HOUR);
    let (status, delivered_at) = match random.percent(REFUNDED_PERCENT) {
        _ if newer < UNDER_WAY => ("awaiting_delivery", None),
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
fn bought(random: &mut Random, order: u64, line: u64, wanted: &[&Priced]) -> Option<(u64, PublicOrderLine)> {
    let bought = random.pick_early(wanted)?;
    let cents = scaled(bought.cents, random.between(90, 115));
    let listing_id = ids::uuid("sold", &format!("{order}/{line}"));
    Some((cents, PublicOrderLine { listing_id, price_usd: Usd::from_cents(cents), item_id: Some(bought.item.clone()) }))
}
