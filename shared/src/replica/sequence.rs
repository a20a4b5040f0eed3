//! A sorted sequence of record slots with their prices, in blocks: insertion moves one block, a position is
//! found by the blocks' lengths, and what lies in a price range by running over a packed column.

use std::cmp::Ordering;

/// A block is split in two when it would hold more.
const BLOCK: usize = 1_024;

/// A record's place in the replica's rows.
pub(super) type Slot = u32;

#[derive(Default)]
struct Block {
    slots: Vec<Slot>,
    /// Cents, in step with `slots`.
    prices: Vec<u64>,
}

/// Slots in a fixed order that the caller's comparisons define.
#[derive(Default)]
pub(super) struct Sequence {
    blocks: Vec<Block>,
    len: usize,
}

impl Sequence {
    /// A sequence of entries that are in order already.
    pub(super) fn from_sorted(entries: &[(Slot, u64)]) -> Self {
        // Blocks start three-quarters full, so that the next insertions split none.
        let blocks = entries.chunks(BLOCK / 4 * 3).map(|chunk| {
            let (slots, prices) = chunk.iter().copied().unzip();
            Block { slots, prices }
        });
        Self { blocks: blocks.collect(), len: entries.len() }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    /// Inserts an entry; `compare` orders an existing slot against it.
    pub(super) fn insert(&mut self, slot: Slot, price: u64, compare: impl Fn(Slot) -> Ordering) {
        let at = self.block_for(&compare);
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let block = &mut self.blocks[at];
        let place = block.slots.partition_point(|known| compare(*known).is_lt());
        block.slots.insert(place, slot);
        block.prices.insert(place, price);
        self.len += 1;
        if block.slots.len() > BLOCK {
            let half = BLOCK / 2;
            let upper = Block { slots: block.slots.split_off(half), prices: block.prices.split_off(half) };
            self.blocks.insert(at + 1, upper);
        }
    }

    /// Removes the entry that `compare` finds equal.
    pub(super) fn remove(&mut self, compare: impl Fn(Slot) -> Ordering) {
        let at = self.block_for(&compare);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let place = block.slots.partition_point(|known| compare(*known).is_lt());
        if block.slots.get(place).is_some_and(|known| compare(*known).is_eq()) {
            block.slots.remove(place);
            block.prices.remove(place);
            self.len -= 1;
            if block.slots.is_empty() {
                self.blocks.remove(at);
            }
        }
    }

    /// The entries from a position on.
    pub(super) fn starting_at(&self, position: usize) -> impl Iterator<Item = (Slot, u64)> {
        let (mut left, mut first) = (position, self.blocks.len());
        for (at, block) in self.blocks.iter().enumerate() {
            if left < block.slots.len() {
                first = at;
                break;
            }
            left -= block.slots.len();
        }
        let entries = self.blocks[first..].iter().flat_map(|b| b.slots.iter().copied().zip(b.prices.iter().copied()));
        entries.skip(if first < self.blocks.len() { left } else { 0 })
    }

    /// How many leading prices are below `price`, in a sequence sorted by price.
    pub(super) fn count_below(&self, price: u64) -> usize {
        let is_below = |block: &Block| block.prices.last().is_some_and(|last| *last < price);
        let whole = self.blocks.partition_point(is_below);
        let before: usize = self.blocks[..whole].iter().map(|block| block.slots.len()).sum();
        before + self.blocks.get(whole).map_or(0, |block| block.prices.partition_point(|known| *known < price))
    }

    /// The slots whose price lies in `range`, without the first `skip` and at most `take` of them.
    pub(super) fn in_price_range(&self, range: std::ops::RangeInclusive<u64>, skip: usize, take: usize) -> Vec<Slot> {
        let (mut left, mut found) = (skip, Vec::with_capacity(take));
        for block in &self.blocks {
            let matching = block.prices.iter().filter(|price| range.contains(price)).count();
            if matching <= left {
                left -= matching;
                continue;
            }
            let entries = block.slots.iter().zip(&block.prices).filter(|(_, price)| range.contains(price));
            found.extend(entries.skip(left).map(|(slot, _)| *slot).take(take - found.len()));
            left = 0;
            if found.len() == take {
                break;
            }
        }
        found
    }

    /// The block that holds, or would hold, the entry.
    fn block_for(&self, compare: &impl Fn(Slot) -> Ordering) -> usize {
        let before = self.blocks.partition_point(|block| block.slots.last().is_some_and(|last| compare(*last).is_lt()));
        before.min(self.blocks.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_sequence_is_a_sorted_list(
            initial in prop::collection::btree_set(0u32..100_000, 0..3_000),
            steps in prop::collection::vec((any::<bool>(), 0u32..5_000), 0..1_500),
            range in (0u64..40, 0u64..40),
        ) {
            let price = |slot: u32| u64::from(slot % 37);
            let mut model = initial;
            let entries: Vec<_> = model.iter().map(|slot| (*slot, price(*slot))).collect();
            let mut sequence = Sequence::from_sorted(&entries);
            for (insert, slot) in steps {
                if insert && model.insert(slot) {
                    sequence.insert(slot, price(slot), |known| known.cmp(&slot));
                } else if !insert {
                    model.remove(&slot);
                    sequence.remove(|known| known.cmp(&slot));
                }
            }
            prop_assert_eq!(sequence.len(), model.len());
            for position in [0, 1, model.len() / 2, model.len(), model.len() + 1] {
                let tail: Vec<_> = sequence.starting_at(position).map(|(slot, _)| slot).collect();
                prop_assert_eq!(tail, model.iter().copied().skip(position).collect::<Vec<_>>());
            }
            let wanted = range.0..=range.1;
            let matching: Vec<_> = model.iter().copied().filter(|slot| wanted.contains(&price(*slot))).collect();
            for skip in [0, 7, matching.len()] {
                let expected: Vec<_> = matching.iter().copied().skip(skip).take(20).collect();
                prop_assert_eq!(sequence.in_price_range(wanted.clone(), skip, 20), expected);
            }
        }
    }
}
