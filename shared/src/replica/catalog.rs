//! The catalog replica: items in order of name, their lower-cased names side by side for searching.
//!
//! Items lie in blocks. A block keeps its names in one text, so that a search runs over memory in order,
//! and its kinds in one column. A change touches one block.

use std::cmp::Ordering;
use std::collections::HashMap;

use memchr::memmem::Finder;

use super::follow::View;
use super::interner::{Interner, Symbol};
use crate::http::Paging;
use crate::ids::{ItemId, Label};
use crate::market::Change;
use crate::model::PublicItem;

/// A block is split in two when it would hold more.
const BLOCK: usize = 512;
/// Ends each name in a block's text. Names hold no control characters.
const END: char = '\n';

/// What is asked of the catalog.
#[derive(Clone, Debug, Default)]
pub struct CatalogQuery {
    /// Only items whose name contains this, whatever the case; empty for all.
    pub q: String,
    /// Only items of this kind.
    pub kind: Option<String>,
}

#[derive(Default)]
struct Block {
    items: Vec<PublicItem>,
    kinds: Vec<Symbol>,
    /// Lower-cased names, each ended by [`END`]; an item without a name has an empty one.
    text: String,
    /// Where each item's name begins.
    starts: Vec<u32>,
    /// Whether text and starts are to be made anew.
    is_stale: bool,
}

/// Every item of the catalog, by name and then id; items without a name last.
#[derive(Default)]
pub struct Catalog {
    blocks: Vec<Block>,
    /// The name under which an item stands in the order.
    names: HashMap<ItemId, Option<Label>>,
    kinds: Interner,
}

impl Catalog {
    /// One page and the exact number of matching items.
    pub fn page(&self, query: &CatalogQuery, paging: Paging) -> (Vec<PublicItem>, usize) {
        let kind = query.kind.as_ref().map(|kind| self.kinds.find(kind));
        let kind = match kind {
            Some(None) => return (Vec::new(), 0),
            Some(found) => found,
            None => None,
        };
        let needle = lower(&query.q);
        if needle.contains(END) {
            return (Vec::new(), 0);
        }
        let finder = (!needle.is_empty()).then(|| Finder::new(&needle));
        let (mut page, mut total) = (Vec::new(), 0);
        let wanted = paging.skip()..paging.skip().saturating_add(paging.take());
        for block in &self.blocks {
            block.matches(finder.as_ref(), kind, wanted.clone(), &mut total, &mut page);
        }
        (page, total)
    }

    /// Puts an item in its place. One that keeps its name keeps its place.
    fn put(&mut self, item: PublicItem) {
        if self.names.get(&item.id) == Some(&item.name) {
            self.replace(item);
        } else {
            self.remove(&item.id);
            self.insert(item);
        }
    }

    fn replace(&mut self, item: PublicItem) {
        let kind = self.kinds.intern(item.kind.as_str());
        let at = self.block_for(&key(&item));
        let Some(block) = self.blocks.get_mut(at) else { return };
        if let Ok(place) = block.items.binary_search_by(|known| key(known).cmp(&key(&item))) {
            block.items[place] = item;
            block.kinds[place] = kind;
        }
    }

    fn insert(&mut self, item: PublicItem) {
        self.names.insert(item.id.clone(), item.name.clone());
        let kind = self.kinds.intern(item.kind.as_str());
        let at = self.block_for(&key(&item));
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let block = &mut self.blocks[at];
        let place = block.items.partition_point(|known| key(known) < key(&item));
        block.items.insert(place, item);
        block.kinds.insert(place, kind);
        block.is_stale = true;
        if block.items.len() > BLOCK {
            let upper = Block {
                items: block.items.split_off(BLOCK / 2),
                kinds: block.kinds.split_off(BLOCK / 2),
                is_stale: true,
                ..Block::default()
            };
            self.blocks.insert(at + 1, upper);
        }
    }

    fn remove(&mut self, id: &ItemId) {
        let Some(name) = self.names.remove(id) else { return };
        let key = (name.is_none(), name.as_ref().map_or("", Label::as_str), id.as_str());
        let at = self.block_for(&key);
        let Some(block) = self.blocks.get_mut(at) else { return };
        if let Ok(place) = block.items.binary_search_by(|known| order(known, &key)) {
            block.items.remove(place);
            block.kinds.remove(place);
            block.is_stale = true;
            if block.items.is_empty() {
                self.blocks.remove(at);
            }
        }
    }

