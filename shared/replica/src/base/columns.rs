//! Records stored column by column. A base keeps items and listings like this, and replicas build their indexes from it.
//!
//! A value that many records share stands only once, in a dictionary. So reading a million records does not make a
//! million small strings on the way.

use std::cmp::Ordering;

use indexmap::IndexSet;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use common::ids::{Id8, ItemId, ListingId, VariantId};
use common::layout::Format;
use common::money::Usd;
use common::records::{ListingKind, PublicItem, PublicListing};
use common::store::StoreError;
use common::timestamp::Timestamp;
use market::Record;

/// Separates the texts of an item. None of them contains it, because texts have no control characters.
pub const BETWEEN: char = '\n';
const P2P: u8 = 1;
const AUCTION: u8 = 2;
const ID_BYTES: usize = 16;

/// A record that a base keeps in columns.
pub trait Columnar: Record {
    /// Many such records, stored column by column.
    type Columns: Columns<Record = Self>;
    /// The format of a packed part of such records. Postcard is positional: the order of the columns is part of it.
    const PART: Format;
    /// The format of a packed delta.
    const DELTA: Format;

    /// The order of records in a base. Records that share the most values stand next to each other.
    fn base_order(&self, other: &Self) -> Ordering;
}

/// Many records of one stream, stored column by column.
pub trait Columns: Default + Serialize + DeserializeOwned + Send + Sync + 'static {
    type Record: Columnar;

    /// Adds a record at the end.
    fn push(&mut self, record: &Self::Record);

    fn len(&self) -> usize;

    /// Keeps the records whose id passes the test.
    fn retain(&mut self, keep: impl FnMut(&IdOf<Self>) -> bool);

    /// Returns whether the columns fit together. Check this before you use columns that were read from a part.
    fn is_sound(&self) -> bool;

    /// Returns the records, in the order in which they were added.
    fn records(&self) -> Result<Vec<Self::Record>, StoreError>;

    /// Returns the records of several columns in the order of a base, one at a time. Needs some 60 bytes for each of them
    /// meanwhile.
    fn in_base_order(slices: &[Self]) -> impl Iterator<Item = Result<Self::Record, StoreError>> + Send;

    /// Makes columns from records.
    fn from_records<'a>(records: impl IntoIterator<Item = &'a Self::Record>) -> Self
    where
        Self::Record: 'a,
    {
        let mut columns = Self::default();
        records.into_iter().for_each(|record| columns.push(record));
        columns
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

type IdOf<C> = <<C as Columns>::Record as Record>::Id;

/// Keeps the entries of a column whose place is marked.
fn keep_marked<T>(column: &mut Vec<T>, marks: &[bool]) {
    let mut marks = marks.iter();
    column.retain(|_| marks.next().is_some_and(|mark| *mark));
}

/// The error for a value that is missing from its dictionary or malformed.
fn unreadable(stream: &str) -> StoreError {
    StoreError::corrupt(format!("{stream}: a record of the base"))
}

/// Returns the index of a text in a dictionary. Adds the text if it is missing.
fn number(dictionary: &mut IndexSet<String>, text: &str) -> usize {
    dictionary.get_index_of(text).unwrap_or_else(|| dictionary.insert_full(text.to_owned()).0)
}

/// Returns the entry for an index into a dictionary. The entry 0 stands for no value.
fn entry(place: Option<usize>) -> u32 {
    place.map_or(0, |place| place as u32 + 1)
}

/// Returns the index into a dictionary that an entry stands for.
fn place(entry: u32) -> Option<usize> {
    (entry as usize).checked_sub(1)
}

/// Items in columns, without their variants.
#[derive(Default, Serialize, Deserialize)]
pub struct ItemColumns {
    pub kinds: IndexSet<String>,
    kind: Vec<u32>,
    texts: Vec<Box<str>>,
}

impl ItemColumns {
    /// Returns each item's kind, as its index in `kinds`, and its texts.
    pub fn into_rows(self) -> impl Iterator<Item = (usize, Box<str>)> {
        self.kind.into_iter().map(|kind| kind as usize).zip(self.texts)
    }
}

impl Columnar for PublicItem {
    type Columns = ItemColumns;
    const PART: Format = Format::first("base part of catalog");
    const DELTA: Format = Format::first("delta of catalog");

    /// The catalog's own order, so that building its index from a base needs no sorting.
    fn base_order(&self, other: &Self) -> Ordering {
        self.catalog_key().cmp(&other.catalog_key())
    }
}

impl Columns for ItemColumns {
    type Record = PublicItem;

    fn push(&mut self, item: &PublicItem) {
        self.kind.push(number(&mut self.kinds, item.kind.as_str()) as u32);
        self.texts.push(texts(item));
    }

    fn len(&self) -> usize {
        self.texts.len()
    }

    fn retain(&mut self, mut keep: impl FnMut(&ItemId) -> bool) {
        let id = |texts: &str| texts.split(BETWEEN).next().and_then(|id| id.parse().ok());
        let marks: Vec<bool> = self.texts.iter().map(|texts| id(texts).is_some_and(|id| keep(&id))).collect();
        keep_marked(&mut self.kind, &marks);
        keep_marked(&mut self.texts, &marks);
    }

    fn is_sound(&self) -> bool {
        self.kind.len() == self.len() && self.kind.iter().all(|kind| (*kind as usize) < self.kinds.len())
    }

    fn records(&self) -> Result<Vec<PublicItem>, StoreError> {
        let kinds = self.kind.iter().map(|kind| self.kinds.get_index(*kind as usize));
        let rows = kinds.zip(&self.texts);
        rows.map(|(kind, texts)| item(kind?, texts)).map(|item| item.ok_or_else(|| unreadable("catalog"))).collect()
    }

    fn in_base_order(slices: &[Self]) -> impl Iterator<Item = Result<PublicItem, StoreError>> + Send {
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for slice in slices {
            rows.extend(
                slice.kind.iter().zip(&slice.texts).map(|(kind, texts)| (&*slice.kinds[*kind as usize], &**texts)),
            );
        }
        rows.sort_unstable_by_key(|(_, texts)| catalog_key(texts));
        rows.into_iter().map(|(kind, texts)| item(kind, texts).ok_or_else(|| unreadable("catalog")))
    }
}

/// Returns the [`catalog_key`](PublicItem::catalog_key) of an item, from its texts.
#[inline]
pub fn catalog_key(texts: &str) -> (bool, &str, &str) {
    let (id, rest) = texts.split_once(BETWEEN).unwrap_or_default();
    let name = rest.split_once(BETWEEN).map_or("", |(name, _)| name);
    (name.is_empty(), name, id)
}

/// Joins an item's id, name, slug and image into one text. Missing ones are empty.
pub fn texts(item: &PublicItem) -> Box<str> {
    let name = item.name.as_ref().map_or("", |name| name.as_str());
    let slug = item.slug.as_ref().map_or("", |slug| slug.as_str());
    let image = item.image.as_ref().map_or("", |image| image.as_str());
    format!("{}{BETWEEN}{name}{BETWEEN}{slug}{BETWEEN}{image}", item.id).into()
}

/// Makes an item from its kind and its joined texts.
pub fn item(kind: &str, texts: &str) -> Option<PublicItem> {
    let mut texts = texts.split(BETWEEN);
    let id = texts.next()?.parse().ok()?;
    let mut text = || texts.next().filter(|text| !text.is_empty());
    Some(PublicItem {
        id,
        kind: kind.parse().ok()?,
        name: text().and_then(|name| name.parse().ok()),
        slug: text().and_then(|slug| slug.parse().ok()),
        image: text().and_then(|image| image.parse().ok()),
    })
}

/// Listings in columns. Compressed, each takes about 22 bytes, 16 of them for its id.
#[derive(Default, Serialize, Deserialize)]
pub struct ListingColumns {
    pub items: IndexSet<String>,
    pub names: IndexSet<String>,
    pub variants: IndexSet<Uuid>,
    pub products: IndexSet<ProductEntry>,
    #[serde(with = "serde_bytes")]
    ids: Vec<u8>,
    /// Each `id8`, combined by xor with the first four bytes of the id. The two are often equal, which leaves 0.
    id8s: Vec<u32>,
    /// The creation times in milliseconds, each as its difference from the one before.
    created: Vec<i64>,
    cents: Vec<u64>,
    product: Vec<u32>,
    #[serde(with = "serde_bytes")]
    flags: Vec<u8>,
    #[serde(skip)]
    last_created: i64,
}

/// What a listing offers. Many listings offer the same, so this stands in a dictionary.
///
/// It has the places of its values in their dictionaries, each plus one. 0 stands for no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProductEntry {
    item: u32,
    name: u32,
    variant: u32,
}

