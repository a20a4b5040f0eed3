//! A block: a few hundred items that follow each other in the catalog's order. It keeps the counts of the latest searches.
//!
//! Whoever walks over the pages of a search asks for the same text again and again. Only the first time, all blocks are
//! searched for it. Each search has a number. Each block keeps its counts of the last few numbers, and forgets them when
//! it changes. So a count is always that of the block as it is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::grams::GramCounter;
use super::names::{Names, Needle};
use super::rows::PackedItems;
use crate::sequence::Slot;

/// How many searches are known. Each takes 8 bytes of each block.
const KEPT: usize = 8;
/// A count takes the lowest bits of a kept number, and the number of its search the others.
const COUNT_BITS: u32 = 16;
/// The most items in a block. A block that would hold more is split in two.
const MAX_BLOCK_ITEMS: usize = if cfg!(test) { 16 } else { 512 };

/// The number of a kind.
pub(super) type KindNumber = u32;

/// The latest searches.
#[derive(Default)]
pub(super) struct Searches {
    /// The newest first.
    recent: VecDeque<(Box<str>, Option<KindNumber>)>,
    /// The number of the newest. The first one has the number 1.
    newest: u64,
}

impl Searches {
    /// Returns the number of a search: the one that it has already, or else the next.
    pub(super) fn number(&mut self, needle: &str, kind: Option<KindNumber>) -> u64 {
        let known = self.recent.iter().position(|(known, of_kind)| **known == *needle && *of_kind == kind);
        if let Some(before) = known {
            return self.newest - before as u64;
        }
        self.recent.truncate(KEPT - 1);
        self.recent.push_front((needle.into(), kind));
        self.newest += 1;
        self.newest
    }
}

/// A block's counts of the latest searches.
#[derive(Default)]
struct KnownCounts([AtomicU64; KEPT]);

impl KnownCounts {
    fn get(&self, search: u64) -> Option<usize> {
        let kept = self.place(search).load(Ordering::Relaxed);
        (kept >> COUNT_BITS == search).then_some((kept & ((1 << COUNT_BITS) - 1)) as usize)
    }

    /// Keeps a count in place of that of an older search.
    fn set(&self, search: u64, count: usize) {
        self.place(search).store(search << COUNT_BITS | count as u64, Ordering::Relaxed);
    }

    fn place(&self, search: u64) -> &AtomicU64 {
        &self.0[search as usize % KEPT]
    }
}

/// The items that are asked for: those whose name contains the needle and whose kind is this one. `None` asks for any.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) needle: Option<&'a Needle<'a>>,
    pub(super) kind: Option<KindNumber>,
    /// The number of this search, if there is a needle.
    pub(super) search: u64,
}

/// The slots, kinds and names of the block's items, each in a column.
#[derive(Default)]
pub(super) struct ItemBlock {
    slots: Vec<Slot>,
    kinds: Vec<KindNumber>,
    names: Names,
    /// How many items there are of each kind, by kind.
    kind_counts: Vec<(KindNumber, u16)>,
    known_counts: KnownCounts,
    /// Whether the names have to be indexed and the kinds to be counted again.
    is_stale: bool,
}

impl ItemBlock {
    /// How many items a new block gets: three-quarters of the most, so that the next insertions do not split it.
    pub(super) const START_ITEMS: usize = MAX_BLOCK_ITEMS / 4 * 3;

    /// Makes a block whose names are not indexed yet.
    pub(super) fn new(slots: Vec<Slot>, kinds: Vec<KindNumber>) -> Self {
        Self { slots, kinds, is_stale: true, ..Self::default() }
    }

    pub(super) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Returns the slot and kind of the item in a place.
    pub(super) fn get(&self, place: usize) -> (Slot, KindNumber) {
        (self.slots[place], self.kinds[place])
    }

    /// Returns the text that is searched.
    pub(super) fn text(&self) -> &[u8] {
        self.names.text()
    }

    /// Counts the wanted items, without searching the names if that is possible. Overwrites `tails`.
    pub(super) fn count(&self, wanted: Wanted<'_>, tails: &mut Vec<u64>) -> usize {
        let of_kind = wanted.kind.map_or(self.slots.len(), |kind| self.count_of_kind(kind));
        let Some(needle) = wanted.needle.filter(|_| of_kind > 0) else { return of_kind };
        self.known_counts.get(wanted.search).unwrap_or_else(|| {
            // Most blocks have only one kind.
            let count = self.count_matches(needle, wanted.kind.filter(|_| of_kind < self.slots.len()), tails);
            self.known_counts.set(wanted.search, count);
            count
        })
    }

    fn count_matches(&self, needle: &Needle<'_>, kind: Option<KindNumber>, tails: &mut Vec<u64>) -> usize {
        if let Some(count) = self.names.known_count(needle)
            && (kind.is_none() || count == 0)
        {
            return count;
        }
        let mut count = 0;
        self.names.each_run(needle, tails, |run| {
            count += match kind {
                None => run.len(),
                Some(kind) => self.kinds[run].iter().filter(|known| **known == kind).count(),
            };
        });
        count
    }

    fn count_of_kind(&self, kind: KindNumber) -> usize {
        let found = self.kind_counts.binary_search_by_key(&kind, |(kind, _)| *kind);
        found.map_or(0, |at| usize::from(self.kind_counts[at].1))
    }

    /// Returns the places of the wanted items. Overwrites `tails`.
    pub(super) fn places(&self, wanted: Wanted<'_>, tails: &mut Vec<u64>) -> Vec<usize> {
        let mut places = Vec::new();
        match wanted.needle {
            None => places.extend(0..self.slots.len()),
            Some(needle) => self.names.each_run(needle, tails, |run| places.extend(run)),
        }
        places.retain(|place| wanted.kind.is_none_or(|kind| self.kinds[*place] == kind));
        places
    }

    pub(super) fn set_kind(&mut self, place: usize, kind: KindNumber) {
        self.is_stale |= std::mem::replace(&mut self.kinds[place], kind) != kind;
    }

    /// Inserts an item in a place. If the block becomes too full, splits off its upper half and returns that.
    pub(super) fn insert(&mut self, place: usize, slot: Slot, kind: KindNumber) -> Option<Self> {
        self.slots.insert(place, slot);
        self.kinds.insert(place, kind);
        self.is_stale = true;
        let half = MAX_BLOCK_ITEMS / 2;
        (self.slots.len() > MAX_BLOCK_ITEMS).then(|| Self::new(self.slots.split_off(half), self.kinds.split_off(half)))
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.slots.remove(place);
        self.kinds.remove(place);
        self.is_stale = true;
    }

    /// Indexes the names and counts the kinds again if items were changed.
    pub(super) fn refresh(&mut self, rows: &PackedItems, counter: &mut GramCounter) {
        if std::mem::take(&mut self.is_stale) {
            self.known_counts = KnownCounts::default();
            self.names.index(self.slots.iter().map(|slot| rows.get(*slot).name()), counter);
            let mut kinds = self.kinds.clone();
            kinds.sort_unstable();
            self.kind_counts = kinds.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u16)).collect();
        }
    }

    #[cfg(test)]
    pub(super) fn searches(&self) -> usize {
        self.names.searches()
    }
}
