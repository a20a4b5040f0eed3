//! The listings replica: all listings, those of each item and of each variant, each in two orders.

mod build;
mod group;
mod query;
mod rows;
mod variant;

use crate::base::ListingColumns;
use common::ids::ListingId;
use common::money::Usd;
use common::paging::Paging;
use common::records::PublicListing;
use market::Change;

pub use query::ListingQuery;

use super::follow::View;
use super::sequence::Slot;
use build::Groups;
use group::Group;
use rows::{NONE, PackedListings, Symbol};
use variant::VariantListings;

/// Every active listing.
#[derive(Default)]
pub struct Listings {
    rows: PackedListings,
    all: Group,
    /// By the item's number.
    items: Vec<Group>,
    /// By the variant's number.
    variants: Vec<VariantListings>,
}

impl Listings {
    /// Returns one page, and the exact number of matching listings.
    pub fn page(&self, query: &ListingQuery, paging: Paging) -> (Vec<PublicListing>, usize) {
        let (slots, total) = self.slots(query, paging).unwrap_or_default();
        (slots.into_iter().map(|slot| self.rows.listing(slot)).collect(), total)
    }

    /// Returns the page's slots and the total. Returns `None` if no listing can match, because the item or the variant
    /// was never listed, or because no listing of the variant names the item.
    fn slots(&self, query: &ListingQuery, paging: Paging) -> Option<(Vec<Slot>, usize)> {
        let min = query.min_price.map_or(0, Usd::cents);
        let max = query.max_price.map_or(u64::MAX, Usd::cents);
        let item = match &query.item_id {
            Some(id) => Some(self.rows.items.get_index_of(id.as_str())? as Symbol),
            None => None,
        };
        let group = match query.variant_id {
            Some(id) => {
                let variant = self.variants.get(self.rows.variants.get_index_of(&id.uuid())?)?;
                item.map_or(Some(&variant.group), |item| variant.of_item(&self.rows, item))?
            }
            None => item.map_or(Some(&self.all), |item| self.items.get(item as usize))?,
        };
        Some(group.page(&self.rows, &(min..=max), query.sort, paging))
    }

    fn insert(&mut self, listing: &PublicListing) {
        let row = self.rows.pack(listing);
        let (item, variant) = (row.item, row.variant);
        let slot = self.rows.insert(row);
        self.all.insert(&self.rows, slot);
        if item != NONE {
            at(&mut self.items, item).insert(&self.rows, slot);
        }
        if variant != NONE {
            at(&mut self.variants, variant).insert(&self.rows, slot);
        }
    }

    fn remove(&mut self, id: ListingId) {
        let Some(slot) = self.rows.remove(id) else { return };
        let row = self.rows.get(slot);
        self.all.remove(&self.rows, slot);
        if let Some(group) = self.items.get_mut(row.item as usize) {
            group.remove(&self.rows, slot);
        }
        if let Some(variant) = self.variants.get_mut(row.variant as usize) {
            variant.remove(&self.rows, slot);
        }
    }
}

impl View for Listings {
    type Record = PublicListing;

    /// Needs at most 132 bytes for each listing: 64 for the row and its place in the hash table, 60 in the sequences of
    /// three groups and their spans, and 8 for the two orders from which these are made. The parts' 49 bytes are freed
    /// while the rows are made. Even if the allocator can make no use of them, ten million listings take 1.8 GB.
    fn build(parts: Vec<ListingColumns>) -> Self {
        let rows = PackedListings::from_columns(parts);
        let Groups { all, items, variants } = Groups::new(&rows);
        Self { rows, all, items, variants }
    }

    fn records(&self) -> usize {
        self.all.len()
    }

    fn apply(&mut self, changes: Vec<Change<PublicListing, ListingId>>) {
        for change in changes {
            match change {
                Change::Put(listing) => {
                    self.remove(listing.id);
                    self.insert(&listing);
                }
                Change::Remove(id) => self.remove(id),
            }
        }
    }
}

/// Returns the entry of a number. Makes it first if there is none.
fn at<T: Default>(entries: &mut Vec<T>, number: u32) -> &mut T {
    let number = number as usize;
    if entries.len() <= number {
        entries.resize_with(number + 1, T::default);
    }
    &mut entries[number]
}

#[cfg(test)]
mod tests;