/// A listing whose product is an index into the dictionary of its columns.
pub struct ListingEntry {
    pub id: Uuid,
    pub id8: Id8,
    pub created_at: Timestamp,
    pub cents: u64,
    pub product: usize,
    pub kind: ListingKind,
    pub is_auction: bool,
}

impl ProductEntry {
    pub fn item(self, columns: &ListingColumns) -> Option<&str> {
        columns.items.get_index(place(self.item)?).map(String::as_str)
    }

    pub fn name(self, columns: &ListingColumns) -> Option<&str> {
        columns.names.get_index(place(self.name)?).map(String::as_str)
    }

    pub fn variant(self, columns: &ListingColumns) -> Option<Uuid> {
        columns.variants.get_index(place(self.variant)?).copied()
    }

    /// Returns whether the dictionaries have its values.
    fn is_in(self, columns: &ListingColumns) -> bool {
        let fits = |entry: u32, known: usize| entry as usize <= known;
        fits(self.item, columns.items.len())
            && fits(self.name, columns.names.len())
            && fits(self.variant, columns.variants.len())
    }
}

impl ListingColumns {
    pub fn rows(&self) -> impl Iterator<Item = ListingEntry> {
        let ids = self.ids.as_chunks().0;
        let own = ids.iter().zip(&self.id8s).zip(self.times()).zip(&self.cents).zip(&self.flags);
        own.zip(&self.product).map(|(((((id, id8), created_at), cents), flags), product)| ListingEntry {
            id: Uuid::from_bytes(*id),
            id8: Id8::from_bits(id8 ^ head(id)),
            created_at: Timestamp::from_millis(created_at),
            cents: *cents,
            product: *product as usize,
            kind: if flags & P2P == 0 { ListingKind::Bot } else { ListingKind::P2p },
            is_auction: flags & AUCTION != 0,
        })
    }

