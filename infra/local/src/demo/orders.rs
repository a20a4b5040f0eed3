//! What the demo user bought.

use types::money::Usd;
use types::records::{OrderSource, PublicOrder, PublicOrderLine};
use types::timestamp::Timestamp;

use super::ids;
use super::items::Priced;
use super::price::scaled;
use super::random::{DAY, HOUR, MINUTE, Random};

const PART: u64 = 6;

/// How many there are.
pub(super) const COUNT: u64 = 300;

/// Each is placed within a stretch of its own; all of them together make 18 months.
const STRETCH: u64 = 540 * DAY / COUNT;
/// The newest few are still under way.
const UNDER_WAY: u64 = 4;
const REFUNDED_PERCENT: u64 = 6;
const MOST_LINES: u64 = 4;
/// A collector of modest means: nothing that is worth more cents than this.
const DEAREST: u64 = 12_000;

/// How orders come about, the usual ways more often.
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

/// The orders, oldest first.
pub(super) fn orders(priced: &[Priced], now: Timestamp) -> Vec<PublicOrder> {
    let mut random = Random::of_part(PART);
    let wanted: Vec<&Priced> = priced.iter().filter(|priced| priced.traded && priced.cents <= DEAREST).collect();
    (0..COUNT).filter_map(|number| order(&mut random, number, &wanted, now)).collect()
}

fn order(random: &mut Random, number: u64, wanted: &[&Priced], now: Timestamp) -> Option<PublicOrder> {
    let newer = COUNT - 1 - number;
    let created_at = random.before(now, STRETCH).plus_millis(-(newer * STRETCH).cast_signed());
    let source = random.pick(&SOURCES).copied()?;
    // Only a cart holds several things; the rest are about one.
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

/// A line, and its price in cents. Its listing is no longer active: it was sold.
fn bought(random: &mut Random, order: u64, line: u64, wanted: &[&Priced]) -> Option<(u64, PublicOrderLine)> {
    let bought = random.pick_early(wanted)?;
    let cents = scaled(bought.cents, random.between(90, 115));
    let listing_id = ids::uuid("sold", &format!("{order}/{line}"));
    Some((cents, PublicOrderLine { listing_id, price_usd: Usd::from_cents(cents), item_id: Some(bought.item.clone()) }))
}
