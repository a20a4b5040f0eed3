//! Items, each packed into one text, found by slot or by id.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::base::columns;
use crate::sequence::Slot;
use common::records::PublicItem;

/// The key that the catalog is ordered by: see [`PublicItem::catalog_key`].
pub(super) type CatalogKey<'a> = (bool, &'a str, &'a str);

/// An item without its kind, packed as in [`columns`].
pub(super) struct PackedItem(Box<str>);

/// Every item, by slot.
#[derive(Default)]
pub(super) struct PackedItems {
    packed: Vec<PackedItem>,
    free: Vec<Slot>,
    index: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    /// Counts the looks at an item.
    #[cfg(test)]
    pub(super) looks: std::sync::atomic::AtomicUsize,
}

impl PackedItem {
    pub(super) fn key(&self) -> CatalogKey<'_> {
        columns::catalog_key(&self.0)
    }

    fn id(&self) -> &str {
        self.0.split_once(columns::BETWEEN).map_or("", |(id, _)| id)
    }

    /// Returns the name, which is empty if there is none.
    pub(super) fn name(&self) -> &str {
        self.key().1
    }

    pub(super) fn item(&self, kind: &str) -> Option<PublicItem> {
        columns::item(kind, &self.0)
    }
}

impl From<Box<str>> for PackedItem {
    fn from(texts: Box<str>) -> Self {
        Self(texts)
    }
}

impl From<&PublicItem> for PackedItem {
    fn from(item: &PublicItem) -> Self {
        Self(columns::texts(item))
    }
}

impl PackedItems {
    /// Stores these items in the slots 0, 1, 2, …
    pub(super) fn new(rows: Vec<PackedItem>) -> Self {
        let (mut index, hasher) = (HashTable::with_capacity(rows.len()), DefaultHashBuilder::default());
        for (slot, row) in (0..).zip(&rows) {
            index.insert_unique(hasher.hash_one(row.id()), slot, |known: &Slot| {
                hasher.hash_one(rows[*known as usize].id())
            });
        }
        Self { packed: rows, index, hasher, ..Self::default() }
    }

    /// Returns the slots in the catalog's order. None of them may be free.
    pub(super) fn in_order(&self) -> Vec<Slot> {
        let mut slots: Vec<Slot> = (0..self.packed.len() as Slot).collect();
        // The items of a base are in order, and a few newer ones come after them. A stable sort finds what is in order
        // and merges the rest into it. An unstable one would compare each item with a dozen others.
        slots.sort_by(|a, b| self.get(*a).key().cmp(&self.get(*b).key()));
        slots
    }

    pub(super) fn get(&self, slot: Slot) -> &PackedItem {
        #[cfg(test)]
        self.looks.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        &self.packed[slot as usize]
    }

    pub(super) fn find(&self, id: &str) -> Option<Slot> {
        self.index.find(self.hasher.hash_one(id), |slot| self.get(*slot).id() == id).copied()
    }

    /// Stores an item. Its id must not be there yet.
    pub(super) fn insert(&mut self, row: PackedItem) -> Slot {
        let hash = self.hasher.hash_one(row.id());
        let slot = if let Some(slot) = self.free.pop() {
            self.packed[slot as usize] = row;
            slot
        } else {
            self.packed.push(row);
            self.packed.len() as Slot - 1
        };
        let (rows, hasher) = (&self.packed, &self.hasher);
        self.index.insert_unique(hash, slot, |known| hasher.hash_one(rows[*known as usize].id()));
        slot
    }

    /// Stores an item in the place of one with the same id.
    pub(super) fn replace(&mut self, slot: Slot, row: PackedItem) {
        self.packed[slot as usize] = row;
    }

    /// Frees a slot. Its item stays until the slot is used again.
    pub(super) fn remove(&mut self, slot: Slot) {
        let hash = self.hasher.hash_one(self.get(slot).id());
        if let Ok(known) = self.index.find_entry(hash, |known| *known == slot) {
            known.remove();
            self.free.push(slot);
        }
    }
}
