//! The prices of a long sequence, in stretches of many blocks. The prices of each stretch are sorted, so two binary
//! searches count how many of them are in a range. With that, a page deep in a long sequence is found as quickly as the
//! first one.
//!
//! A search asks each stretch, and runs over the few that have something for the page. So the longer a sequence is, the
//! longer are its stretches too: with ten million entries, a search counts in 128 stretches, and runs over 100 blocks.

use std::ops::Range;

/// How many blocks a stretch covers at least when it is made.
const MIN_SPAN: usize = 32;
/// How many stretches are made at most.
const MAX_SPANS: usize = 128;
/// For sequences of fewer blocks, running over all prices is cheaper than keeping stretches.
pub(super) const MIN_BLOCKS: usize = 2 * MIN_SPAN;

pub(super) struct PriceSpan {
    /// How many blocks the stretch covers.
    blocks: usize,
    /// The prices of these blocks, sorted.
    prices: Vec<u32>,
}

/// The stretches in order. Together they cover all blocks, from the first to the last.
pub(super) struct PriceSpans {
    spans: Vec<PriceSpan>,
    /// How many blocks a new stretch covers. A stretch is split in two when it would cover more than twice as many.
    size: usize,
}

impl PriceSpans {
    /// Makes stretches over blocks with these prices.
    pub(super) fn from_blocks<'a>(blocks: impl Iterator<Item = &'a [u32]>) -> Self {
        let blocks: Vec<&[u32]> = blocks.collect();
        let size = blocks.len().div_ceil(MAX_SPANS).max(MIN_SPAN);
        Self { spans: blocks.chunks(size).map(PriceSpan::from_blocks).collect(), size }
    }

    /// Takes in a price that was added to a block.
    pub(super) fn insert(&mut self, block: usize, price: u32) {
        let (at, _) = self.span_of(block);
        let prices = &mut self.spans[at].prices;
        prices.insert(prices.partition_point(|known| *known < price), price);
    }

    /// Drops a price that was removed from a block.
    pub(super) fn remove(&mut self, block: usize, price: u32) {
        let (at, _) = self.span_of(block);
        let prices = &mut self.spans[at].prices;
        let place = prices.partition_point(|known| *known < price);
        if prices.get(place) == Some(&price) {
            prices.remove(place);
        }
    }

    /// Drops a block that was removed because it was empty.
    pub(super) fn close(&mut self, block: usize) {
        let (at, _) = self.span_of(block);
        self.spans[at].blocks -= 1;
        if self.spans[at].blocks == 0 {
            self.spans.remove(at);
        }
    }

    /// Takes in a new block, which was split off `block`. `prices` returns the prices of a block.
    pub(super) fn split<'a>(&mut self, block: usize, prices: impl Fn(usize) -> &'a [u32]) {
        let (at, first) = self.span_of(block);
        self.spans[at].blocks += 1;
        let blocks = self.spans[at].blocks;
        if blocks > 2 * self.size {
            let of = |blocks: Range<usize>| PriceSpan::from_blocks(&blocks.map(&prices).collect::<Vec<_>>());
            let middle = first + self.size;
            self.spans[at] = of(first..middle);
            self.spans.insert(at + 1, of(middle..first + blocks));
        }
    }

    /// Returns each stretch, and before it the blocks that it covers.
    pub(super) fn stretches(&self) -> impl Iterator<Item = (Range<usize>, &PriceSpan)> {
        self.spans.iter().scan(0, |first, span| {
            let blocks = *first..*first + span.blocks;
            *first = blocks.end;
            Some((blocks, span))
        })
    }

    /// Returns the stretch that covers a block, and the first block of that stretch.
    fn span_of(&self, block: usize) -> (usize, usize) {
        let mut first = 0;
        for (at, span) in self.spans.iter().enumerate() {
            if block < first + span.blocks {
                return (at, first);
            }
            first += span.blocks;
        }
        (self.spans.len() - 1, first)
    }
}

impl PriceSpan {
    fn from_blocks(blocks: &[&[u32]]) -> Self {
        let mut prices = blocks.concat();
        prices.sort_unstable();
        Self { blocks: blocks.len(), prices }
    }

    /// Counts the prices from `start` to `end`.
    pub(super) fn count(&self, start: u32, end: u32) -> usize {
        let below = self.prices.partition_point(|price| *price < start);
        self.prices[below..].partition_point(|price| *price <= end)
    }

    pub(super) fn highest(&self) -> Option<u32> {
        self.prices.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_sequence_has_longer_stretches_and_not_more_of_them() {
        for (blocks, size) in [(64, 32), (4_096, 32), (13_021, 102), (100_000, 782)] {
            let spans = PriceSpans::from_blocks(std::iter::repeat_n(&[1][..], blocks));
            assert_eq!(spans.size, size);
            assert!(spans.spans.len() <= MAX_SPANS);
            assert_eq!(spans.stretches().map(|(blocks, _)| blocks.len()).sum::<usize>(), blocks);
        }
    }
}