    /// The block that holds, or would hold, the key.
    fn block_for(&self, key: &Key<'_>) -> usize {
        let before = |block: &Block| block.items.last().is_some_and(|last| order(last, key).is_lt());
        self.blocks.partition_point(before).min(self.blocks.len().saturating_sub(1))
    }
}

impl View for Catalog {
    type Record = PublicItem;

    fn build(chunks: Vec<crate::market::ItemColumns>) -> Self {
        let mut records: Vec<PublicItem> =
            chunks.iter().flat_map(|c| crate::market::Columns::records(c).unwrap_or_default()).collect();
        records.sort_unstable_by(|a, b| key(a).cmp(&key(b)));
        let mut catalog = Self::default();
        let mut records = records.into_iter().peekable();
        while records.peek().is_some() {
            // Blocks start three-quarters full, so that the next insertions split none.
            let items: Vec<PublicItem> = records.by_ref().take(BLOCK / 4 * 3).collect();
            let kinds = items.iter().map(|item| catalog.kinds.intern(item.kind.as_str())).collect();
            catalog.names.extend(items.iter().map(|item| (item.id.clone(), item.name.clone())));
            let mut block = Block { items, kinds, ..Block::default() };
            block.index();
            catalog.blocks.push(block);
        }
        catalog
    }

    /// Each block that changes is indexed once, however many of its items do.
    fn apply(&mut self, changes: Vec<Change<PublicItem, ItemId>>) {
        for change in changes {
            match change {
                Change::Put(item) => self.put(item),
                Change::Remove(id) => self.remove(&id),
            }
        }
        self.blocks.iter_mut().filter(|block| block.is_stale).for_each(Block::index);
    }
}

impl Block {
    /// Makes the text anew from the items.
    fn index(&mut self) {
        self.is_stale = false;
        self.text.clear();
        self.starts.clear();
        for item in &self.items {
            self.starts.push(self.text.len() as u32);
            self.text.extend(item.name.iter().flat_map(|name| lowered(name.as_str())));
            self.text.push(END);
        }
    }

    /// Counts the block's matches on top of `total`, and collects those whose number lies in `wanted`.
    fn matches(
        &self,
        finder: Option<&Finder<'_>>,
        kind: Option<Symbol>,
        wanted: std::ops::Range<usize>,
        total: &mut usize,
        page: &mut Vec<PublicItem>,
    ) {
        let mut take = |number: usize, place: usize| {
            if wanted.contains(&number) {
                page.push(self.items[place].clone());
            }
        };
        match (finder, kind) {
            (None, None) => {
                let first = wanted.start.max(*total);
                let last = wanted.end.min(*total + self.items.len());
                (first..last).for_each(|number| take(number, number - *total));
                *total += self.items.len();
            }
            (None, Some(kind)) => {
                let places = self.kinds.iter().enumerate().filter(|(_, known)| **known == kind);
                for (place, _) in places {
                    take(*total, place);
                    *total += 1;
                }
            }
            (Some(finder), _) => {
                let mut place = 0;
                while let Some(hit) = self.next_hit(finder, place) {
                    if kind.is_none_or(|kind| self.kinds[hit] == kind) {
                        take(*total, hit);
                        *total += 1;
                    }
                    place = hit + 1;
                }
            }
        }
    }

    /// The first item from `place` on whose name has the needle.
    fn next_hit(&self, finder: &Finder<'_>, place: usize) -> Option<usize> {
        let from = *self.starts.get(place)? as usize;
        let at = from + finder.find(&self.text.as_bytes()[from..])?;
        // The next name is likelier than any other where hits are dense.
        let next = self.starts.get(place + 1).map_or(usize::MAX, |start| *start as usize);
        if at < next {
            return Some(place);
        }
        Some(self.starts.partition_point(|start| *start as usize <= at) - 1)
    }
}

type Key<'a> = (bool, &'a str, &'a str);

fn key(item: &PublicItem) -> Key<'_> {
    (item.name.is_none(), item.name.as_ref().map_or("", Label::as_str), item.id.as_str())
}

fn order(item: &PublicItem, other: &Key<'_>) -> Ordering {
    key(item).cmp(other)
}

fn lower(text: &str) -> String {
    lowered(text).collect()
}

/// Lower case character by character, whatever its neighbours.
fn lowered(text: &str) -> impl Iterator<Item = char> {
    text.chars().flat_map(char::to_lowercase)
}

#[cfg(test)]
#[path = "catalog_tests.rs"]
mod tests;
