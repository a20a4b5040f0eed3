//! Listings packed into 48 bytes each, found by slot or by id. What several listings offer is stored once, and they refer
//! to it by number.

use std::cmp::Ordering;
use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use indexmap::IndexSet;
use uuid::Uuid;

use crate::base::{Columns, ListingColumns};
use crate::sequence::{Exact, Slot};
use common::ids::{Id8, ItemId, Label, ListingId, VariantId};
use common::money::Usd;
use common::records::{ListingKind, PublicListing};
use common::timestamp::Timestamp;

/// The number of a value that many listings share; [`NONE`] for none.
pub(super) type Symbol = u32;
pub(super) const NONE: Symbol = Symbol::MAX;

/// Distinct values by number. None is ever removed, because items and variants come back.
type Distinct<T> = IndexSet<T, DefaultHashBuilder>;

/// One listing, packed.
pub(super) struct PackedListing {
    pub(super) id: Uuid,
    pub(super) created_at: Timestamp,
    pub(super) cents: u64,
    product: Symbol,
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
    products: Products,
    pub(super) items: Distinct<Box<str>>,
    pub(super) variants: Distinct<Uuid>,
    /// Counts the looks at a listing.
    #[cfg(test)]
    pub(super) looks: std::sync::atomic::AtomicUsize,
}

impl PackedListings {
    /// Stores the listings of parts in the slots 0, 1, 2, … They are not found by their ids until
    /// [`index_ids`](Self::index_ids) was called.
    pub(super) fn from_columns(parts: Vec<ListingColumns>) -> Self {
        let mut rows = Self::default();
        rows.slots.reserve_exact(parts.iter().map(ListingColumns::len).sum());
        // Each part is dropped as soon as it is taken in. Otherwise a million listings would be in memory twice, and
        // that would decide how much memory the function needs.
        for columns in parts {
            rows.take_in(&columns);
        }
        rows
    }

    fn take_in(&mut self, columns: &ListingColumns) {
        let products: Vec<Symbol> = columns
            .products
            .iter()
            .map(|product| {
                self.number_of_product(product.item(columns), product.variant(columns), product.name(columns))
            })
            .collect();
        for row in columns.rows() {
            let product = products[row.product];
            self.products.known[product as usize].listings += 1;
            self.slots.push(PackedListing {
                id: row.id,
                created_at: row.created_at,
                cents: row.cents,
                product,
                id8: row.id8,
                kind: row.kind,
                is_auction: row.is_auction,
            });
        }
    }

    /// Returns an index of the ids of all slots.
    pub(super) fn index_of_ids(&self) -> HashTable<Slot> {
        let mut index = HashTable::with_capacity(self.slots.len());
        for (slot, row) in (0..).zip(&self.slots) {
            index.insert_unique(self.hasher.hash_one(row.id), slot, |known: &Slot| {
                self.hasher.hash_one(self.slots[*known as usize].id)
            });
        }
        index
    }

    pub(super) fn index_ids(&mut self, index: HashTable<Slot>) {
        self.index = index;
    }

    /// Returns the number of a product, which gets one if it has none.
    fn number_of_product(&mut self, item: Option<&str>, variant: Option<Uuid>, name: Option<&str>) -> Symbol {
        let item = item.map_or(NONE, |id| number(&mut self.items, id));
        let variant = variant.map_or(NONE, |id| self.variants.insert_full(id).0 as Symbol);
        self.products.number_of(item, variant, name)
    }

    pub(super) fn pack(&mut self, listing: &PublicListing) -> PackedListing {
        let item = listing.item_id.as_ref().map(ItemId::as_str);
        let name = listing.market_hash_name.as_ref().map(Label::as_str);
        PackedListing {
            id: listing.id.uuid(),
            created_at: listing.created_at,
            cents: listing.price_usd.cents(),
            product: self.number_of_product(item, listing.variant_id.map(VariantId::uuid), name),
            id8: listing.id8,
            kind: listing.kind,
            is_auction: listing.is_auction,
        }
    }