    /// The creation times, in milliseconds since the Unix epoch.
    fn times(&self) -> impl Iterator<Item = i64> {
        self.created.iter().scan(0_i64, |last, difference| {
            *last = last.wrapping_add(*difference);
            Some(*last)
        })
    }

    fn record(&self, row: &ListingEntry) -> Option<PublicListing> {
        let product = self.products.get_index(row.product)?;
        Some(PublicListing {
            id: row.id.into(),
            id8: row.id8,
            price_usd: Usd::from_cents(row.cents),
            kind: row.kind,
            is_auction: row.is_auction,
            created_at: row.created_at,
            item_id: product.item(self).map(str::parse).transpose().ok()?,
            variant_id: product.variant(self).map(VariantId::from),
            market_hash_name: product.name(self).map(str::parse).transpose().ok()?,
        })
    }

    /// Returns what the order of a base compares.
    fn base_key(&self, row: &ListingEntry) -> impl Ord {
        let product = self.products[row.product];
        (product.item(self), product.variant(self), row.created_at, row.id)
    }

    /// Returns the place of a listing's product in the dictionary. Adds it if it is missing.
    fn product_of(&mut self, listing: &PublicListing) -> usize {
        let product = ProductEntry {
            item: entry(listing.item_id.as_ref().map(|id| number(&mut self.items, id.as_str()))),
            name: entry(listing.market_hash_name.as_ref().map(|name| number(&mut self.names, name.as_str()))),
            variant: entry(listing.variant_id.map(|id| self.variants.insert_full(id.uuid()).0)),
        };
        self.products.insert_full(product).0
    }
}

impl Columnar for PublicListing {
    type Columns = ListingColumns;
    const PART: Format = Format::first("base part of listings");
    const DELTA: Format = Format::first("delta of listings");

    /// Puts the listings of a variant next to each other, because they share item, variant and name.
    fn base_order(&self, other: &Self) -> Ordering {
        let key = |listing: &Self| (listing.variant_id, listing.created_at, listing.id);
        self.item_id.cmp(&other.item_id).then_with(|| key(self).cmp(&key(other)))
    }
}

