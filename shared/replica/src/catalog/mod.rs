//! The catalog replica: items in order of name, with their folded names side by side for searching.
//!
//! Names are sorted, so each shares a long beginning with the name before. A block keeps only the rest of each name,
//! and before it the last seven bytes of the shared beginning. If a name contains the needle, there are two cases.
//! Either the needle ends in the shared beginning, and then the name before contains it too. Or the needle's last eight
//! bytes are in the part that is kept.
//!
//! A search takes the three rarest of these eight bytes and compares them at every position of a block's text, in code
//! that the compiler turns into vector instructions. If a block has no candidate, the search is done with it. Otherwise
//! it walks over the names. A match holds for all following names that share it. The next match begins at the next
//! candidate that turns out to be one.
//!
//! With ten million items the text is some 100 MB, too much to search for one request. So each block also knows in how
//! many names each byte and pair of bytes occurs, and has a filter of the triples: see [`grams`]. Most blocks are
//! counted by that alone. The text is searched in blocks that may have all triples of the needle, in blocks of several
//! kinds if a kind is asked for, and in those that have items of the page. The next page of the same search takes the
//! counts from its [`block`]s.

mod block;
mod folding;
mod grams;
mod names;
mod rows;

use std::sync::{Mutex, PoisonError};

use hashbrown::DefaultHashBuilder;
use indexmap::IndexSet;

use super::catalog::block::{ItemBlock, Wanted};
use super::catalog::grams::GramCounter;
use super::catalog::rows::{CatalogKey, PackedItem, PackedItems};
use super::follow::View;
use crate::base::ItemColumns;
use block::KindNumber;
use block::Searches;
use common::ids::ItemId;
use common::paging::Paging;
use common::records::PublicItem;
use folding::push_folded;
use market::Change;
use names::Needle;

/// The most blocks that are sampled to learn which bytes are rare in names.
const MAX_SAMPLED_BLOCKS: usize = 1_000;

/// A query of the catalog (specification 4.5).
#[derive(Clone, Debug, Default)]
pub struct CatalogQuery {
    /// Only items whose name contains this text, both folded. An empty text asks for all items.
    pub q: String,
    /// Only items of this kind.
    pub kind: Option<String>,
}

/// Every item of the catalog, ordered by name and then id. Items without a name come last.
#[derive(Default)]
pub struct Catalog {
    rows: PackedItems,
    blocks: Vec<ItemBlock>,
    /// Kinds by number. None is ever removed.
    kinds: IndexSet<Box<str>, DefaultHashBuilder>,
    searches: Mutex<Searches>,
}

impl Catalog {
    /// Returns one page, and the exact number of matching items.
    pub fn page(&self, query: &CatalogQuery, paging: Paging) -> (Vec<PublicItem>, usize) {
        let kind = query.kind.as_deref().map(|kind| self.kinds.get_index_of(kind).map(|number| number as KindNumber));
        let mut needle = String::new();
        push_folded(&mut needle, &query.q);
        // Names contain no control characters.
        if kind == Some(None) || needle.bytes().any(|byte| byte.is_ascii_control()) {
            return (Vec::new(), 0);
        }
        let kind = kind.flatten();
        let search = if needle.is_empty() { 0 } else { self.search_number(&needle, kind) };
        let samples = self.blocks.iter().step_by(self.blocks.len() / MAX_SAMPLED_BLOCKS + 1).map(ItemBlock::text);
        let needle = (!needle.is_empty()).then(|| Needle::new(&needle, samples));
        let wanted = Wanted { needle: needle.as_ref(), kind, search };
        let (mut page, mut total, mut tails) = (Vec::new(), 0, Vec::new());
        for block in &self.blocks {
            let count = block.count(wanted, &mut tails);
            let (skip, take) = (paging.skip().saturating_sub(total), paging.take() - page.len());
            if skip < count && take > 0 {
                let places = block.places(wanted, &mut tails).into_iter().skip(skip).take(take);
                page.extend(places.filter_map(|place| self.item(block, place)));
            }
            total += count;
        }
        (page, total)
    }

    fn search_number(&self, needle: &str, kind: Option<KindNumber>) -> u64 {
        self.searches.lock().unwrap_or_else(PoisonError::into_inner).number(needle, kind)
    }

