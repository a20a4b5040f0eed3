//! The statistics of a variant's asks (specification 2.9.2 to 2.9.4), and the reader that gathers what they are made of.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::try_join_all;
use rust_decimal::Decimal;

use super::quotes::MarketplaceCache;
use super::{Market, Quote};
use common::clock::Clock;
use common::ids::VariantId;
use common::money::Usd;
use common::records::{PublicMarketplace, VariantPrices};
use common::store::StoreError;
use common::timestamp::{DAY_MILLIS, Timestamp};

/// A quote that is older than this enters no figure.
const FRESH_MILLIS: i64 = DAY_MILLIS;
/// With fewer asks than this, no price is recommended.
const ENOUGH_TO_RECOMMEND: usize = 3;

/// The figures of a variant, and since when they hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    pub prices: VariantPrices,
    /// When the newest of the quotes was observed that enter the figures. Now, if the clock of its observer runs ahead:
    /// `Last-Modified` must not be in the future (RFC 9110, section 8.8.2.1).
    pub newest: Timestamp,
    /// The last time at which a quote was observed that entered the figures, took its marketplace's asks out of them, or
    /// became too old for them. Quotes that arrive late, and marketplaces that are enabled or disabled, change the
    /// figures without it.
    pub changed: Timestamp,
}

/// Computes the figures over all asks of enabled marketplaces that were observed in the 24 hours up to `now`. Returns
/// `None` if there are no such asks.
pub fn figures(
    variant_id: VariantId,
    quotes: Vec<Quote>,
    marketplaces: &[PublicMarketplace],
    now: Timestamp,
) -> Option<Figures> {
    let oldest = now.plus_millis(-FRESH_MILLIS);
    let enabled = |quote: &Quote| marketplaces.iter().any(|place| place.enabled && place.key == quote.marketplace);
    let mut sources = BTreeSet::new();
    let mut asks = Vec::new();
    let (mut newest, mut changed) = (oldest, oldest);
    for quote in quotes.into_iter().filter(enabled) {
        if quote.observed_at < oldest {
            changed = changed.max(quote.observed_at.plus_millis(FRESH_MILLIS + 1));
            continue;
        }
        changed = changed.max(quote.observed_at);
        if !quote.asks.is_empty() {
            newest = newest.max(quote.observed_at);
            sources.insert(quote.marketplace);
            asks.extend(quote.asks);
        }
    }
    asks.sort_unstable();
    let (lowest, median) = (asks.first()?, median(&asks)?);
    let prices = VariantPrices {
        variant_id,
        sample_size: i32::try_from(asks.len()).unwrap_or(i32::MAX),
        source_keys: sources.into_iter().collect(),
        lowest_usd: Some(*lowest),
        mean_usd: Some(Usd::rounded(mean(&asks))),
        median_usd: Some(Usd::rounded(median)),
        recommended_list_usd: recommended(&asks, median),
    };
    Some(Figures { prices, newest: newest.min(now), changed })
}

fn mean(asks: &[Usd]) -> Decimal {
    asks.iter().map(|ask| ask.decimal()).sum::<Decimal>() / Decimal::from(asks.len())
}

/// Returns the exact median of sorted asks. If their number is even, it is the mean of the middle two, half-cents kept.
fn median(asks: &[Usd]) -> Option<Decimal> {
    let upper = asks.get(asks.len() / 2)?.decimal();
    let lower = asks.get(asks.len().checked_sub(1)? / 2)?.decimal();
    Some((lower + upper) / Decimal::TWO)
}

/// Returns one cent less than the lowest ask that is between half and twice the median. So a stray ask does not set the
/// price.
fn recommended(asks: &[Usd], median: Decimal) -> Option<Usd> {
    if asks.len() < ENOUGH_TO_RECOMMEND {
        return None;
    }
    let typical = |ask: &&Usd| ask.decimal() * Decimal::TWO >= median && ask.decimal() <= median * Decimal::TWO;
    let lowest = asks.iter().find(typical)?;
    Some(Usd::rounded(lowest.decimal() - Usd::CENT.decimal()).max(Usd::CENT))
}

/// Reads prices. Within an instance the marketplaces are kept for half a minute.
pub struct PriceReader {
    market: Market,
    marketplaces: MarketplaceCache,
    clock: Arc<dyn Clock>,
}

impl PriceReader {
    pub fn new(market: Market, clock: Arc<dyn Clock>) -> Self {
        let marketplaces = MarketplaceCache::new(market.clone(), Arc::clone(&clock));
        Self { market, marketplaces, clock }
    }

    /// Returns a variant's figures, or `None` if no ask counts. A quote that cannot be read counts as one that has not
    /// arrived. `source_keys` names those that count.
    pub async fn figures(&self, variant: VariantId) -> Result<Option<Figures>, StoreError> {
        let (quotes, marketplaces) = tokio::try_join!(self.market.quotes(variant), self.marketplaces.get())?;
        Ok(figures(variant, quotes.log_unreadable(), &marketplaces, self.clock.now()))
    }

