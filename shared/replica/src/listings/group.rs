//! Listings that are asked for together, in two orders: newest and cheapest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};

use super::rows::{PackedListings, Symbol, cheapest, newest};
use crate::sequence::{Exact, Sequence, Slot};
use common::paging::{Paging, Sort};

/// The most matches of a price range that are sorted by themselves, which takes about 0.2 ms (computed).
const MAX_SORTED: usize = 2_048;

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

    /// Divides the listings by a symbol. Each part keeps the orders of the whole.
    pub(super) fn divided(&self, rows: &PackedListings, symbol: impl Fn(Slot) -> Symbol) -> BTreeMap<Symbol, Self> {
        let mut parts = BTreeMap::<Symbol, (Vec<Slot>, Vec<Slot>)>::new();
        for slot in self.newest.starting_at(0) {
            parts.entry(symbol(slot)).or_default().0.push(slot);
        }
        for slot in self.by_price.starting_at(0) {
            parts.entry(symbol(slot)).or_default().1.push(slot);
        }
        parts.into_iter().map(|(symbol, (newest, by_price))| (symbol, Self::new(&newest, &by_price, rows))).collect()
    }

    /// Returns whether a test holds for every listing.
    pub(super) fn all(&self, test: impl FnMut(Slot) -> bool) -> bool {
        self.newest.starting_at(0).all(test)
    }

    /// Returns the slot of the newest listing, if there is any.
    pub(super) fn newest_slot(&self) -> Option<Slot> {
        self.newest.starting_at(0).next()
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
            // Few matches may lie far apart in a long sequence, but side by side in the price order.
            Sort::Newest if total <= MAX_SORTED.min(self.newest.blocks()) => self.sorted(rows, low..high, skip, take),
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

    /// Sorts the listings at positions of the price order by time, skips `skip` slots and returns `take`.
    fn sorted(&self, rows: &PackedListings, positions: Range<usize>, skip: usize, take: usize) -> Vec<Slot> {
        let slots = self.by_price.starting_at(positions.start).take(positions.len());
        let mut keyed: Vec<_> = slots.map(|slot| (rows.get(slot), slot)).collect();
        keyed.sort_unstable_by_key(|(row, _)| (Reverse(row.created_at), row.id));
        keyed.into_iter().skip(skip).take(take).map(|(_, slot)| slot).collect()
    }

    /// Walks over positions of the price order by descending price, skips `skip` slots and returns `take`. Listings of
    /// the same price stay in their own order.
    fn descending(&self, rows: &PackedListings, positions: Range<usize>, skip: usize, take: usize) -> Vec<Slot> {
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

    /// Returns how many blocks were run over to find pages.
    #[cfg(test)]
    pub(super) fn run_over(&self) -> usize {
        self.newest.run_over()
    }
}
