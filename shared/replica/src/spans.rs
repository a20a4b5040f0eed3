//! The prices of a long sequence, in stretches of many blocks. The prices of each stretch are sorted, so two binary
//! searches count how many of them are in a range. With that, a page deep in a long sequence is found as quickly as the
//! first one.

/// How many blocks a new stretch covers. A stretch is split in two when it would cover more than twice as many.
const SPAN: usize = 32;
/// For sequences of fewer blocks, running over all prices is cheaper than keeping stretches.
pub(super) const MIN_BLOCKS: usize = 2 * SPAN;

struct PriceSpan {
    /// How many blocks the stretch covers.
    blocks: usize,
    /// The prices of these blocks, sorted.
    prices: Vec<u32>,
}

/// The stretches in order. Together they cover all blocks, from the first to the last.
pub(super) struct PriceSpans(Vec<PriceSpan>);

impl PriceSpans {
    /// Makes stretches over blocks with these prices.
    pub(super) fn from_blocks<'a>(blocks: impl Iterator<Item = &'a [u32]>) -> Self {
        let blocks: Vec<&[u32]> = blocks.collect();
        Self(blocks.chunks(SPAN).map(PriceSpan::from_blocks).collect())
    }

    /// Takes in a price that was added to a block.
    pub(super) fn insert(&mut self, block: usize, price: u32) {
        let (at, _) = self.span_of(block);
        let prices = &mut self.0[at].prices;
        prices.insert(prices.partition_point(|known| *known < price), price);
    }

    /// Drops a price that was removed from a block.
    pub(super) fn remove(&mut self, block: usize, price: u32) {
        let (at, _) = self.span_of(block);
        let prices = &mut self.0[at].prices;
        let place = prices.partition_point(|known| *known < price);
        if prices.get(place) == Some(&price) {
            prices.remove(place);
        }
    }

    /// Drops a block that was removed because it was empty.
    pub(super) fn close(&mut self, block: usize) {
        let (at, _) = self.span_of(block);
        self.0[at].blocks -= 1;
        if self.0[at].blocks == 0 {
            self.0.remove(at);
        }
    }

    /// Takes in a new block, which was split off `block`. `prices` returns the prices of a block.
    pub(super) fn split<'a>(&mut self, block: usize, prices: impl Fn(usize) -> &'a [u32]) {
        let (at, first) = self.span_of(block);
        self.0[at].blocks += 1;
        let blocks = self.0[at].blocks;
        if blocks > 2 * SPAN {
            let of = |blocks: std::ops::Range<usize>| PriceSpan::from_blocks(&blocks.map(&prices).collect::<Vec<_>>());
            self.0[at] = of(first..first + SPAN);
            self.0.insert(at + 1, of(first + SPAN..first + blocks));
        }
    }

    /// Finds the stretch with the match number `skip`, counted from 0, of a price range. Returns the stretch's first
    /// block, and how many matches come before that block.
    pub(super) fn find(&self, start: u32, end: u32, skip: usize) -> (usize, usize) {
        let (mut block, mut before) = (0, 0);
        for span in &self.0 {
            let below = span.prices.partition_point(|price| *price < start);
            let matching = span.prices[below..].partition_point(|price| *price <= end);
            if before + matching > skip {
                break;
            }
            before += matching;
            block += span.blocks;
        }
        (block, before)
    }

    /// Returns the stretch that covers a block, and the first block of that stretch.
    fn span_of(&self, block: usize) -> (usize, usize) {
        let mut first = 0;
        for (at, span) in self.0.iter().enumerate() {
            if block < first + span.blocks {
                return (at, first);
            }
            first += span.blocks;
        }
        (self.0.len() - 1, first)
    }
}

impl PriceSpan {
    fn from_blocks(blocks: &[&[u32]]) -> Self {
        let mut prices = blocks.concat();
        prices.sort_unstable();
        Self { blocks: blocks.len(), prices }
    }
}
