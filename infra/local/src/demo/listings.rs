//! The listings: what is on sale on the service itself.

use types::money::Usd;
use types::records::{ListingKind, PublicListing};
use types::timestamp::Timestamp;

use super::ids;
use super::items::PricedVariant;
use super::price::scaled;
use super::random::{DAY_MILLIS, Random};

const RANDOM_PART: u64 = 5;

/// The number of listings.
pub(super) const LISTING_COUNT: u32 = 20_000;

/// The percentage of listings that are of variants traded every day. The other listings are of any variant.
const DAILY_TRADED_PERCENT: u64 = 85;
const AUCTION_PERCENT: u64 = 5;
const BOT_PERCENT: u64 = 38;
/// Listings were created within this many milliseconds before now; auctions, which do not run that long, within
/// [`MAX_AUCTION_AGE_MILLIS`].
const MAX_LISTING_AGE_MILLIS: u64 = 60 * DAY_MILLIS;
const MAX_AUCTION_AGE_MILLIS: u64 = 5 * DAY_MILLIS;

/// Returns the listings. Popular items have more of them.
pub(super) fn listings(priced: &[PricedVariant], now: Timestamp) -> Vec<PublicListing> {
    let mut random = Random::from_part(RANDOM_PART);
    let all: Vec<&PricedVariant> = priced.iter().collect();
    let traded: Vec<&PricedVariant> = priced.iter().filter(|priced| priced.traded).collect();
    let mut listing = |number| {
        let choices = if random.percent(DAILY_TRADED_PERCENT) { &traded } else { &all };
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
        id: ids::uuid("listing", &number.to_string()),
        id8: ids::id8(number),
        price_usd: Usd::from_cents(price),
        kind,
        is_auction,
        created_at: random.before(now, if is_auction { MAX_AUCTION_AGE_MILLIS } else { MAX_LISTING_AGE_MILLIS }),
        item_id: Some(sold.item.clone()),
        variant_id: Some(sold.variant),
        market_hash_name: sold.market_hash_name.clone(),
    }
}
