//! The listings replica: three groupings, each in two orders.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::ops::RangeInclusive;

use hashbrown::{DefaultHashBuilder, HashTable};
use uuid::Uuid;

use super::follow::View;
use super::interner::{Interner, Symbol};
use super::sequence::{Sequence, Slot};
use crate::http::Paging;
use crate::ids::{Id8, ListingId, VariantId};
use crate::market::Change;
use crate::model::{ListingKind, PublicListing};
use crate::money::Usd;
use crate::timestamp::Timestamp;

/// The order of a page of listings. Ties: newest first, then by id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Latest first.
    #[default]
    Newest,
    /// Cheapest first.
    PriceAsc,
    /// Dearest first.
    PriceDesc,
}

/// What is asked of the listings; bounds are inclusive.
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
    /// The order.
    pub sort: Sort,
}

/// One listing, packed.
struct Row {
    id: Uuid,
    created_at: Timestamp,
    cents: u64,
    id8: Id8,
    item: Option<Symbol>,
    variant: Option<Uuid>,
    name: Option<Symbol>,
    kind: ListingKind,
    is_auction: bool,
}

#[derive(Default)]
struct Group {
    newest: Sequence,
    by_price: Sequence,
    /// How many of a variant's listings name which item; nearly always one.
    items: Vec<(Option<Symbol>, usize)>,
}

/// Every active listing.
#[derive(Default)]
pub struct Listings {
    rows: Vec<Row>,
    free: Vec<Slot>,
    index: HashTable<Slot>,
    hasher: DefaultHashBuilder,
    strings: Interner,
    all: Group,
    by_item: HashMap<Symbol, Group>,
    by_variant: HashMap<Uuid, Group>,
}

impl Listings {
    /// One page and the exact number of matching listings.
    pub fn page(&self, query: &ListingQuery, paging: Paging) -> (Vec<PublicListing>, usize) {
        let item = query.item_id.as_ref().map(|id| self.strings.find(id));
        let group = match (query.variant_id, item) {
            (Some(variant), _) => self.by_variant.get(&variant.uuid()),
            (None, Some(item)) => item.and_then(|item| self.by_item.get(&item)),
            (None, None) => Some(&self.all),
        };
        let Some(group) = group else { return (Vec::new(), 0) };
        let min = query.min_price.map_or(0, Usd::cents);
        let max = query.max_price.map_or(u64::MAX, Usd::cents);
        let (slots, total) = match (query.variant_id, item) {
            (Some(_), Some(item)) if !group.is_all_of(item) => {
                let of_item = |row: &Row| row.item.is_some() && row.item == item && (min..=max).contains(&row.cents);
                self.filtered(group, query.sort, of_item, paging)
            }
            _ => Self::ranged(group, query.sort, min..=max, paging),
        };
        (slots.into_iter().map(|slot| self.listing(slot)).collect(), total)
    }

    /// A page of a group's listings in a price range.
    fn ranged(group: &Group, sort: Sort, prices: RangeInclusive<u64>, paging: Paging) -> (Vec<Slot>, usize) {
        let low = group.by_price.count_below(*prices.start());
        let high = prices.end().checked_add(1).map_or(group.by_price.len(), |end| group.by_price.count_below(end));
        let total = high.saturating_sub(low);
        let (skip, take) = (paging.skip(), paging.take());
        let wanted = take.min(total.saturating_sub(skip));
        if wanted == 0 {
            return (Vec::new(), total);
        }
        let slots = match sort {
            Sort::Newest if total == group.newest.len() => slots(group.newest.starting_at(skip), wanted),
            Sort::Newest => group.newest.in_price_range(prices, skip, wanted),
            Sort::PriceAsc => slots(group.by_price.starting_at(low + skip), wanted),
            Sort::PriceDesc => descending(&group.by_price, low, high, skip, wanted),
        };
        (slots, total)
    }

    /// A page of the group's listings that pass a test: for a variant that is listed under several items.
    fn filtered(&self, group: &Group, sort: Sort, test: impl Fn(&Row) -> bool, paging: Paging) -> (Vec<Slot>, usize) {
        let order = if sort == Sort::Newest { &group.newest } else { &group.by_price };
        let mut passing: Vec<_> = order.starting_at(0).filter(|(slot, _)| test(self.row(*slot))).collect();
        if sort == Sort::PriceDesc {
            let runs = passing.chunk_by(|a, b| a.1 == b.1).rev();
            passing = runs.flatten().copied().collect();
        }
        let total = passing.len();
        (slots(passing.into_iter().skip(paging.skip()), paging.take()), total)
    }

