//! The records of the two streams: items and listings.

use crate::{Change, Record, Write};
use common::ids::{ItemId, ListingId};
use common::layout::Format;
use common::records::{PublicItem, PublicItemDetail, PublicListing};
use common::store::StoreError;

/// A change of the catalog.
pub type CatalogWrite = Write<PublicItem>;

impl Record for PublicItem {
    type Id = ItemId;
    const STREAM: &'static str = "catalog";
    const LOG_ENTRY: Format = Format::first("log entry of catalog");

    fn id(&self) -> ItemId {
        self.id.clone()
    }

    fn from_data(data: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<PublicItem>(data)
    }
}

impl Record for PublicListing {
    type Id = ListingId;
    const STREAM: &'static str = "listings";
    const LOG_ENTRY: Format = Format::first("log entry of listings");

    fn id(&self) -> ListingId {
        self.id
    }

    fn from_data(data: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(data)
    }
}

impl Write<PublicItem> {
    /// Adds or replaces an item and its variants. Replicas are told everything except the variants.
    pub fn item(item: &PublicItemDetail, version: u64) -> Result<Self, StoreError> {
        let data = Some(serde_json::to_string(item)?);
        Ok(Self { version, change: Change::Put(item.item.clone()), data })
    }
}

impl Write<PublicListing> {
    /// Adds or replaces an active listing.
    pub fn listing(listing: PublicListing, version: u64) -> Result<Self, StoreError> {
        let data = Some(serde_json::to_string(&listing)?);
        Ok(Self { version, change: Change::Put(listing), data })
    }
}

impl<R: Record> Write<R> {
    /// Removes a record. Its version stays as a tombstone for 90 days, so that a late duplicate cannot bring it back.
    pub fn removal(id: R::Id, version: u64) -> Self {
        Self { version, change: Change::Remove(id), data: None }
    }
}
