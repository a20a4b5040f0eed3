//! Listings that are asked for together, in two orders: newest and cheapest first. There are groups of all listings, of
//! each item and of each variant. Each order is sorted only once when they are built, and then dealt out. While one
//! thread does this with one order, another one does it with the other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use super::rows::{PackedListings, Symbol, cheapest, newest};
use crate::join;
use crate::sequence::{Entry, Exact, LARGE, Sequence, Slot};
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
        let mut parts = BTreeMap::<Symbol, (Vec<Entry>, Vec<Entry>)>::new();
        let entry = |slot| Entry::new(slot, rows.cents(slot));
        for slot in self.newest.starting_at(0) {
            parts.entry(symbol(slot)).or_default().0.push(entry(slot));
        }
        for slot in self.by_price.starting_at(0) {
            parts.entry(symbol(slot)).or_default().1.push(entry(slot));
        }
        let group = |(newest, by_price): (Vec<_>, Vec<_>)| Self {
            newest: Sequence::from_sorted(&newest).with_spans(),
            by_price: Sequence::from_sorted(&by_price),
        };
        parts.into_iter().map(|(symbol, orders)| (symbol, group(orders))).collect()
    }

    /// Returns the slot of the newest listing, if there is any.
    fn newest_slot(&self) -> Option<Slot> {
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

/// The listings of a variant.
#[derive(Default)]
pub(super) struct VariantListings {
    pub(super) group: Group,
    /// The listings of each item, [`NONE`](super::rows::NONE) included. Empty as long as all listings have the same one.
    /// Once made, it is kept until the variant has no listings, because making it takes a walk over all of them.
    by_item: BTreeMap<Symbol, Group>,
}

impl VariantListings {
    /// Returns the listings that name an item, if there may be any.
    pub(super) fn of_item(&self, rows: &PackedListings, item: Symbol) -> Option<&Group> {
        if self.by_item.is_empty() {
            (self.only_item(rows) == Some(item)).then_some(&self.group)
        } else {
            self.by_item.get(&item)
        }
    }

    pub(super) fn insert(&mut self, rows: &PackedListings, slot: Slot) {
        let item = rows.item_of(slot);
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
        let item = rows.item_of(slot);
        if let Some(group) = self.by_item.get_mut(&item) {
            group.remove(rows, slot);
            if group.len() == 0 {
                self.by_item.remove(&item);
            }
        }
    }

    /// Returns the item of one of the listings. While they are not divided, it is the item of all of them.
    fn only_item(&self, rows: &PackedListings) -> Option<Symbol> {
        self.group.newest_slot().map(|slot| rows.item_of(slot))
    }

    fn divide(&mut self, rows: &PackedListings) {
        self.by_item = self.group.divided(rows, |slot| rows.item_of(slot));
    }
}

/// The groups of all listings.
pub(super) struct Groups {
    pub(super) all: Group,
    /// By the item's number.
    pub(super) items: Vec<Group>,
    /// By the variant's number.
    pub(super) variants: Vec<VariantListings>,
}

impl Groups {
    /// Makes the groups. `newest` are all listings, newest first.
    pub(super) fn new(rows: &PackedListings, newest: &[Entry]) -> Self {
        let order = |entries: &[Entry]| Order {
            all: Sequence::from_sorted(entries),
            items: dealt(entries, rows.items.len(), |slot| rows.item_of(slot)),
            variants: dealt(entries, rows.variants.len(), |slot| rows.variant_of(slot)),
        };
        let (newest, by_price) = join(|| order(newest).with_spans(), || order(&cheapest_first(rows, newest)));
        let pair = |(newest, by_price)| Group { newest, by_price };
        let items = newest.items.into_iter().zip(by_price.items).map(pair).collect();
        let variants = newest.variants.into_iter().zip(by_price.variants).map(pair);
        let mut variants: Vec<_> = variants.map(|group| VariantListings { group, ..Default::default() }).collect();
        for number in variants_of_several_items(rows) {
            variants[number as usize].divide(rows);
        }
        Self { all: pair((newest.all, by_price.all)), items, variants }
    }
}

/// Returns the variants whose listings name different items.
fn variants_of_several_items(rows: &PackedListings) -> BTreeSet<Symbol> {
    let mut items = vec![None; rows.variants.len()];
    let mut several = BTreeSet::new();
    for (item, variant) in rows.listed() {
        if let Some(known) = items.get_mut(variant as usize)
            && *known.get_or_insert(item) != item
        {
            several.insert(variant);
        }
    }
    several
}

pub(super) fn newest_first(rows: &PackedListings) -> Vec<Entry> {
    let row = |slot| {
        let row = rows.get(slot);
        (row.created_at, Entry::new(slot, row.cents))
    };
    let mut keyed: Vec<_> = (0..rows.count()).map(row).collect();
    let id = |entry: &Entry| rows.get(entry.slot).id;
    keyed.sort_unstable_by(|(a, one), (b, other)| b.cmp(a).then_with(|| id(one).cmp(&id(other))));
    keyed.into_iter().map(|(_, entry)| entry).collect()
}

/// Sorts by price. Entries of equal prices stay in the order of `newest`.
fn cheapest_first(rows: &PackedListings, newest: &[Entry]) -> Vec<Entry> {
    // Price and place are one number, because numbers are sorted faster than pairs.
    let mut keys: Vec<u64> =
        newest.iter().zip(0..).map(|(entry, place)| u64::from(entry.price) << 32 | place).collect();
    keys.sort_unstable();
    let mut entries: Vec<Entry> = keys.into_iter().map(|key| newest[(key & u64::from(u32::MAX)) as usize]).collect();
    let large = entries.partition_point(|entry| entry.price < LARGE);
    entries[large..].sort_by_key(|entry| rows.cents(entry.slot));
    entries
}

/// One order of all listings, of those of each item and of those of each variant.
struct Order {
    all: Sequence,
    items: Vec<Sequence>,
    variants: Vec<Sequence>,
}

impl Order {
    fn with_spans(self) -> Self {
        let with_spans = |sequences: Vec<Sequence>| sequences.into_iter().map(Sequence::with_spans).collect();
        Self { all: self.all.with_spans(), items: with_spans(self.items), variants: with_spans(self.variants) }
    }
}

/// Deals entries out to the numbers below `numbers`: each to the symbol of its slot. Entries whose symbol is none of these
/// are left out. Each number's sequence keeps the order of the whole.
fn dealt(entries: &[Entry], numbers: usize, symbol: impl Fn(Slot) -> Symbol) -> Vec<Sequence> {
    let symbols: Vec<Symbol> = entries.iter().map(|entry| symbol(entry.slot)).collect();
    let mut ends = vec![0_u32; numbers];
    for symbol in &symbols {
        if let Some(count) = ends.get_mut(*symbol as usize) {
            *count += 1;
        }
    }
    let mut count = 0;
    for end in &mut ends {
        count += std::mem::replace(end, count);
    }
    let mut hands = vec![Entry::default(); count as usize];
    for (entry, symbol) in entries.iter().zip(symbols) {
        if let Some(next) = ends.get_mut(symbol as usize) {
            hands[*next as usize] = *entry;
            *next += 1;
        }
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| Sequence::from_sorted(&hands[start as usize..*end as usize])).collect()
}
