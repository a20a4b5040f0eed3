//! Listings packed into 56 bytes each, found by slot or by id. Names, items and variants are stored once each, and
//! listings refer to them by number.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use indexmap::IndexSet;
use uuid::Uuid;

use crate::base::{Columns, ListingColumns};
use crate::sequence::{Exact, Slot};
use common::ids::{Id8, ListingId, VariantId};
use common::money::Usd;
use common::records::{ListingKind, PublicListing};
use common::timestamp::Timestamp;

/// The number of a value that many listings share; [`NONE`] for none.
pub(super) type Symbol = u32;
pub(super) const NONE: Symbol = Symbol::MAX;

/// Distinct values by number. None is ever removed, because items and names come back.
type Distinct<T> = IndexSet<T, DefaultHashBuilder>;

/// One listing, packed.
pub(super) struct PackedListing {
    pub(super) id: Uuid,
    pub(super) created_at: Timestamp,
    pub(super) cents: u64,
    pub(super) item: Symbol,
    pub(super) variant: Symbol,
    name: Symbol,
    id8: Id8,
    kind: ListingKind,
    is_auction: bool,
}

/// Every active listing, by slot.
#[derive(Default)]
pub(super) struct PackedListings {
    slots: Vec<PackedListing>,
    free: Vec<Slot>,
    index: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    pub(super) items: Distinct<Box<str>>,
    pub(super) variants: Distinct<Uuid>,
    names: Distinct<Box<str>>,
    /// Counts the looks at a listing.
    #[cfg(test)]
    pub(super) looks: std::sync::atomic::AtomicUsize,
}

impl PackedListings {
    /// Stores the listings of parts in the slots 0, 1, 2, …
    pub(super) fn from_columns(parts: Vec<ListingColumns>) -> Self {
        let mut rows = Self::default();
        let len = parts.iter().map(ListingColumns::len).sum();
        rows.slots.reserve_exact(len);
        rows.index.reserve(len, |_| 0);
        // Each part is dropped as soon as it is taken in. Otherwise a million listings would be in memory twice, and
        // that would decide how much memory the function needs.
        for columns in parts {
            rows.take_in(&columns);
        }
        rows
    }

    fn take_in(&mut self, columns: &ListingColumns) {
        let items: Vec<Symbol> = columns.items.iter().map(|id| number(&mut self.items, id)).collect();
        let names: Vec<Symbol> = columns.names.iter().map(|name| number(&mut self.names, name)).collect();
        let variants: Vec<Symbol> =
            columns.variants.iter().map(|id| self.variants.insert_full(*id).0 as Symbol).collect();
        let symbol = |known: &[Symbol], place: Option<usize>| place.map_or(NONE, |place| known[place]);
        for row in columns.rows() {
            self.insert(PackedListing {
                id: row.id,
                created_at: row.created_at,
                cents: row.cents,
                item: symbol(&items, row.item),
                variant: symbol(&variants, row.variant),
                name: symbol(&names, row.name),
                id8: row.id8,
                kind: row.kind,
                is_auction: row.is_auction,
            });
        }
    }

    pub(super) fn pack(&mut self, listing: &PublicListing) -> PackedListing {
        PackedListing {
            id: listing.id.uuid(),
            created_at: listing.created_at,
            cents: listing.price_usd.cents(),
            item: listing.item_id.as_ref().map_or(NONE, |id| number(&mut self.items, id.as_str())),
            variant: listing.variant_id.map_or(NONE, |id| self.variants.insert_full(id.uuid()).0 as Symbol),
            name: listing.market_hash_name.as_ref().map_or(NONE, |name| number(&mut self.names, name.as_str())),
            id8: listing.id8,
            kind: listing.kind,
            is_auction: listing.is_auction,
        }
    }

    pub(super) fn listing(&self, slot: Slot) -> PublicListing {
        let row = self.get(slot);
        PublicListing {
            id: row.id.into(),
            id8: row.id8,
            price_usd: Usd::from_cents(row.cents),
            kind: row.kind,
            is_auction: row.is_auction,
            created_at: row.created_at,
            item_id: self.items.get_index(row.item as usize).and_then(|id| id.parse().ok()),
            variant_id: self.variants.get_index(row.variant as usize).map(|id| VariantId::from(*id)),
            market_hash_name: self.names.get_index(row.name as usize).and_then(|name| name.parse().ok()),
        }
    }

    pub(super) fn get(&self, slot: Slot) -> &PackedListing {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        &self.slots[slot as usize]
    }

    /// Returns how many slots there are, free ones included.
    pub(super) fn count(&self) -> Slot {
        self.slots.len() as Slot
    }

    /// Stores a listing. Its id must not be there yet.
    pub(super) fn insert(&mut self, row: PackedListing) -> Slot {
        let hash = self.hasher.hash_one(row.id);
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = row;
            slot
        } else {
            self.slots.push(row);
            self.count() - 1
        };
        let (rows, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, slot, |known| hasher.hash_one(rows[*known as usize].id));
        slot
    }

    /// Frees the slot of an id and returns it. Its listing stays until the slot is used again.
    pub(super) fn remove(&mut self, id: ListingId) -> Option<Slot> {
        let (id, rows) = (id.uuid(), &self.slots);
        let found = self.index.find_entry(self.hasher.hash_one(id), |slot| rows[*slot as usize].id == id);
        let (slot, _) = found.ok()?.remove();
        self.free.push(slot);
        Some(slot)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }
}

impl Exact for PackedListings {
    fn cents(&self, slot: Slot) -> u64 {
        self.get(slot).cents
    }
}

/// Compares listings for the order: latest first, then by id.
pub(super) fn newest(a: &PackedListing, b: &PackedListing) -> Ordering {
    b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id))
}

/// Compares listings for the order: cheapest first, then as [`newest`].
pub(super) fn cheapest(a: &PackedListing, b: &PackedListing) -> Ordering {
    a.cents.cmp(&b.cents).then_with(|| newest(a, b))
}

fn number(distinct: &mut Distinct<Box<str>>, text: &str) -> Symbol {
    distinct.get_index_of(text).unwrap_or_else(|| distinct.insert_full(text.into()).0) as Symbol
}