    /// Returns the prices of a few variants, in their order. All are read at the same time, each by a connection of its own.
    pub async fn prices_of_all(&self, variants: Vec<VariantId>) -> Result<Vec<Option<VariantPrices>>, StoreError> {
        let reads = try_join_all(variants.iter().map(|variant| self.market.quotes(*variant)));
        let (quotes, marketplaces) = tokio::try_join!(reads, self.marketplaces.get())?;
        let now = self.clock.now();
        let of_each = variants.into_iter().zip(quotes);
        let prices = of_each.map(|(variant, quotes)| {
            figures(variant, quotes.log_unreadable(), &marketplaces, now).map(|figures| figures.prices)
        });
        Ok(prices.collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const NOW: i64 = 1_790_000_000_000;

    fn place(key: &str, enabled: bool) -> PublicMarketplace {
        PublicMarketplace {
            key: key.parse().unwrap(),
            name: key.parse().unwrap(),
            link: "https://m.example".parse().unwrap(),
            kind: "p2p".parse().unwrap(),
            enabled,
        }
    }

    fn quote(marketplace: &str, asks: &[u64], age_millis: i64) -> Quote {
        Quote {
            marketplace: marketplace.parse().unwrap(),
            asks: asks.iter().copied().map(Usd::from_cents).collect(),
            observed_at: Timestamp::from_millis(NOW - age_millis),
        }
    }

    fn all_of(quotes: Vec<Quote>) -> Option<Figures> {
        let places = [place("b", true), place("a", true), place("off", false)];
        figures(Uuid::nil().into(), quotes, &places, Timestamp::from_millis(NOW))
    }

    fn figures_of(quotes: Vec<Quote>) -> Option<VariantPrices> {
        all_of(quotes).map(|figures| figures.prices)
    }

    #[test]
    fn figures_change_with_quotes_that_come_that_are_empty_and_that_grow_old() {
        let ages = |others: &[Quote]| {
            let figures = all_of([&[quote("a", &[100], 5_000)], others].concat()).unwrap();
            [figures.newest, figures.changed].map(|at| NOW - at.millis())
        };
        assert_eq!(ages(&[]), [5_000, 5_000]);
        assert_eq!(ages(&[quote("b", &[1], 3_000)]), [3_000, 3_000]);
        assert_eq!(ages(&[quote("b", &[], 3_000)]), [5_000, 3_000]);
        assert_eq!(ages(&[quote("b", &[1], -3_000)]), [0, -3_000]);
        assert_eq!(ages(&[quote("b", &[1], FRESH_MILLIS + 3_001)]), [5_000, 3_000]);
        assert_eq!(ages(&[quote("off", &[1], 3_000), quote("b", &[1], 7_000)]), [5_000, 5_000]);
    }

    fn cents(amount: Option<Usd>) -> Option<u64> {
        amount.map(Usd::cents)
    }

    #[test]
    fn a_stray_ask_does_not_set_the_recommendation() {
        let recommended = |asks: &[u64]| cents(figures_of(vec![quote("a", asks, 0)]).unwrap().recommended_list_usd);
        assert_eq!(recommended(&[100, 200]), None);
        assert_eq!(recommended(&[99, 200, 210]), Some(199));
        assert_eq!(recommended(&[100, 200, 210]), Some(99));
        assert_eq!(recommended(&[1, 1, 1]), Some(1));
        assert_eq!(recommended(&[0, 0, 0]), Some(1));
    }

    proptest! {
        #[test]
        fn figures_agree_with_integer_arithmetic(mut asks in prop::collection::vec(0u64..100_000, 1..40)) {
            let prices = figures_of(vec![quote("a", &asks, 0)]).unwrap();
            asks.sort_unstable();
            let n = asks.len() as u64;
            let sum: u64 = asks.iter().sum();
            let half_even = |numerator: u64, denominator: u64| {
                let (whole, rest) = (numerator / denominator, numerator % denominator);
                whole + u64::from(rest * 2 > denominator || (rest * 2 == denominator && whole % 2 == 1))
            };
            prop_assert_eq!(cents(prices.mean_usd), Some(half_even(sum, n)));
            let twice_median = asks[asks.len() / 2] + asks[(asks.len() - 1) / 2];
            prop_assert_eq!(cents(prices.median_usd), Some(half_even(twice_median, 2)));
            prop_assert_eq!(cents(prices.lowest_usd), Some(asks[0]));
            let expected = (asks.len() >= 3).then(|| {
                let found = asks.iter().find(|ask| 4 * **ask >= twice_median && **ask <= twice_median).unwrap();
                found.saturating_sub(1).max(1)
            });
            prop_assert_eq!(cents(prices.recommended_list_usd), expected);
        }
    }
}
