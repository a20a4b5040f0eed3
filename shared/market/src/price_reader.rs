//! Reads the prices of variants: their quotes, and the marketplaces whose quotes count.

use std::sync::Arc;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::figures::{Figures, figures};
use super::marketplaces::MarketplaceCache;
use crate::Market;
use common::clock::Clock;
use common::ids::VariantId;
use common::records::VariantPrices;
use common::store::StoreError;

/// How many variants' quotes are read at the same time. Each such read needs a connection of its own. An item has at
/// most 500 variants, by the limits of the feed.
const CONCURRENCY: usize = 32;

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

    /// Returns the prices of several variants, in their order. This takes one round trip for each 32 variants.
    pub async fn prices_of_all(&self, variants: Vec<VariantId>) -> Result<Vec<Option<VariantPrices>>, StoreError> {
        let reads = stream::iter(variants.clone()).map(|variant| self.market.quotes(variant));
        let reads = reads.buffered(CONCURRENCY).try_collect::<Vec<_>>();
        let (quotes, marketplaces) = tokio::try_join!(reads, self.marketplaces.get())?;
        let now = self.clock.now();
        let of_each = variants.into_iter().zip(quotes);
        let prices = of_each.map(|(variant, quotes)| {
            figures(variant, quotes.log_unreadable(), &marketplaces, now).map(|figures| figures.prices)
        });
        Ok(prices.collect())
    }
}
