//! The two streams' records.

use std::cmp::Ordering;

use super::columns::{ItemColumns, ListingColumns};
use super::stream::{Change, Record, Write};
use crate::ids::{ItemId, ListingId};
use crate::model::{PublicItem, PublicItemDetail, PublicListing};
use crate::store::StoreError;

/// A change of the catalog.
pub type CatalogWrite = Write<PublicItem>;

impl Record for PublicItem {
    type Id = ItemId;
    type Columns = ItemColumns;
    const STREAM: &'static str = "catalog";

    fn id(&self) -> ItemId {
        self.id.clone()
    }

    /// The catalog's own order, so that an index over a base has nothing to sort.
    fn base_order(&self, other: &Self) -> Ordering {
        self.catalog_key().cmp(&other.catalog_key())
    }

    fn from_data(data: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str::<PublicItem>(data)
    }
}

impl Record for PublicListing {
    type Id = ListingId;
    type Columns = ListingColumns;
    const STREAM: &'static str = "listings";

    fn id(&self) -> ListingId {
        self.id
    }

    /// Listings of one variant side by side: they share item, variant and name.
    fn base_order(&self, other: &Self) -> Ordering {
        let key = |listing: &Self| (listing.variant_id, listing.created_at, listing.id);
        self.item_id.cmp(&other.item_id).then_with(|| key(self).cmp(&key(other)))
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
