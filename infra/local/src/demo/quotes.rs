//! The quotes: what the other marketplaces ask for the variants that are traded every day.

use market::Quote;
use types::ids::VariantId;
use types::money::Usd;
use types::timestamp::Timestamp;

use super::items::PricedVariant;
use super::marketplaces::{DemoMarketplace, MARKETPLACES};
use super::price::scaled;
use super::random::{HOUR_MILLIS, Random};

const RANDOM_PART: u64 = 4;

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
    let mut random = Random::from_part(RANDOM_PART);
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