    fn listing(&self, slot: Slot) -> PublicListing {
        let row = self.row(slot);
        let text = |symbol: Symbol| self.strings.get(symbol);
        PublicListing {
            id: row.id.into(),
            id8: row.id8,
            price_usd: Usd::from_cents(row.cents),
            kind: row.kind,
            is_auction: row.is_auction,
            created_at: row.created_at,
            item_id: row.item.and_then(|item| text(item).parse().ok()),
            variant_id: row.variant.map(VariantId::from),
            market_hash_name: row.name.and_then(|name| text(name).parse().ok()),
        }
    }

    fn row(&self, slot: Slot) -> &Row {
        &self.rows[slot as usize]
    }

    fn pack(&mut self, listing: &PublicListing) -> Row {
        Row {
            id: listing.id.uuid(),
            created_at: listing.created_at,
            cents: listing.price_usd.cents(),
            id8: listing.id8,
            item: listing.item_id.as_ref().map(|id| self.strings.intern(id.as_str())),
            variant: listing.variant_id.map(VariantId::uuid),
            name: listing.market_hash_name.as_ref().map(|name| self.strings.intern(name.as_str())),
            kind: listing.kind,
            is_auction: listing.is_auction,
        }
    }

    /// Puts a row into the table of rows, outside any group.
    fn store(&mut self, row: Row) -> Slot {
        let hash = self.hasher.hash_one(row.id);
        let slot = if let Some(slot) = self.free.pop() {
            self.rows[slot as usize] = row;
            slot
        } else {
            self.rows.push(row);
            (self.rows.len() - 1) as Slot
        };
        let (rows, hasher) = (&self.rows, &self.hasher);
        self.index.insert_unique(hash, slot, |known| hasher.hash_one(rows[*known as usize].id));
        slot
    }

    fn insert(&mut self, listing: &PublicListing) {
        let row = self.pack(listing);
        let (item, variant) = (row.item, row.variant);
        let slot = self.store(row);
        let rows = &self.rows;
        self.all.insert(rows, slot);
        if let Some(item) = item {
            self.by_item.entry(item).or_default().insert(rows, slot);
        }
        if let Some(variant) = variant {
            let group = self.by_variant.entry(variant).or_default();
            group.insert(rows, slot);
            group.count(item);
        }
    }

    fn remove(&mut self, id: ListingId) {
        let (id, rows) = (id.uuid(), &self.rows);
        let hash = self.hasher.hash_one(id);
        let Ok(entry) = self.index.find_entry(hash, |slot| rows[*slot as usize].id == id) else { return };
        let (slot, _) = entry.remove();
        let row = &rows[slot as usize];
        self.all.remove(rows, slot);
        if let Some(item) = row.item {
            remove_from(&mut self.by_item, &item, rows, slot);
        }
        if let Some(variant) = row.variant {
            if let Some(group) = self.by_variant.get_mut(&variant) {
                group.discount(row.item);
            }
            remove_from(&mut self.by_variant, &variant, rows, slot);
        }
        self.free.push(slot);
    }
}

impl View for Listings {
    type Record = PublicListing;

