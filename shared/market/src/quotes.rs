//! Quotes, which are one marketplace's current asks for a variant, and marketplaces. There are few marketplaces and they
//! rarely change, so they are always read all at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Market, table};
use common::clock::{Clock, Moment};
use common::ids::{MarketplaceKey, VariantId};
use common::money::Usd;
use common::records::PublicMarketplace;
use common::rows::{Rows, Unreadable};
use common::store::{Attributes, Row, StoreError, b, n, put_newer, reset_version, s};
use common::timestamp::Timestamp;

/// How long a quote is kept after it was observed: a week. It enters no figure after a day. If an even older quote is
/// delivered again once this one is gone, it enters no figure for the same reason.
const KEEP_SECONDS: i64 = 7 * 24 * 3_600;
/// How long an instance keeps the marketplaces. A disabled one must be out of every answer within a minute
/// (specification 1.3.2), and this is half of it.
const KEEP: Duration = Duration::from_secs(30);

/// One marketplace's current asks for a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    pub marketplace: MarketplaceKey,
    /// The prices asked. Empty if the variant is no longer on sale there.
    pub asks: Vec<Usd>,
    /// When the asks were observed.
    pub observed_at: Timestamp,
}

impl Market {
    /// Reads the latest quote of each marketplace for a variant.
    pub async fn quotes(&self, variant: VariantId) -> Result<Rows<Quote>, StoreError> {
        let rows = self.partition(table::quotes_partition(variant)).await?;
        Ok(rows.iter().map(|row| quote(row).map_err(|error| Unreadable::new(row, error))).collect())
    }

    /// Stores a quote, unless the stored one was observed at the same time or later. Returns whether anything changed.
    pub async fn put_quote(&self, variant: VariantId, quote: &Quote) -> Result<bool, StoreError> {
        // These bytes have no layout of their own. If the asks ever need another form, it gets an attribute of its own.
        let cents: Vec<u64> = quote.asks.iter().map(|ask| ask.cents()).collect();
        let packed = postcard::to_stdvec(&cents)?;
        let mut row = table::quote(variant, &quote.marketplace);
        row.insert(table::ASKS.to_owned(), b(packed));
        row.insert(table::TTL.to_owned(), n(quote.observed_at.seconds() + KEEP_SECONDS));
        put_newer(&self.client, &self.table, row, table::OBSERVED_AT, n(quote.observed_at.millis())).await
    }
}

fn quote(row: &Row) -> Result<Quote, StoreError> {
    table::QUOTE_FORMAT.of_row(row)?;
    let read = Attributes(row);
    let packed = read.bytes(table::ASKS).unwrap_or_default();
    let cents: Vec<u64> = postcard::from_bytes(packed).map_err(|_| StoreError::corrupt(table::ASKS))?;
    Ok(Quote {
        marketplace: read.parsed(table::SK)?,
        asks: cents.into_iter().map(Usd::from_cents).collect(),
        observed_at: Timestamp::from_millis(read.required_number(table::OBSERVED_AT)?),
    })
}

impl Market {
    /// Reads every marketplace, in the order of their keys, disabled ones included.
    pub async fn marketplaces(&self) -> Result<Rows<PublicMarketplace>, StoreError> {
        let rows = self.partition(table::MARKETPLACES.to_owned()).await?;
        Ok(rows.iter().map(|row| marketplace(row).map_err(|error| Unreadable::new(row, error))).collect())
    }

    /// Stores a marketplace, unless the stored one is as new or newer. Returns whether anything changed.
    pub async fn put_marketplace(&self, marketplace: &PublicMarketplace, version: u64) -> Result<bool, StoreError> {
        let mut row = table::marketplace(&marketplace.key);
        row.insert(table::DATA.to_owned(), s(serde_json::to_string(marketplace)?));
        put_newer(&self.client, &self.table, row, table::VERSION, n(version)).await
    }

    /// Sets a marketplace's version to 0. Returns the version that it had, or `None` if there is no such marketplace.
    pub async fn reset_marketplace_version(&self, key: &MarketplaceKey) -> Result<Option<u64>, StoreError> {
        reset_version(&self.client, &self.table, table::marketplace(key), table::VERSION).await
    }
}

fn marketplace(row: &Row) -> Result<PublicMarketplace, StoreError> {
    table::MARKETPLACE_FORMAT.of_row(row)?;
    let data = Attributes(row).text(table::DATA).and_then(|data| serde_json::from_str(data).ok());
    data.ok_or_else(|| StoreError::corrupt(table::DATA))
}

/// The marketplaces as this instance last read them, at most half a minute old.
pub(super) struct MarketplaceCache {
    market: Market,
    clock: Arc<dyn Clock>,
    held: Mutex<Option<Held>>,
}

struct Held {
    marketplaces: Arc<Vec<PublicMarketplace>>,
    asked: Moment,
}

impl MarketplaceCache {
    pub(super) fn new(market: Market, clock: Arc<dyn Clock>) -> Self {
        Self { market, clock, held: Mutex::new(None) }
    }

    /// Returns the marketplaces. They are read again if half a minute has passed, by either clock, since the last read
    /// began. One that cannot be read is left out, and so counts as disabled.
    pub(super) async fn get(&self) -> Result<Arc<Vec<PublicMarketplace>>, StoreError> {
        if let Some(held) = &*self.held.lock().unwrap_or_else(PoisonError::into_inner)
            && held.asked.is_within(KEEP, &*self.clock)
        {
            return Ok(Arc::clone(&held.marketplaces));
        }
        let asked = Moment::now(&*self.clock);
        let marketplaces = Arc::new(self.market.marketplaces().await?.log_unreadable());
        let held = Held { marketplaces: Arc::clone(&marketplaces), asked };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(marketplaces)
    }
}
