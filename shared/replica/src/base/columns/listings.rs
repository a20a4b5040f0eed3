//! Listings in columns. Items, variants and names, which many listings share, stand in dictionaries.

use std::cmp::Ordering;

use indexmap::IndexSet;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Columnar, Columns, entry, fits, keep_marked, number, optional, place, unreadable};
use common::ids::{Id8, ListingId, VariantId};
use common::layout::Format;
use common::money::Usd;
use common::records::{ListingKind, PublicListing};
use common::store::StoreError;
use common::timestamp::Timestamp;

const P2P: u8 = 1;
const AUCTION: u8 = 2;

/// Listings in columns. Compressed, each takes about 23 bytes, 16 of them for its id.
#[derive(Default, Serialize, Deserialize)]
pub struct ListingColumns {
    pub items: IndexSet<String>,
    pub names: IndexSet<String>,
    pub variants: IndexSet<Uuid>,
    ids: Vec<[u8; 16]>,
    /// Each `id8`, combined by xor with the first four bytes of the id. The two are often equal, which leaves 0.
    id8s: Vec<u32>,
    /// The creation times in milliseconds, each as its difference from the one before.
    created: Vec<i64>,
    cents: Vec<u64>,
    item: Vec<u32>,
    name: Vec<u32>,
    variant: Vec<u32>,
    flags: Vec<u8>,
    #[serde(skip)]
    last_created: i64,
}

/// A listing whose shared values are indexes into the dictionaries of its columns.
pub struct ListingEntry {
    pub id: Uuid,
    pub id8: Id8,
    pub created_at: Timestamp,
    pub cents: u64,
    pub item: Option<usize>,
    pub name: Option<usize>,
    pub variant: Option<usize>,
    pub kind: ListingKind,
    pub is_auction: bool,
}

impl ListingColumns {
    pub fn rows(&self) -> impl Iterator<Item = ListingEntry> {
        let shared = self.item.iter().zip(&self.name).zip(&self.variant);
        let own = self.ids.iter().zip(&self.id8s).zip(self.times()).zip(&self.cents).zip(&self.flags);
        own.zip(shared).map(|(((((id, id8), created_at), cents), flags), ((item, name), variant))| ListingEntry {
            id: Uuid::from_bytes(*id),
            id8: Id8::from_bits(id8 ^ head(id)),
            created_at: Timestamp::from_millis(created_at),
            cents: *cents,
            item: place(*item),
            name: place(*name),
            variant: place(*variant),
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
        Some(PublicListing {
            id: row.id.into(),
            id8: row.id8,
            price_usd: Usd::from_cents(row.cents),
            kind: row.kind,
            is_auction: row.is_auction,
            created_at: row.created_at,
            item_id: optional(row.item, |at| self.items.get_index(at)?.parse().ok())?,
            variant_id: optional(row.variant, |at| self.variants.get_index(at).map(|id| VariantId::from(*id)))?,
            market_hash_name: optional(row.name, |at| self.names.get_index(at)?.parse().ok())?,
        })
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
        self.ids.push(id);
        self.id8s.push(listing.id8.bits() ^ head(&id));
        self.created.push(millis.wrapping_sub(self.last_created));
        self.last_created = millis;
        self.cents.push(listing.price_usd.cents());
        self.item.push(entry(listing.item_id.as_ref().map(|id| number(&mut self.items, id.as_str()))));
        self.name.push(entry(listing.market_hash_name.as_ref().map(|name| number(&mut self.names, name.as_str()))));
        self.variant.push(entry(listing.variant_id.map(|id| self.variants.insert_full(id.uuid()).0)));
        let kind = match listing.kind {
            ListingKind::Bot => 0,
            ListingKind::P2p => P2P,
        };
        self.flags.push(kind | if listing.is_auction { AUCTION } else { 0 });
    }

    fn len(&self) -> usize {
        self.ids.len()
    }

    fn retain(&mut self, mut keep: impl FnMut(&ListingId) -> bool) {
        let marks: Vec<bool> = self.ids.iter().map(|id| keep(&Uuid::from_bytes(*id).into())).collect();
        if marks.iter().all(|mark| *mark) {
            return;
        }
        let mut times: Vec<i64> = self.times().collect();
        keep_marked(&mut times, &marks);
        self.last_created = 0;
        self.created =
            times.iter().map(|time| time.wrapping_sub(std::mem::replace(&mut self.last_created, *time))).collect();
        keep_marked(&mut self.ids, &marks);
        keep_marked(&mut self.cents, &marks);
        keep_marked(&mut self.flags, &marks);
        for column in [&mut self.id8s, &mut self.item, &mut self.name, &mut self.variant] {
            keep_marked(column, &marks);
        }
    }

    fn is_sound(&self) -> bool {
        let rows = self.len();
        [self.id8s.len(), self.created.len(), self.cents.len(), self.flags.len()] == [rows; 4]
            && fits(&self.item, rows, self.items.len())
            && fits(&self.name, rows, self.names.len())
            && fits(&self.variant, rows, self.variants.len())
    }

    fn records(&self) -> Result<Vec<PublicListing>, StoreError> {
        self.rows().map(|row| self.record(&row).ok_or_else(|| unreadable("listings"))).collect()
    }
}

fn head(id: &[u8; 16]) -> u32 {
    u32::from_be_bytes([id[0], id[1], id[2], id[3]])
}
