//! The quotes: what the other marketplaces ask for the variants that are traded every day.

use market::Quote;
use types::ids::VariantId;
use types::money::Usd;
use types::timestamp::Timestamp;

use super::items::Priced;
use super::places::{PLACES, Place};
use super::price::scaled;
use super::random::{HOUR, Random};

const PART: u64 = 4;

/// The percentage of traded variants that are on sale at a second marketplace, and at the disabled one.
const SECOND_PERCENT: u64 = 30;
const DISABLED_PERCENT: u64 = 8;
const MOST_ASKS: u64 = 9;
/// The percentage of quotes with one ask far above the others.
const STRAY_PERCENT: u64 = 6;
/// The quotes were observed within this many milliseconds before now.
const OBSERVED_WITHIN: u64 = 4 * HOUR;

/// Returns the quotes, variant by variant. No variant has a quote from the disabled marketplace only.
pub(super) fn quotes(priced: &[Priced], now: Timestamp) -> Vec<(VariantId, Quote)> {
    let mut random = Random::of_part(PART);
    let (enabled, disabled): (Vec<&Place>, Vec<&Place>) = PLACES.iter().partition(|place| place.enabled);
    let mut quotes = Vec::with_capacity(4_000);
    for priced in priced.iter().filter(|priced| priced.traded) {
        let first = random.below(enabled.len() as u64) as usize;
        let seen = 1 + usize::from(random.percent(SECOND_PERCENT));
        let closed = usize::from(random.percent(DISABLED_PERCENT));
        let open = enabled.iter().cycle().skip(first).take(seen);
        for place in open.chain(disabled.iter().take(closed)) {
            if let Some(quote) = quote(&mut random, place, priced.cents, now) {
                quotes.push((priced.variant, quote));
            }
        }
    }
    quotes
}

fn quote(random: &mut Random, place: &Place, cents: u64, now: Timestamp) -> Option<Quote> {
    let cents = scaled(cents, place.level);
    let mut asks: Vec<u64> =
        (0..random.between(2, MOST_ASKS)).map(|_| scaled(cents, random.between(95, 124))).collect();
    if random.percent(STRAY_PERCENT) {
        asks.push(scaled(cents, random.between(250, 600)));
    }
    asks.sort_unstable();
    Some(Quote {
        marketplace: place.key()?,
        asks: asks.into_iter().map(Usd::from_cents).collect(),
        observed_at: random.before(now, OBSERVED_WITHIN),
    })
}
