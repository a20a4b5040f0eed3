//! The listings replica: all listings, those of each item and of each variant, each in two orders.

mod group;
mod rows;

use group::{Group, Groups, VariantListings, newest_first};
use rows::{NONE, PackedListings, Symbol};

use super::follow::View;
use super::join;
use super::sequence::Slot;
use crate::base::ListingColumns;
use common::ids::{ListingId, VariantId};
use common::money::Usd;
use common::paging::Paging;
use common::paging::Sort;
use common::records::PublicListing;
use market::Change;

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
        let slot = self.rows.insert(row);
        let (item, variant) = (self.rows.item_of(slot), self.rows.variant_of(slot));
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
        let (item, variant) = (self.rows.item_of(slot), self.rows.variant_of(slot));
        self.all.remove(&self.rows, slot);
        if let Some(group) = self.items.get_mut(item as usize) {
            group.remove(&self.rows, slot);
        }
        if let Some(variant) = self.variants.get_mut(variant as usize) {
            variant.remove(&self.rows, slot);
        }
    }
}

impl View for Listings {
    type Record = PublicListing;

    /// Needs at most 120 bytes for each listing: 60 for the row and its place in the hash table, and 60 in the sequences
    /// of three groups and their spans. The two orders from which these are made take 40 more meanwhile. The parts' 41
    /// bytes are freed while the rows are made. A product takes some 90 bytes, however many listings offer it.
    fn build(parts: Vec<ListingColumns>) -> Self {
        let mut rows = PackedListings::from_columns(parts);
        let (newest, index) = join(|| newest_first(&rows), || rows.index_of_ids());
        let Groups { all, items, variants } = Groups::new(&rows, &newest);
        rows.index_ids(index);
        Self { rows, all, items, variants }
    }

