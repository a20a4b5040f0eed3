//! Marketplaces: few, changing rarely, read whole.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::operation::put_item::PutItemError;

use super::{Market, table};
use crate::clock::Clock;
use crate::model::PublicMarketplace;
use crate::store::{Attributes, StoreError, n, s};

/// Disabling a marketplace takes its asks out of every answer within a minute; half of it is kept here.
const KEEP: Duration = Duration::from_secs(30);

impl Market {
    /// Every marketplace, disabled ones included, by key.
    pub async fn marketplaces(&self) -> Result<Vec<PublicMarketplace>, StoreError> {
        let items = self.partition(table::MARKETPLACES.to_owned(), None).await?;
        let records = items.iter().map(|item| {
            let data = Attributes(item).text(table::DATA).unwrap_or_default();
            serde_json::from_str(data).map_err(|error| StoreError::corrupt(format!("marketplace: {error}")))
        });
        records.collect()
    }

    /// Puts a marketplace unless what is there is as new; says whether anything changed.
    pub async fn put_marketplace(&self, marketplace: &PublicMarketplace, version: u64) -> Result<bool, StoreError> {
        let data = serde_json::to_string(marketplace).map_err(|error| StoreError::corrupt(error.to_string()))?;
        let put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(table::marketplace(&marketplace.key)))
            .item(table::VERSION, n(version))
            .item(table::DATA, s(data))
            .condition_expression("attribute_not_exists(#version) OR #version < :version")
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(version));
        match put.send().await {
            Ok(_) => Ok(true),
            Err(error) => match error.as_service_error() {
                Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(false),
                _ => Err(error.into()),
            },
        }
    }
}

/// The marketplaces as this instance last read them, at most half a minute old.
pub struct MarketplaceCache {
    market: Market,
    clock: Arc<dyn Clock>,
    held: Mutex<Option<Held>>,
}

struct Held {
    marketplaces: Arc<Vec<PublicMarketplace>>,
    asked_at: Duration,
    asked_wall: i64,
}

impl MarketplaceCache {
    /// An empty cache.
    pub fn new(market: Market, clock: Arc<dyn Clock>) -> Self {
        Self { market, clock, held: Mutex::new(None) }
    }

    /// The marketplaces, read again if half a minute has passed on either clock since they were asked for,
    /// or the wall clock went back: a frozen instance's monotonic clock may have stood still.
    pub async fn get(&self) -> Result<Arc<Vec<PublicMarketplace>>, StoreError> {
        let (asked_at, asked_wall) = (self.clock.monotonic(), self.clock.now().millis());
        if let Some(held) = &*self.held.lock().unwrap_or_else(PoisonError::into_inner) {
            let keep = i64::try_from(KEEP.as_millis()).unwrap_or(i64::MAX);
            let wall_age = asked_wall - held.asked_wall;
            if asked_at.saturating_sub(held.asked_at) < KEEP && (0..keep).contains(&wall_age) {
                return Ok(Arc::clone(&held.marketplaces));
            }
        }
        let marketplaces = Arc::new(self.market.marketplaces().await?);
        let held = Held { marketplaces: Arc::clone(&marketplaces), asked_at, asked_wall };
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(held);
        Ok(marketplaces)
    }
}
