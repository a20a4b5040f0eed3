//! The listings of a variant. Nearly always, all of them name the same item.

use std::collections::BTreeMap;

use super::group::Group;
use super::rows::{PackedListings, Symbol};
use crate::sequence::Slot;

/// The listings of a variant.
#[derive(Default)]
pub(super) struct VariantListings {
    pub(super) group: Group,
    /// The listings of each item, [`NONE`](super::rows::NONE) included. Empty as long as all listings have the same one.
    /// Once made, it is kept until the variant has no listings, because making it takes a walk over all of them.
    by_item: BTreeMap<Symbol, Group>,
}

impl VariantListings {
    pub(super) fn new(group: Group, rows: &PackedListings) -> Self {
        let mut variant = Self { group, ..Self::default() };
        if let Some(item) = variant.only_item(rows)
            && !variant.group.all(|slot| rows.get(slot).item == item)
        {
            variant.divide(rows);
        }
        variant
    }

    /// Returns the listings that name an item, if there may be any.
    pub(super) fn of_item(&self, rows: &PackedListings, item: Symbol) -> Option<&Group> {
        if self.by_item.is_empty() {
            (self.only_item(rows) == Some(item)).then_some(&self.group)
        } else {
            self.by_item.get(&item)
        }
    }

    pub(super) fn insert(&mut self, rows: &PackedListings, slot: Slot) {
        let item = rows.get(slot).item;
        if self.by_item.is_empty() && self.only_item(rows).is_some_and(|only| only != item) {
            self.divide(rows);
        }
        self.group.insert(rows, slot);
        if !self.by_item.is_empty() {
            self.by_item.entry(item).or_default().insert(rows, slot);
        }
    }

    pub(super) fn remove(&mut self, rows: &PackedListings, slot: Slot) {
        self.group.remove(rows, slot);
        let item = rows.get(slot).item;
        if let Some(group) = self.by_item.get_mut(&item) {
            group.remove(rows, slot);
            if group.len() == 0 {
                self.by_item.remove(&item);
            }
        }
    }

    /// Returns the item of one of the listings. While they are not divided, it is the item of all of them.
    fn only_item(&self, rows: &PackedListings) -> Option<Symbol> {
        self.group.newest_slot().map(|slot| rows.get(slot).item)
    }

    fn divide(&mut self, rows: &PackedListings) {
        self.by_item = self.group.divided(rows, |slot| rows.get(slot).item);
    }
}
