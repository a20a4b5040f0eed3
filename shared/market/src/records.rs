//! The two streams' records.

use crate::{Change, Record, Write};
use platform::store::StoreError;
use types::ids::{ItemId, ListingId};
use types::records::{PublicItem, PublicItemDetail, PublicListing};

/// A change of the catalog.
pub type CatalogWrite = Write<PublicItem>;

impl Record for PublicItem {
    type Id = ItemId;
    const STREAM: &'static str = "catalog";

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

    fn id(&self) -> ListingId {
        self.id
    }

    fn from_data(data: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(data)
    }
}

impl Write<PublicItem> {
    /// The item, variants included, is now this. Replicas learn all but the variants.
    pub fn item(item: &PublicItemDetail, version: u64) -> Result<Self, StoreError> {
        let data = Some(serde_json::to_string(item)?);
        Ok(Self { version, change: Change::Put(item.item.clone()), data })
    }
}

impl Write<PublicListing> {
    /// The listing is active and now this.
    pub fn listing(listing: PublicListing, version: u64) -> Result<Self, StoreError> {
        let data = Some(serde_json::to_string(&listing)?);
        Ok(Self { version, change: Change::Put(listing), data })
    }
}

impl<R: Record> Write<R> {
    /// The record is gone. Its version stays, so that a late duplicate cannot bring it back.
    pub fn removal(id: R::Id, version: u64) -> Self {
        Self { version, change: Change::Remove(id), data: None }
    }
}
