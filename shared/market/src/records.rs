//! What a stream carries: records, and changes to them. There are two streams, items and listings. The code of streams is
//! generic over [`Record`]. A record is stored in a struct of its own, which names each field: an answer with a new field
//! does not change what is stored by accident.

use std::fmt::{Debug, Display};
use std::hash::Hash;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use common::ids::{Id8, ItemId, ItemKind, Label, Link, ListingId, VariantId};
use common::layout::Format;
use common::money::Usd;
use common::records::{ListingKind, PublicItem, PublicItemDetail, PublicListing};
use common::store::StoreError;
use common::timestamp::Timestamp;

/// A record of a stream. Replicas hold all records of their stream.
pub trait Record: Clone + Debug + Send + Sync + Serialize + DeserializeOwned + 'static {
    type Id: Clone + Debug + Ord + Hash + Display + Send + Sync + Serialize + DeserializeOwned;
    /// The stream's name in the table.
    const STREAM: &'static str;
    /// The format of the stream's packed log entries. Postcard is positional: the order of fields and of enum members
    /// is part of it.
    const LOG_ENTRY: Format;

    fn id(&self) -> Self::Id;

    /// Packs the record for a log entry.
    fn pack<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;

    /// Unpacks a record of a log entry.
    fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error>;

    /// Reads the record from an entity's data.
    fn from_data(data: &str) -> Result<Self, serde_json::Error>;
}

/// What happened to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Change<R: Record> {
    /// The record was added or replaced.
    Put(#[serde(serialize_with = "R::pack", deserialize_with = "R::unpack")] R),
    /// The record was removed.
    Remove(R::Id),
}

/// A committed batch: its sequence number and its changes.
pub type Batch<R> = (u64, Vec<Change<R>>);

/// A change that is to be written to the table.
#[derive(Clone, Debug)]
pub struct Write<R: Record> {
    /// The entity's version. If it is not newer than the stored one, nothing changes.
    pub version: u64,
    /// What replicas are told.
    pub change: Change<R>,
    /// The entity's data as JSON; `None` for a removal.
    pub data: Option<String>,
}

impl<R: Record> Write<R> {
    /// Returns the id of the entity that changes.
    pub fn id(&self) -> R::Id {
        match &self.change {
            Change::Put(record) => record.id(),
            Change::Remove(id) => id.clone(),
        }
    }
}

/// A change of the catalog.
pub type CatalogWrite = Write<PublicItem>;

#[derive(Serialize, Deserialize)]
#[serde(remote = "PublicItem")]
struct PackedItem {
    id: ItemId,
    kind: ItemKind,
    name: Option<Label>,
    slug: Option<Label>,
    image: Option<Link>,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PublicListing")]
struct PackedListing {
    id: ListingId,
    id8: Id8,
    price_usd: Usd,
    kind: ListingKind,
    is_auction: bool,
    created_at: Timestamp,
    item_id: Option<ItemId>,
    variant_id: Option<VariantId>,
    market_hash_name: Option<Label>,
}

impl Record for PublicItem {
    type Id = ItemId;
    const STREAM: &'static str = "catalog";
    const LOG_ENTRY: Format = Format::first("log entry of catalog");

    fn id(&self) -> ItemId {
        self.id.clone()
    }

    fn pack<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PackedItem::serialize(self, serializer)
    }

    fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PackedItem::deserialize(deserializer)
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

    fn pack<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        PackedListing::serialize(self, serializer)
    }

    fn unpack<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PackedListing::deserialize(deserializer)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Unpacks the changes of a log entry in the first layout. Such bytes never change: whoever needs others needs
    /// another layout.
    fn unpacked<R: Record>(packed: &[u8]) -> Vec<Change<R>> {
        let (layout, changes) = R::LOG_ENTRY.split(packed).unwrap();
        assert_eq!(layout, 1);
        postcard::from_bytes(changes).unwrap()
    }

    #[test]
    fn log_entries_in_the_first_layout_are_read() {
        let items = b"\x01\x02\0\x0dsticker-crown\x07sticker\0\x01\x0dsticker-crown\0\x01\x04gone";
        let [Change::Put(item), Change::Remove(gone)] = &unpacked::<PublicItem>(items)[..] else { panic!() };
        assert_eq!((item.kind.as_str(), item.name.as_ref(), gone.as_str()), ("sticker", None, "gone"));
        let listings = b"\x01\x01\0\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x01\x64\0\0\x80\xb4\xb0\x86\xbf\x68\
            \x01\x0dak-47-redline\x01\x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x07\
            \x01\x1eAK-47 | Redline (Field-Tested)";
        let [Change::Put(listing)] = &unpacked::<PublicListing>(listings)[..] else { panic!() };
        assert_eq!((listing.price_usd.to_string(), listing.kind), ("1.00".to_owned(), ListingKind::Bot));
        assert_eq!(listing.market_hash_name.as_ref().map(Label::as_str), Some("AK-47 | Redline (Field-Tested)"));
    }
}