    pub(super) fn listing(&self, slot: Slot) -> PublicListing {
        let row = self.get(slot);
        let Product { item, variant, name, .. } = &self.products.known[row.product as usize];
        PublicListing {
            id: row.id.into(),
            id8: row.id8,
            price_usd: Usd::from_cents(row.cents),
            kind: row.kind,
            is_auction: row.is_auction,
            created_at: row.created_at,
            item_id: self.items.get_index(*item as usize).and_then(|id| id.parse().ok()),
            variant_id: self.variants.get_index(*variant as usize).map(|id| VariantId::from(*id)),
            market_hash_name: name.as_ref().and_then(|name| name.parse().ok()),
        }
    }

    /// Returns the item of a listing.
    pub(super) fn item_of(&self, slot: Slot) -> Symbol {
        self.products.known[self.get(slot).product as usize].item
    }

    /// Returns the variant of a listing.
    pub(super) fn variant_of(&self, slot: Slot) -> Symbol {
        self.products.known[self.get(slot).product as usize].variant
    }

    /// Returns the item and the variant of each product that is listed.
    pub(super) fn listed(&self) -> impl Iterator<Item = (Symbol, Symbol)> {
        let listed = self.products.known.iter().filter(|product| product.listings > 0);
        listed.map(|product| (product.item, product.variant))
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
        self.products.known[row.product as usize].listings += 1;
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

    /// Frees the slot of an id and returns it. Its listing and its product stay until the next one is stored.
    pub(super) fn remove(&mut self, id: ListingId) -> Option<Slot> {
        let (id, rows) = (id.uuid(), &self.slots);
        let found = self.index.find_entry(self.hasher.hash_one(id), |slot| rows[*slot as usize].id == id);
        let (slot, _) = found.ok()?.remove();
        self.free.push(slot);
        self.products.release(self.slots[slot as usize].product);
        Some(slot)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    #[cfg(test)]
    pub(super) const fn products(&self) -> usize {
        self.products.known.len()
    }
}

/// What a listing offers, and how many listings offer it.
struct Product {
    item: Symbol,
    variant: Symbol,
    name: Option<Box<str>>,
    listings: u32,
}

/// All products by number. The number of one that is listed no more is used again, because names may be unique.
#[derive(Default)]
struct Products {
    known: Vec<Product>,
    free: Vec<Symbol>,
    index: HashTable<Symbol>,
    hasher: DefaultHashBuilder,
}

impl Products {
    /// Returns the number of a product. Adds it, with no listings, if it is missing.
    fn number_of(&mut self, item: Symbol, variant: Symbol, name: Option<&str>) -> Symbol {
        let Self { known, free, index, hasher } = self;
        let hash = hasher.hash_one((item, variant, name));
        let is_equal = |at: &Symbol| known[*at as usize].key() == (item, variant, name);
        if let Some(number) = index.find(hash, is_equal) {
            return *number;
        }
        let product = Product { item, variant, name: name.map(Box::from), listings: 0 };
        let number = free.pop().unwrap_or(known.len() as Symbol);
        match known.get_mut(number as usize) {
            Some(unused) => *unused = product,
            None => known.push(product),
        }
        index.insert_unique(hash, number, |at| hasher.hash_one(known[*at as usize].key()));
        number
    }

    /// Notes that one listing less offers a product. Frees its number if there is none left.
    fn release(&mut self, number: Symbol) {
        let product = &mut self.known[number as usize];
        product.listings -= 1;
        if product.listings == 0 {
            let hash = self.hasher.hash_one(product.key());
            if let Ok(entry) = self.index.find_entry(hash, |at| *at == number) {
                entry.remove();
                self.free.push(number);
            }
        }
    }
}

impl Product {
    fn key(&self) -> (Symbol, Symbol, Option<&str>) {
        (self.item, self.variant, self.name.as_deref())
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
