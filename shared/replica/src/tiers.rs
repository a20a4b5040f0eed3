//! Prices of long stretches of a sequence, each stretch sorted by itself: how many of them lie in a range is
//! two binary searches, so that the way to a page deep in a long sequence is as short as to the first.

/// A stretch takes in so many blocks at first, and is split in two when it would take in more than twice as many.
const SPAN: usize = 32;
/// Sequences of fewer blocks are run over faster than stretches of theirs are kept.
pub(super) const WORTHWHILE: usize = 2 * SPAN;

struct Tier {
    /// How many blocks it covers.
    blocks: usize,
    /// Their prices, sorted.
    prices: Vec<u32>,
}

/// Stretches side by side, from the first block to the last.
pub(super) struct Tiers(Vec<Tier>);

impl Tiers {
    /// Stretches over blocks with these prices.
    pub(super) fn of<'a>(blocks: impl Iterator<Item = &'a [u32]>) -> Self {
        let blocks: Vec<&[u32]> = blocks.collect();
        Self(blocks.chunks(SPAN).map(Tier::of).collect())
    }

    /// A price came into a block.
    pub(super) fn insert(&mut self, block: usize, price: u32) {
        let (at, _) = self.tier_of(block);
        let prices = &mut self.0[at].prices;
        prices.insert(prices.partition_point(|known| *known < price), price);
    }

    /// A price left a block.
    pub(super) fn remove(&mut self, block: usize, price: u32) {
        let (at, _) = self.tier_of(block);
        let prices = &mut self.0[at].prices;
        let place = prices.partition_point(|known| *known < price);
        if prices.get(place) == Some(&price) {
            prices.remove(place);
        }
    }

    /// A block, empty by now, has gone.
    pub(super) fn close(&mut self, block: usize) {
        let (at, _) = self.tier_of(block);
        self.0[at].blocks -= 1;
        if self.0[at].blocks == 0 {
            self.0.remove(at);
        }
    }

    /// A block has become two; `prices` are those of a block.
    pub(super) fn split<'a>(&mut self, block: usize, prices: impl Fn(usize) -> &'a [u32]) {
        let (at, first) = self.tier_of(block);
        self.0[at].blocks += 1;
        let blocks = self.0[at].blocks;
        if blocks > 2 * SPAN {
            let of = |blocks: std::ops::Range<usize>| Tier::of(&blocks.map(&prices).collect::<Vec<_>>());
            self.0[at] = of(first..first + SPAN);
            self.0.insert(at + 1, of(first + SPAN..first + blocks));
        }
    }

    /// The first block of the stretch in which match number `skip` of a price range lies, and how many matches
    /// lie before it.
    pub(super) fn find(&self, start: u32, end: u32, skip: usize) -> (usize, usize) {
        let (mut block, mut before) = (0, 0);
        for tier in &self.0 {
            let below = tier.prices.partition_point(|price| *price < start);
            let matching = tier.prices[below..].partition_point(|price| *price <= end);
            if before + matching > skip {
                break;
            }
            before += matching;
            block += tier.blocks;
        }
        (block, before)
    }

    /// The stretch that covers a block, and the first block that it covers.
    fn tier_of(&self, block: usize) -> (usize, usize) {
        let mut first = 0;
        for (at, tier) in self.0.iter().enumerate() {
            if block < first + tier.blocks {
                return (at, first);
            }
            first += tier.blocks;
        }
        (self.0.len() - 1, first)
    }
}

impl Tier {
    fn of(blocks: &[&[u32]]) -> Self {
        let mut prices = blocks.concat();
        prices.sort_unstable();
        Self { blocks: blocks.len(), prices }
    }
}
