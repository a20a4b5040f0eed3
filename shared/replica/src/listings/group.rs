//! Listings that are asked for together, in two orders: newest and cheapest first.

use std::ops::RangeInclusive;

use super::rows::{NONE, PackedListing, PackedListings, Symbol, cheapest, newest};
use crate::sequence::{Exact, Sequence, Slot};
use types::paging::Paging;
use types::sort::Sort;

/// A set of listings in both orders.
pub(super) struct Group {
    newest: Sequence,
    by_price: Sequence,
}

impl Default for Group {
    fn default() -> Self {
        Self { newest: Sequence::default().with_spans(), by_price: Sequence::default() }
    }
}

impl Group {
    /// Makes a group from its slots in both orders.
    pub(super) fn new(newest: &[Slot], by_price: &[Slot], rows: &PackedListings) -> Self {
        let newest = Sequence::from_sorted(newest, rows).with_spans();
        Self { newest, by_price: Sequence::from_sorted(by_price, rows) }
    }

    pub(super) const fn len(&self) -> usize {
        self.newest.len()
    }

    pub(super) fn insert(&mut self, rows: &PackedListings, slot: Slot) {
        let row = rows.get(slot);
        self.newest.insert(slot, row.cents, |known| newest(rows.get(known), row));
        self.by_price.insert(slot, row.cents, |known| cheapest(rows.get(known), row));
    }

    pub(super) fn remove(&mut self, rows: &PackedListings, slot: Slot) {
        let row = rows.get(slot);
        self.newest.remove(|known| newest(rows.get(known), row));
        self.by_price.remove(|known| cheapest(rows.get(known), row));
    }

    /// Returns a page of the listings in a price range, and how many there are in all.
    pub(super) fn page(
        &self,
        rows: &PackedListings,
        prices: &RangeInclusive<u64>,
        sort: Sort,
        paging: Paging,
    ) -> (Vec<Slot>, usize) {
        let low = self.by_price.count_below(*prices.start(), rows);
        let high = prices.end().checked_add(1).map_or(self.len(), |end| self.by_price.count_below(end, rows));
        let total = high.saturating_sub(low);
        let skip = paging.skip();
        let take = paging.take().min(total.saturating_sub(skip));
        if take == 0 {
            return (Vec::new(), total);
        }
        let slots = match sort {
            Sort::Newest if total == self.len() => self.newest.starting_at(skip).take(take).collect(),
            Sort::Newest => {
                // An upper bound that every price satisfies counts as none.
                let end = if high == self.len() { u64::MAX } else { *prices.end() };
                self.newest.in_price_range(&(*prices.start()..=end), rows, skip, take)
            }
            Sort::PriceAsc => self.by_price.starting_at(low + skip).take(take).collect(),
            Sort::PriceDesc => self.descending(rows, low..high, skip, take),
        };
        (slots, total)
    }

    /// Walks over positions of the price order by descending price, skips `skip` slots and returns `take`. Listings of
    /// the same price stay in their own order.
    fn descending(
        &self,
        rows: &PackedListings,
        positions: std::ops::Range<usize>,
        skip: usize,
        take: usize,
    ) -> Vec<Slot> {
        let mut found = Vec::with_capacity(take);
        let (mut end, mut left) = (positions.end, skip);
        while found.len() < take && end > positions.start {
            // `left` may reach beyond the last run, so look at the run of the entry `left` places before the last one.
            let at = end - 1 - left.min(end - 1 - positions.start);
            let Some(price) = self.by_price.starting_at(at).next().map(|slot| rows.cents(slot)) else { break };
            let start = self.by_price.count_below(price, rows).max(positions.start);
            let run_end = self.by_price.count_below(price.saturating_add(1), rows).min(positions.end);
            left = left.saturating_sub(end - run_end);
            let run = self.by_price.starting_at(start + left).take((run_end - start - left).min(take - found.len()));
            found.extend(run);
            (left, end) = (0, start);
        }
        found
    }

    /// Returns a page of the listings that pass a test, and how many pass. Looks at every listing.
    pub(super) fn filtered(
        &self,
        rows: &PackedListings,
        test: impl Fn(&PackedListing) -> bool,
        sort: Sort,
        paging: Paging,
    ) -> (Vec<Slot>, usize) {
        let passing = |order: &Sequence| order.starting_at(0).filter(|slot| test(rows.get(*slot))).collect::<Vec<_>>();
        let passing = match sort {
            Sort::Newest => passing(&self.newest),
            Sort::PriceAsc => passing(&self.by_price),
            Sort::PriceDesc => {
                let ascending = passing(&self.by_price);
                let runs = ascending.chunk_by(|a, b| rows.cents(*a) == rows.cents(*b)).rev();
                runs.flatten().copied().collect()
            }
        };
        let total = passing.len();
        (passing.into_iter().skip(paging.skip()).take(paging.take()).collect(), total)
    }
}

/// The listings of a variant. Nearly always, all of them name the same item.
pub(super) struct VariantListings {
    pub(super) group: Group,
    /// The item of one of the listings, which is [`NONE`] if that listing names no item.
    item: Symbol,
    /// How many of the listings have the same item.
    of_item: usize,
}

impl Default for VariantListings {
    fn default() -> Self {
        Self { group: Group::default(), item: NONE, of_item: 0 }
    }
}

impl VariantListings {
    pub(super) fn new(group: Group, rows: &PackedListings) -> Self {
        let mut variant = Self { group, ..Self::default() };
        variant.choose_item(rows);
        variant
    }

    /// Returns the item that all listings name, or `None` if they name several.
    pub(super) fn only_item(&self) -> Option<Symbol> {
        (self.of_item == self.group.len()).then_some(self.item)
    }

    pub(super) fn insert(&mut self, rows: &PackedListings, slot: Slot) {
        let item = rows.get(slot).item;
        if self.of_item == 0 {
            self.item = item;
        }
        self.of_item += usize::from(item == self.item);
        self.group.insert(rows, slot);
    }

    pub(super) fn remove(&mut self, rows: &PackedListings, slot: Slot) {
        self.group.remove(rows, slot);
        self.of_item -= usize::from(rows.get(slot).item == self.item);
        if self.of_item == 0 {
            self.choose_item(rows);
        }
    }

    fn choose_item(&mut self, rows: &PackedListings) {
        let items = || self.group.newest.starting_at(0).map(|slot| rows.get(slot).item);
        let item = items().next().unwrap_or(NONE);
        self.of_item = items().filter(|known| *known == item).count();
        self.item = item;
    }
}
