//! Marketplaces. There are few and they rarely change, so they are always read all at once.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Market, table};
use common::clock::{Clock, Moment};
use common::records::PublicMarketplace;
use common::rows::{Rows, Unreadable};
use common::store::{Attributes, Row, StoreError, n, put_newer, s};

/// How long an instance keeps the marketplaces. A disabled one must be out of every answer within a minute
/// (specification 1.3.2), and this is half of it.
const KEEP: Duration = Duration::from_secs(30);

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