    fn item(&self, block: &ItemBlock, place: usize) -> Option<PublicItem> {
        let (slot, kind) = block.get(place);
        self.rows.get(slot).item(self.kinds.get_index(kind as usize)?)
    }

    /// Adds or replaces an item. An item that keeps its name also keeps its place.
    fn put(&mut self, item: &PublicItem) {
        let row = PackedItem::from(item);
        let kind = self.number(item.kind.as_str());
        if let Ok((at, place)) = self.find(row.key()) {
            self.rows.replace(self.blocks[at].get(place).0, row);
            self.blocks[at].set_kind(place, kind);
        } else {
            self.remove(&item.id);
            self.insert(row, kind);
        }
    }

    fn insert(&mut self, row: PackedItem, kind: KindNumber) {
        if self.blocks.is_empty() {
            self.blocks.push(ItemBlock::default());
        }
        let (Ok((at, place)) | Err((at, place))) = self.find(row.key());
        let slot = self.rows.insert(row);
        if let Some(upper) = self.blocks[at].insert(place, slot, kind) {
            self.blocks.insert(at + 1, upper);
        }
    }

    fn remove(&mut self, id: &ItemId) {
        let Some(slot) = self.rows.find(id.as_str()) else { return };
        if let Ok((at, place)) = self.find(self.rows.get(slot).key()) {
            self.blocks[at].remove(place);
            if self.blocks[at].slots().is_empty() {
                self.blocks.remove(at);
            }
        }
        self.rows.remove(slot);
    }

    /// Finds the block of a key and its place in the block. If the key is not there, the error says where it would be.
    fn find(&self, key: CatalogKey<'_>) -> Result<(usize, usize), (usize, usize)> {
        let key_of = |slot: &u32| self.rows.get(*slot).key();
        let before = |block: &ItemBlock| block.slots().last().is_some_and(|last| key_of(last) < key);
        let at = self.blocks.partition_point(before).min(self.blocks.len().saturating_sub(1));
        let slots = self.blocks.get(at).map_or(&[][..], ItemBlock::slots);
        let place = slots.binary_search_by(|slot| key_of(slot).cmp(&key));
        place.map(|place| (at, place)).map_err(|place| (at, place))
    }

    fn number(&mut self, kind: &str) -> KindNumber {
        self.kinds.get_index_of(kind).unwrap_or_else(|| self.kinds.insert_full(kind.into()).0) as KindNumber
    }
}

impl View for Catalog {
    type Record = PublicItem;

    /// Needs some 65 bytes for each item besides its texts, which are moved here from the parts: 33 for the row, its
    /// kind, its place in the order and in the hash table, and about 32 in the block, 10 of them text for the search.
    fn build(parts: Vec<ItemColumns>) -> Self {
        let mut catalog = Self::default();
        let (mut rows, mut kinds) = (Vec::new(), Vec::new());
        for part in parts {
            let numbers: Vec<KindNumber> = part.kinds.iter().map(|kind| catalog.number(kind)).collect();
            for (kind, texts) in part.into_rows() {
                rows.push(PackedItem::from(texts));
                kinds.push(numbers[kind]);
            }
        }
        catalog.rows = PackedItems::new(rows);
        let (slots, mut counter) = (catalog.rows.in_order(), GramCounter::default());
        let blocks = slots.chunks(ItemBlock::START_ITEMS).map(|slots| {
            let kinds = slots.iter().map(|slot| kinds[*slot as usize]).collect();
            let mut block = ItemBlock::new(slots.to_vec(), kinds);
            block.refresh(&catalog.rows, &mut counter);
            block
        });
        catalog.blocks = blocks.collect();
        catalog
    }

    /// Each block that changes is indexed only once, even if many of its items change.
    fn apply(&mut self, changes: Vec<Change<PublicItem>>) {
        if changes.is_empty() {
            return;
        }
        for change in changes {
            match change {
                Change::Put(item) => self.put(&item),
                Change::Remove(id) => self.remove(&id),
            }
        }
        let mut counter = GramCounter::default();
        self.blocks.iter_mut().for_each(|block| block.refresh(&self.rows, &mut counter));
    }
}

#[cfg(test)]
mod tests;
