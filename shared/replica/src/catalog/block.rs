//! A block: a few hundred items that follow each other in the catalog's order.

use super::names::Names;
use super::needle::Needle;
use super::rows::PackedItems;
use crate::sequence::Slot;

/// The most items in a block. A block that would hold more is split in two.
const MAX_BLOCK_ITEMS: usize = if cfg!(test) { 16 } else { 512 };

/// The number of a kind.
pub(super) type KindNumber = u32;

/// The items that are asked for: those whose name contains the needle and whose kind is this one. `None` asks for any.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) needle: Option<&'a Needle<'a>>,
    pub(super) kind: Option<KindNumber>,
}

/// The slots, kinds and names of the block's items, each in a column.
#[derive(Default)]
pub(super) struct ItemBlock {
    slots: Vec<Slot>,
    kinds: Vec<KindNumber>,
    names: Names,
    /// Whether the names have to be indexed again.
    is_stale: bool,
}

impl ItemBlock {
    /// How many items a new block gets: three-quarters of the most, so that the next insertions do not split it.
    pub(super) const START_ITEMS: usize = MAX_BLOCK_ITEMS / 4 * 3;

    /// Makes a block whose names are not indexed yet.
    pub(super) fn new(slots: Vec<Slot>, kinds: Vec<KindNumber>) -> Self {
        Self { slots, kinds, names: Names::default(), is_stale: true }
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

    /// Counts the wanted items. Notes in `tails` what [`Self::places`] needs.
    pub(super) fn count(&self, wanted: Wanted<'_>, tails: &mut Vec<u64>) -> usize {
        let mut count = 0;
        match (wanted.needle, wanted.kind) {
            (None, None) => count = self.slots.len(),
            (None, Some(kind)) => count = self.kinds.iter().filter(|known| **known == kind).count(),
            (Some(needle), _) if !needle.probe(self.text(), tails) => {}
            (Some(needle), None) => self.names.each_match(needle, tails, |_| count += 1),
            (Some(needle), Some(kind)) => {
                self.names.each_match(needle, tails, |place| count += usize::from(self.kinds[place] == kind));
            }
        }
        count
    }

    /// Returns the places of the items that were just counted.
    pub(super) fn places(&self, wanted: Wanted<'_>, tails: &[u64]) -> Vec<usize> {
        let mut places = Vec::new();
        match wanted.needle {
            None => places.extend(0..self.slots.len()),
            Some(needle) => self.names.each_match(needle, tails, |place| places.push(place)),
        }
        places.retain(|place| wanted.kind.is_none_or(|kind| self.kinds[*place] == kind));
        places
    }

    pub(super) fn set_kind(&mut self, place: usize, kind: KindNumber) {
        self.kinds[place] = kind;
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

    /// Indexes the names again if items were added or removed.
    pub(super) fn refresh(&mut self, rows: &PackedItems) {
        if std::mem::take(&mut self.is_stale) {
            self.names.index(self.slots.iter().map(|slot| rows.get(*slot).name()));
        }
    }
}