    /// Packs all rows, sorts them once for each order, and deals them out to their groups in that order.
    fn build(records: Vec<PublicListing>) -> Self {
        let mut listings = Self::default();
        let mut slots: Vec<Slot> = Vec::with_capacity(records.len());
        for record in &records {
            let row = listings.pack(record);
            slots.push(listings.store(row));
        }
        let rows = &listings.rows;
        slots.sort_unstable_by(|a, b| newest(&rows[*a as usize], &rows[*b as usize]));
        let orders = [slots.clone(), slots];
        let [newest_first, mut cheapest_first] = orders;
        // Stable: the newest stay first among equals.
        cheapest_first.sort_by_key(|slot| rows[*slot as usize].cents);
        let (all, items, variants) = deal(rows, &newest_first);
        let (all_by_price, mut items_by_price, mut variants_by_price) = deal(rows, &cheapest_first);
        let pair = |newest, by_price: Option<Sequence>| Group {
            newest,
            by_price: by_price.unwrap_or_default(),
            items: Vec::new(),
        };
        listings.all = pair(all, Some(all_by_price));
        listings.by_item = items.into_iter().map(|(k, newest)| (k, pair(newest, items_by_price.remove(&k)))).collect();
        listings.by_variant =
            variants.into_iter().map(|(k, newest)| (k, pair(newest, variants_by_price.remove(&k)))).collect();
        for row in &listings.rows {
            if let Some(group) = row.variant.and_then(|variant| listings.by_variant.get_mut(&variant)) {
                group.count(row.item);
            }
        }
        listings
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

impl Group {
    fn is_all_of(&self, item: Option<Symbol>) -> bool {
        matches!(self.items[..], [(only, _)] if item.is_some() && only == item)
    }

    fn count(&mut self, item: Option<Symbol>) {
        match self.items.iter_mut().find(|(known, _)| *known == item) {
            Some((_, count)) => *count += 1,
            None => self.items.push((item, 1)),
        }
    }

    fn discount(&mut self, item: Option<Symbol>) {
        if let Some((_, count)) = self.items.iter_mut().find(|(known, _)| *known == item) {
            *count -= 1;
        }
        self.items.retain(|(_, count)| *count > 0);
    }

    fn insert(&mut self, rows: &[Row], slot: Slot) {
        let row = &rows[slot as usize];
        self.newest.insert(slot, row.cents, |known| newest(&rows[known as usize], row));
        self.by_price.insert(slot, row.cents, |known| cheapest(&rows[known as usize], row));
    }

    fn remove(&mut self, rows: &[Row], slot: Slot) {
        let row = &rows[slot as usize];
        self.newest.remove(|known| newest(&rows[known as usize], row));
        self.by_price.remove(|known| cheapest(&rows[known as usize], row));
    }
}

fn newest(a: &Row, b: &Row) -> Ordering {
    b.created_at.cmp(&a.created_at).then_with(|| a.id.cmp(&b.id))
}

fn cheapest(a: &Row, b: &Row) -> Ordering {
    a.cents.cmp(&b.cents).then_with(|| newest(a, b))
}

type Dealt = (Sequence, HashMap<Symbol, Sequence>, HashMap<Uuid, Sequence>);

/// Deals slots, in their order, to the sequences of all, of each item and of each variant.
fn deal(rows: &[Row], in_order: &[Slot]) -> Dealt {
    let (mut items, mut variants) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
    let mut all = Vec::with_capacity(in_order.len());
    for &slot in in_order {
        let row = &rows[slot as usize];
        let entry = (slot, row.cents);
        all.push(entry);
        if let Some(item) = row.item {
            items.entry(item).or_default().push(entry);
        }
        if let Some(variant) = row.variant {
            variants.entry(variant).or_default().push(entry);
        }
    }
    let items = items.into_iter().map(|(item, entries)| (item, Sequence::from_sorted(&entries))).collect();
    let variants = variants.into_iter().map(|(variant, entries)| (variant, Sequence::from_sorted(&entries))).collect();
    (Sequence::from_sorted(&all), items, variants)
}

fn remove_from<K: std::hash::Hash + Eq>(groups: &mut HashMap<K, Group>, key: &K, rows: &[Row], slot: Slot) {
    if let Some(group) = groups.get_mut(key) {
        group.remove(rows, slot);
        if group.newest.len() == 0 {
            groups.remove(key);
        }
    }
}

fn slots(entries: impl Iterator<Item = (Slot, u64)>, take: usize) -> Vec<Slot> {
    entries.take(take).map(|(slot, _)| slot).collect()
}

/// Positions `low..high` of a sequence by ascending price, walked by descending price, each run of one
/// price in its own order: without the first `skip`, at most `take`.
fn descending(by_price: &Sequence, low: usize, high: usize, skip: usize, take: usize) -> Vec<Slot> {
    let mut found = Vec::with_capacity(take);
    let (mut end, mut left) = (high, skip);
    while found.len() < take && end > low {
        // `left` may reach beyond this run: the run is that of the entry `left` places before `end`.
        let Some((_, price)) = by_price.starting_at(end - 1 - left.min(end - 1 - low)).next() else { break };
        let start = by_price.count_below(price).max(low);
        let run_end = by_price.count_below(price.saturating_add(1)).min(high);
        left = left.saturating_sub(end - run_end);
        found.extend(slots(by_price.starting_at(start + left), (run_end - start - left).min(take - found.len())));
        left = 0;
        end = start;
    }
    found
}

#[cfg(test)]
#[path = "listings_tests.rs"]
mod tests;
