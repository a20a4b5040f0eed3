//! What the demo market does with its stock: what other marketplaces ask, what is on sale, and what the demo user bought.

use common::ids::{MarketplaceKey, VariantId};
use common::money::Usd;
use common::records::{ListingKind, OrderSource, PublicListing, PublicMarketplace, PublicOrder, PublicOrderLine};
use common::timestamp::Timestamp;
use market::Quote;

use super::catalog::PricedVariant;
use super::random::{DAY_MILLIS, HOUR_MILLIS, MINUTE_MILLIS, Random, id8, scaled, uuid};

/// A marketplace that asks come from. One is disabled, to show that its asks count nowhere.
pub(super) struct DemoMarketplace {
    key: &'static str,
    name: &'static str,
    kind: &'static str,
    enabled: bool,
    /// Its price level, in percent of what a thing is worth.
    price_percent: u64,
}

/// All marketplaces of the demo.
const MARKETPLACES: [DemoMarketplace; 5] = [
    DemoMarketplace { key: "loot_harbor", name: "Loot Harbor", kind: "p2p", enabled: true, price_percent: 97 },
    DemoMarketplace { key: "pixel_bazaar", name: "Pixel Bazaar", kind: "p2p", enabled: true, price_percent: 100 },
    DemoMarketplace { key: "skin_depot", name: "Skin Depot", kind: "bot", enabled: true, price_percent: 108 },
    DemoMarketplace { key: "trade_wharf", name: "Trade Wharf", kind: "auction", enabled: true, price_percent: 102 },
    DemoMarketplace { key: "old_quay", name: "Old Quay", kind: "bot", enabled: false, price_percent: 71 },
];

impl DemoMarketplace {
    /// Returns its key, parsed.
    fn key(&self) -> Option<MarketplaceKey> {
        self.key.parse().ok()
    }

    fn public(&self) -> Option<PublicMarketplace> {
        Some(PublicMarketplace {
            key: self.key()?,
            name: self.name.parse().ok()?,
            link: format!("https://{}.example.com", self.key.replace('_', "-")).parse().ok()?,
            kind: self.kind.parse().ok()?,
            enabled: self.enabled,
        })
    }
}

/// Returns the marketplaces as the API shows them.
pub(super) fn marketplaces() -> impl Iterator<Item = PublicMarketplace> {
    MARKETPLACES.iter().filter_map(DemoMarketplace::public)
}

/// The percentage of traded variants that are on sale at a second marketplace, and at the disabled one.
const SECOND_MARKETPLACE_PERCENT: u64 = 30;
const DISABLED_MARKETPLACE_PERCENT: u64 = 8;
const MAX_ASKS: u64 = 9;
/// The percentage of quotes with one ask far above the others.
const STRAY_ASK_PERCENT: u64 = 6;
/// The quotes were observed within this many milliseconds before now.
const MAX_QUOTE_AGE_MILLIS: u64 = 4 * HOUR_MILLIS;

/// Returns the quotes, variant by variant. No variant has a quote from the disabled marketplace only.
pub(super) fn quotes(priced: &[PricedVariant], now: Timestamp) -> Vec<(VariantId, Quote)> {
    let mut random = Random::from_part(4);
    let (enabled, disabled): (Vec<&DemoMarketplace>, Vec<&DemoMarketplace>) =
        MARKETPLACES.iter().partition(|marketplace| marketplace.enabled);
    let mut quotes = Vec::with_capacity(4_000);
    for priced in priced.iter().filter(|priced| priced.traded) {
        let first = random.below(enabled.len() as u64) as usize;
        let seen = 1 + usize::from(random.percent(SECOND_MARKETPLACE_PERCENT));
        let closed = usize::from(random.percent(DISABLED_MARKETPLACE_PERCENT));
        let open = enabled.iter().cycle().skip(first).take(seen);
        for marketplace in open.chain(disabled.iter().take(closed)) {
            if let Some(quote) = quote(&mut random, marketplace, priced.cents, now) {
                quotes.push((priced.variant, quote));
            }
        }
    }
    quotes
}

fn quote(random: &mut Random, marketplace: &DemoMarketplace, cents: u64, now: Timestamp) -> Option<Quote> {
    let cents = scaled(cents, marketplace.price_percent);
    let mut asks: Vec<u64> = (0..random.between(2, MAX_ASKS)).map(|_| scaled(cents, random.between(95, 124))).collect();
    if random.percent(STRAY_ASK_PERCENT) {
        asks.push(scaled(cents, random.between(250, 600)));
    }
    asks.sort_unstable();
    Some(Quote {
        marketplace: marketplace.key()?,
        asks: asks.into_iter().map(Usd::from_cents).collect(),
        observed_at: random.before(now, MAX_QUOTE_AGE_MILLIS),
    })
}

/// The number of listings.
pub(super) const LISTING_COUNT: u32 = 20_000;

/// The percentage of listings that are of variants traded every day. The other listings are of any variant.
const TRADED_LISTINGS_PERCENT: u64 = 85;
const AUCTION_PERCENT: u64 = 5;
const BOT_PERCENT: u64 = 38;
/// Listings were created within this many milliseconds before now; auctions, which do not run that long, within
/// [`MAX_AUCTION_AGE_MILLIS`].
const MAX_LISTING_AGE_MILLIS: u64 = 60 * DAY_MILLIS;
const MAX_AUCTION_AGE_MILLIS: u64 = 5 * DAY_MILLIS;

/// Returns the listings. Popular items have more of them.
pub(super) fn listings(priced: &[PricedVariant], now: Timestamp) -> Vec<PublicListing> {
    let mut random = Random::from_part(5);
    let all: Vec<&PricedVariant> = priced.iter().collect();
    let traded: Vec<&PricedVariant> = priced.iter().filter(|priced| priced.traded).collect();
    let mut listing = |number| {
        let choices = if random.percent(TRADED_LISTINGS_PERCENT) { &traded } else { &all };
        let sold = random.pick_early(choices)?;
        Some(listing(&mut random, number, sold, now))
    };
    (0..LISTING_COUNT).filter_map(&mut listing).collect()
}

fn listing(random: &mut Random, number: u32, sold: &PricedVariant, now: Timestamp) -> PublicListing {
    let is_auction = random.percent(AUCTION_PERCENT);
    let kind = if !is_auction && random.percent(BOT_PERCENT) { ListingKind::Bot } else { ListingKind::P2p };
    // Auctions start low, and instant delivery costs a little more.
    let (low, high) = match kind {
        _ if is_auction => (45, 95),
        ListingKind::Bot => (98, 122),
        ListingKind::P2p => (92, 128),
    };
    let price = scaled(sold.cents, random.between(low, high));
    PublicListing {
        id: uuid("listing", &number.to_string()),
        id8: id8(number),
        price_usd: Usd::from_cents(price),
        kind,
        is_auction,
        created_at: random.before(now, if is_auction { MAX_AUCTION_AGE_MILLIS } else { MAX_LISTING_AGE_MILLIS }),
        item_id: Some(sold.item.clone()),
        variant_id: Some(sold.variant),
        market_hash_name: sold.market_hash_name.clone(),
    }
}

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
    let mut random = Random::from_part(6);
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
        id: uuid("order", &number.to_string()),
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
    let listing_id = uuid("sold", &format!("{order}/{line}"));
    Some((cents, PublicOrderLine { listing_id, price_usd: Usd::from_cents(cents), item_id: Some(bought.item.clone()) }))
}