    fn apply(&mut self, changes: Vec<Change<PublicListing>>) {
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

/// A query of the listings (specification 4.9.1). The bounds are inclusive.
#[derive(Clone, Debug, Default)]
pub struct ListingQuery {
    /// Only listings of this item.
    pub item_id: Option<String>,
    /// Only listings of this variant.
    pub variant_id: Option<VariantId>,
    /// Only listings at this price or above.
    pub min_price: Option<Usd>,
    /// Only listings at this price or below.
    pub max_price: Option<Usd>,
    pub sort: Sort,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::Ordering;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;
    use crate::base::Columns;
    use common::ids::{Id8, VariantId};
    use common::paging::Sort;
    use common::records::ListingKind;
    use common::timestamp::Timestamp;

    #[derive(Clone, Debug)]
    struct Seed {
        id: u8,
        cents: u64,
        created: i64,
        item: Option<u8>,
        variant: Option<u8>,
    }

    fn seeds(ids: std::ops::Range<u8>) -> impl Strategy<Value = Seed> {
        (ids, 0u64..12, 0i64..6, prop::option::of(0u8..3), prop::option::of(0u8..4))
            .prop_map(|(id, cents, created, item, variant)| Seed { id, cents, created, item, variant })
    }

    fn variant(number: u8) -> VariantId {
        Uuid::from_u128(1_000 + u128::from(number)).into()
    }

    fn listing(seed: &Seed) -> PublicListing {
        PublicListing {
            id: Uuid::from_u128(u128::from(seed.id)).into(),
            id8: Id8::from_bits(u32::from(seed.id)),
            price_usd: Usd::from_cents(seed.cents),
            kind: if seed.id.is_multiple_of(2) { ListingKind::Bot } else { ListingKind::P2p },
            is_auction: seed.id.is_multiple_of(3),
            created_at: Timestamp::from_millis(seed.created),
            item_id: seed.item.map(|item| format!("item-{item}").parse().unwrap()),
            variant_id: seed.variant.map(variant),
            market_hash_name: seed.item.map(|item| format!("Item {item} ★").parse().unwrap()),
        }
    }

    /// Returns what a plain list answers to the same query.
    fn naive(model: &BTreeMap<u8, PublicListing>, query: &ListingQuery) -> Vec<PublicListing> {
        let mut hits: Vec<PublicListing> = model
            .values()
            .filter(|l| query.item_id.as_ref().is_none_or(|id| l.item_id.as_ref().is_some_and(|i| i.as_str() == id)))
            .filter(|l| query.variant_id.is_none_or(|id| l.variant_id == Some(id)))
            .filter(|l| query.min_price.is_none_or(|min| l.price_usd >= min))
            .filter(|l| query.max_price.is_none_or(|max| l.price_usd <= max))
            .cloned()
            .collect();
        hits.sort_by_key(|l| (std::cmp::Reverse(l.created_at), l.id));
        match query.sort {
            Sort::Newest => {}
            Sort::PriceAsc => hits.sort_by_key(|l| l.price_usd),
            Sort::PriceDesc => hits.sort_by_key(|l| std::cmp::Reverse(l.price_usd)),
        }
        hits
    }

    fn queries() -> impl Strategy<Value = ListingQuery> {
        let sort = prop::sample::select(Sort::ALL.to_vec());
        let price = || prop::option::of((0u64..13).prop_map(Usd::from_cents));
        (prop::option::of(0u8..4), prop::option::of(0u8..5), price(), price(), sort).prop_map(
            |(item, number, min_price, max_price, sort)| ListingQuery {
                item_id: item.map(|item| format!("item-{item}")),
                variant_id: number.map(variant),
                min_price,
                max_price,
                sort,
            },
        )
    }

    proptest! {
        #[test]
        fn any_history_answers_like_a_plain_list(
            initial in prop::collection::vec(seeds(0..250), 0..200),
            steps in prop::collection::vec((seeds(0..250), any::<bool>()), 0..120),
            queries in prop::collection::vec(queries(), 1..12),
            page_size in 1i64..40,
        ) {
            let mut model: BTreeMap<u8, PublicListing> = initial.iter().map(|seed| (seed.id, listing(seed))).collect();
            let mut listings = Listings::build(model.values().collect::<Vec<_>>().chunks(64).map(|chunk| ListingColumns::from_records(chunk.iter().copied())).collect());
            for (seed, remove) in steps {
                let new = listing(&seed);
                if remove {
                    model.remove(&seed.id);
                    listings.apply(vec![Change::Remove(new.id)]);
                } else {
                    model.insert(seed.id, new.clone());
                    listings.apply(vec![Change::Put(new)]);
                }
            }
            for query in &queries {
                let expected = naive(&model, query);
                let mut walked = Vec::new();
                for page in 1.. {
                    let (found, total) = listings.page(query, Paging { page, page_size });
                    prop_assert_eq!(total, expected.len());
                    if found.is_empty() {
                        break;
                    }
                    walked.extend(found);
                }
                prop_assert_eq!(walked, expected, "{:?}", query);
            }
        }
    }

    #[test]
    fn a_variant_whose_listings_name_different_items_is_not_walked_over() {
        let numbered = |number: u32| {
            let item = number.is_multiple_of(2).then_some(0);
            let seed = Seed { id: 0, cents: u64::from(number % 50), created: number.into(), item, variant: Some(0) };
            PublicListing { id: Uuid::from_u128(number.into()).into(), ..listing(&seed) }
        };
        let records: Vec<_> = (0..100_000).map(numbered).collect();
        let mut listings = Listings::build(vec![ListingColumns::from_records(&records)]);
        listings.apply(vec![
            Change::Put(numbered(100_000)),
            Change::Remove(records[1].id),
            Change::Remove(records[2].id),
        ]);
        let paging = Paging { page: 100, page_size: 20 };
        for sort in Sort::ALL {
            for max_price in [None, Some(Usd::from_cents(24))] {
                let item_id = Some("item-0".to_owned());
                let query =
                    ListingQuery { item_id, variant_id: Some(variant(0)), max_price, sort, ..ListingQuery::default() };
                listings.rows.looks.store(0, Ordering::Relaxed);
                let (found, total) = listings.page(&query, paging);
                let looks = listings.rows.looks.load(Ordering::Relaxed);
                assert_eq!((found.len(), total), (20, if max_price.is_some() { 26_000 } else { 50_000 }));
                assert!(found.iter().all(|listing| listing.item_id.is_some()));
                assert!(looks <= 100, "{looks} for a page of 20 by {sort}");
            }
        }
    }

    #[test]
    fn few_listings_of_a_price_range_are_found_without_running_over_all() {
        let numbered = |number: u32| {
            let cents = if number.is_multiple_of(1_000) { 7 } else { 9 };
            let seed = Seed { id: 0, cents, created: number.into(), item: None, variant: None };
            PublicListing { id: Uuid::from_u128(number.into()).into(), ..listing(&seed) }
        };
        let records: Vec<_> = (0..100_000).map(numbered).collect();
        let listings = Listings::build(vec![ListingColumns::from_records(&records)]);
        let max_price = Some(Usd::from_cents(8));
        let query = ListingQuery { max_price, sort: Sort::Newest, ..ListingQuery::default() };
        let (found, total) = listings.page(&query, Paging { page: 2, page_size: 20 });
        assert_eq!(total, 100);
        assert_eq!(found, (60..80).rev().map(|thousands| numbered(thousands * 1_000)).collect::<Vec<_>>());
        assert_eq!(listings.all.run_over(), 0);
    }

    #[test]
    fn every_slot_and_every_product_is_used_again() {
        let mut listings = Listings::default();
        for round in 0..3 {
            for id in 0..100 {
                let seed = Seed { id, cents: round, created: 0, item: Some(0), variant: Some(0) };
                let market_hash_name = format!("unique {round} {id}").parse().ok();
                listings.apply(vec![Change::Put(PublicListing { market_hash_name, ..listing(&seed) })]);
            }
            for id in 0..100u128 {
                listings.apply(vec![Change::Remove(Uuid::from_u128(id).into())]);
            }
        }
        assert_eq!([listings.rows.count() as usize, listings.rows.products()], [100; 2]);
        assert!(listings.rows.is_empty() && listings.all.len() == 0);
        assert!(listings.items.iter().chain(listings.variants.iter().map(|v| &v.group)).all(|group| group.len() == 0));
    }
}