impl Columns for ListingColumns {
    type Record = PublicListing;

    fn push(&mut self, listing: &PublicListing) {
        let (id, millis) = (listing.id.uuid().into_bytes(), listing.created_at.millis());
        self.ids.extend_from_slice(&id);
        self.id8s.push(listing.id8.bits() ^ head(&id));
        self.created.push(millis.wrapping_sub(self.last_created));
        self.last_created = millis;
        self.cents.push(listing.price_usd.cents());
        let product = self.product_of(listing) as u32;
        self.product.push(product);
        let kind = match listing.kind {
            ListingKind::Bot => 0,
            ListingKind::P2p => P2P,
        };
        self.flags.push(kind | if listing.is_auction { AUCTION } else { 0 });
    }

    fn len(&self) -> usize {
        self.product.len()
    }

    fn retain(&mut self, mut keep: impl FnMut(&ListingId) -> bool) {
        let ids = self.ids.as_chunks().0;
        let marks: Vec<bool> = ids.iter().map(|id| keep(&Uuid::from_bytes(*id).into())).collect();
        if marks.iter().all(|mark| *mark) {
            return;
        }
        let kept = ids.iter().zip(&marks).filter(|(_, mark)| **mark);
        self.ids = kept.flat_map(|(id, _): (&[u8; ID_BYTES], _)| *id).collect();
        let mut times: Vec<i64> = self.times().collect();
        keep_marked(&mut times, &marks);
        self.last_created = 0;
        self.created =
            times.iter().map(|time| time.wrapping_sub(std::mem::replace(&mut self.last_created, *time))).collect();
        keep_marked(&mut self.cents, &marks);
        keep_marked(&mut self.flags, &marks);
        keep_marked(&mut self.id8s, &marks);
        keep_marked(&mut self.product, &marks);
    }

    fn is_sound(&self) -> bool {
        let rows = self.len();
        self.ids.len() == rows * ID_BYTES
            && [self.id8s.len(), self.created.len(), self.cents.len(), self.flags.len()] == [rows; 4]
            && self.products.iter().all(|product| product.is_in(self))
            && self.product.iter().all(|product| (*product as usize) < self.products.len())
    }

    fn records(&self) -> Result<Vec<PublicListing>, StoreError> {
        self.rows().map(|row| self.record(&row).ok_or_else(|| unreadable("listings"))).collect()
    }

    fn in_base_order(slices: &[Self]) -> impl Iterator<Item = Result<PublicListing, StoreError>> + Send {
        let mut rows: Vec<(&Self, ListingEntry)> = Vec::new();
        for slice in slices {
            rows.extend(slice.rows().map(|row| (slice, row)));
        }
        rows.sort_unstable_by(|(one, a), (other, b)| one.base_key(a).cmp(&other.base_key(b)));
        rows.into_iter().map(|(slice, row)| slice.record(&row).ok_or_else(|| unreadable("listings")))
    }
}

fn head(id: &[u8; ID_BYTES]) -> u32 {
    u32::from_be_bytes([id[0], id[1], id[2], id[3]])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use common::ids::Id8;
    use common::money::Usd;
    use common::records::{ListingKind, PublicItem, PublicListing};
    use common::timestamp::Timestamp;

    fn listings() -> impl Strategy<Value = PublicListing> {
        let own = (any::<u128>(), any::<u32>(), 0u64..=99_999_999_999_999, any::<bool>(), any::<bool>());
        let shared = (prop::option::of(0u8..3), prop::option::of(0u128..3), prop::option::of(0u8..3));
        (own, shared, 0i64..4_000_000_000_000).prop_map(
            |((id, id8, cents, p2p, is_auction), (item, variant, name), millis)| PublicListing {
                id: Uuid::from_u128(id).into(),
                id8: Id8::from_bits(id8),
                price_usd: Usd::from_cents(cents),
                kind: if p2p { ListingKind::P2p } else { ListingKind::Bot },
                is_auction,
                created_at: Timestamp::from_millis(millis),
                item_id: item.map(|item| format!("item-{item}").parse().unwrap()),
                variant_id: variant.map(|variant| Uuid::from_u128(variant).into()),
                market_hash_name: name.map(|name| format!("★ {name} |").parse().unwrap()),
            },
        )
    }

    fn items() -> impl Strategy<Value = PublicItem> {
        let text = || prop::option::of("[a-zÄ★ |]{1,9}");
        (0u32..1_000, 0u8..3, text(), text(), any::<bool>()).prop_map(|(id, kind, name, slug, image)| PublicItem {
            id: format!("i{id}").parse().unwrap(),
            kind: format!("kind_{kind}").parse().unwrap(),
            name: name.map(|name| name.parse().unwrap()),
            slug: slug.map(|slug| slug.parse().unwrap()),
            image: image.then(|| format!("https://img.example/{id}.png").parse().unwrap()),
        })
    }

    fn back<C: Columns>(records: &[C::Record]) -> Vec<C::Record> {
        let packed = postcard::to_stdvec(&C::from_records(records)).unwrap();
        let columns: C = postcard::from_bytes(&packed).unwrap();
        assert!(columns.is_sound());
        assert_eq!(columns.len(), records.len());
        columns.records().unwrap()
    }

    proptest! {
        #[test]
        fn listings_come_back_as_they_were(listings in prop::collection::vec(listings(), 0..60)) {
            prop_assert_eq!(back::<ListingColumns>(&listings), listings);
        }

        #[test]
        fn items_come_back_as_they_were(items in prop::collection::vec(items(), 0..60)) {
            prop_assert_eq!(back::<ItemColumns>(&items), items);
        }

        #[test]
        fn columns_are_in_order_together(
            listings in prop::collection::vec(listings(), 0..60),
            items in prop::collection::btree_map(0u32..1_000, items(), 0..60),
        ) {
            fn check<C: Columns<Record: PartialEq>>(mut records: Vec<C::Record>) -> Result<(), TestCaseError> {
                let slices: Vec<C> = records.chunks(7).map(C::from_records).collect();
                let together = C::in_base_order(&slices).collect::<Result<Vec<_>, _>>().unwrap();
                records.sort_by(C::Record::base_order);
                prop_assert_eq!(together, records);
                Ok(())
            }
            check::<ListingColumns>(listings)?;
            let with_id = |(id, item)| PublicItem { id: format!("i{id}").parse().unwrap(), ..item };
            check::<ItemColumns>(items.into_iter().map(with_id).collect())?;
        }

        #[test]
        fn what_is_not_kept_is_gone_and_the_rest_as_it_was(
            listings in prop::collection::vec((listings(), any::<bool>()), 0..60),
            items in prop::collection::vec((items(), any::<bool>()), 0..60),
        ) {
            let mut columns = ListingColumns::from_records(listings.iter().map(|(listing, _)| listing));
            columns.retain(|id| listings.iter().any(|(listing, keep)| *keep && listing.id == *id));
            let kept: Vec<_> = listings.into_iter().filter(|(_, keep)| *keep).map(|(listing, _)| listing).collect();
            prop_assert_eq!(columns.records().unwrap(), kept);
            // Item ids may repeat here. If one item is kept, so are all others with its id.
            let is_kept = |id: &common::ids::ItemId| items.iter().any(|(item, keep)| *keep && item.id == *id);
            let mut columns = ItemColumns::from_records(items.iter().map(|(item, _)| item));
            columns.retain(is_kept);
            let kept: Vec<_> = items.iter().map(|(item, _)| item.clone()).filter(|item| is_kept(&item.id)).collect();
            prop_assert_eq!(columns.records().unwrap(), kept);
        }

        #[test]
        fn what_passes_for_sound_can_be_read(bytes in prop::collection::vec(0u8..6, 0..60)) {
            if let Ok(columns) = postcard::from_bytes::<ListingColumns>(&bytes) && columns.is_sound() {
                prop_assert_eq!(columns.rows().count(), columns.len());
                let _ = columns.records();
            }
            if let Ok(columns) = postcard::from_bytes::<ItemColumns>(&bytes) && columns.is_sound() {
                let _ = columns.records();
                prop_assert_eq!(columns.len(), columns.into_rows().count());
            }
        }
    }
}
