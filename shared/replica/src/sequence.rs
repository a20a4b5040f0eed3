//! A sorted sequence of record slots with their prices, in blocks.
//!
//! An insertion moves only the entries of one block. A position, or a price in a sequence sorted by price, is found by
//! binary search. In any other sequence, the entries in a price range are found by running over a packed column of
//! prices. If the sequence is long, [`PriceSpans`] say which stretches of it have nothing for the page.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use super::spans::{MIN_BLOCKS, PriceSpan, PriceSpans};

/// The most entries in a block. A block that would hold more is split in two.
const MAX_BLOCK_ENTRIES: usize = if cfg!(test) { 8 } else { 1_024 };
/// Stands in the packed column for prices that do not fit in it. Their exact value comes from [`Exact`].
pub(super) const LARGE: u32 = u32::MAX;

/// A record's place in its replica.
pub(super) type Slot = u32;

/// Knows the exact price of every slot, in cents.
pub(super) trait Exact {
    fn cents(&self, slot: Slot) -> u64;
}

/// A slot and its price, as a sequence holds them.
#[derive(Clone, Copy, Default)]
pub(super) struct Entry {
    pub(super) slot: Slot,
    /// In cents, or [`LARGE`].
    pub(super) price: u32,
}

impl Entry {
    pub(super) fn new(slot: Slot, cents: u64) -> Self {
        Self { slot, price: packed(cents) }
    }
}

#[derive(Default)]
struct EntryBlock {
    slots: Vec<Slot>,
    /// The price of each of the `slots` in cents, or [`LARGE`].
    prices: Vec<u32>,
}

/// Slots in a fixed order, which the caller's comparisons define.
#[derive(Default)]
pub(super) struct Sequence {
    blocks: Vec<EntryBlock>,
    /// The position of each block's first entry. A change moves the positions of all blocks behind it. They stand side
    /// by side, so that this takes a few microseconds with ten million entries (computed).
    firsts: Vec<u32>,
    len: u32,
    /// `None` in a short sequence, and in every sequence without `has_spans`.
    spans: Option<PriceSpans>,
    /// Whether the sequence keeps spans once it is long enough. Only a sequence that is asked for price ranges and is
    /// not sorted by price needs them.
    has_spans: bool,
    /// Counts the blocks of the stretches whose prices were run over.
    #[cfg(test)]
    run_over: std::sync::atomic::AtomicUsize,
}

impl Sequence {
    /// Makes a sequence of entries that are already in order.
    pub(super) fn from_sorted(entries: &[Entry]) -> Self {
        // Blocks start three-quarters full, so that the next insertions do not split them.
        const START_ENTRIES: usize = MAX_BLOCK_ENTRIES / 4 * 3;
        let blocks = entries.chunks(START_ENTRIES).map(|chunk| EntryBlock {
            slots: chunk.iter().map(|entry| entry.slot).collect(),
            prices: chunk.iter().map(|entry| entry.price).collect(),
        });
        let firsts = (0..entries.len() as u32).step_by(START_ENTRIES);
        Self { blocks: blocks.collect(), firsts: firsts.collect(), len: entries.len() as u32, ..Self::default() }
    }

    /// Returns the same sequence, which keeps spans from now on if it is long enough.
    pub(super) fn with_spans(mut self) -> Self {
        self.has_spans = true;
        self.keep_spans();
        self
    }

    /// Makes or drops the spans, depending on the length.
    fn keep_spans(&mut self) {
        if self.blocks.len() < MIN_BLOCKS / 2 {
            self.spans = None;
        } else if self.has_spans && self.spans.is_none() && self.blocks.len() >= MIN_BLOCKS {
            self.spans = Some(PriceSpans::from_blocks(self.blocks.iter().map(|block| &block.prices[..])));
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns how many blocks there are.
    pub(super) const fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// Inserts a slot. `compare` compares an existing slot with it.
    pub(super) fn insert(&mut self, slot: Slot, cents: u64, compare: impl Fn(Slot) -> Ordering) {
        let at = self.block_for(&compare);
        if self.blocks.is_empty() {
            self.blocks.push(EntryBlock::default());
            self.firsts.push(0);
        }
        let block = &mut self.blocks[at];
        let place = block.slots.partition_point(|known| compare(*known).is_lt());
        block.slots.insert(place, slot);
        block.prices.insert(place, packed(cents));
        self.len += 1;
        if let Some(spans) = &mut self.spans {
            spans.insert(at, packed(cents));
        }
        self.firsts[at + 1..].iter_mut().for_each(|first| *first += 1);
        if self.blocks[at].slots.len() > MAX_BLOCK_ENTRIES {
            self.split(at);
        }
    }

    fn split(&mut self, at: usize) {
        let (half, block) = (MAX_BLOCK_ENTRIES / 2, &mut self.blocks[at]);
        let upper = EntryBlock { slots: block.slots.split_off(half), prices: block.prices.split_off(half) };
        self.blocks.insert(at + 1, upper);
        self.firsts.insert(at + 1, self.firsts[at] + half as u32);
        let blocks = &self.blocks;
        if let Some(spans) = &mut self.spans {
            spans.split(at, |block| &blocks[block].prices);
        }
        self.keep_spans();
    }

    /// Removes the slot that `compare` finds equal.
    pub(super) fn remove(&mut self, compare: impl Fn(Slot) -> Ordering) {
        let at = self.block_for(&compare);
        let Some(block) = self.blocks.get_mut(at) else { return };
        let place = block.slots.partition_point(|known| compare(*known).is_lt());
        if block.slots.get(place).is_some_and(|known| compare(*known).is_eq()) {
            block.slots.remove(place);
            let price = block.prices.remove(place);
            self.len -= 1;
            let is_empty = block.slots.is_empty();
            self.firsts[at + 1..].iter_mut().for_each(|first| *first -= 1);
            if let Some(spans) = &mut self.spans {
                spans.remove(at, price);
            }
            if is_empty {
                self.close(at);
            }
        }
    }

    fn close(&mut self, at: usize) {
        self.blocks.remove(at);
        self.firsts.remove(at);
        if let Some(spans) = &mut self.spans {
            spans.close(at);
        }
        self.keep_spans();
    }

    /// Returns the slots from a position on.
    pub(super) fn starting_at(&self, position: usize) -> impl Iterator<Item = Slot> {
        let at = self.firsts.partition_point(|first| *first as usize <= position).saturating_sub(1);
        let skip = self.firsts.get(at).map_or(0, |first| position - *first as usize);
        self.blocks[at..].iter().flat_map(|block| block.slots.iter().copied()).skip(skip)
    }

    /// Counts the prices below `cents`. The sequence must be sorted by price.
    pub(super) fn count_below(&self, cents: u64, exact: &impl Exact) -> usize {
        let at = self.blocks.partition_point(|block| block.last_price(exact).is_some_and(|last| last < cents));
        let Some(block) = self.blocks.get(at) else { return self.len() };
        let in_block = if cents <= u64::from(LARGE) {
            block.prices.partition_point(|price| u64::from(*price) < cents)
        } else {
            block.slots.partition_point(|slot| exact.cents(*slot) < cents)
        };
        self.firsts[at] as usize + in_block
    }

    /// Of the slots whose price is in `range`, skips the first `skip` and returns at most `take`.
    pub(super) fn in_price_range(
        &self,
        range: &RangeInclusive<u64>,
        exact: &impl Exact,
        mut skip: usize,
        take: usize,
    ) -> Vec<Slot> {
        let wanted = PriceRange::new(range, exact);
        let mut found = Vec::with_capacity(take);
        for (blocks, span) in self.stretches() {
            match span.and_then(|span| wanted.count_in_span(span)) {
                Some(matching) if matching <= skip => skip -= matching,
                _ => {
                    #[cfg(test)]
                    self.run_over.fetch_add(blocks.len(), std::sync::atomic::Ordering::Relaxed);
                    wanted.search(&self.blocks[blocks], &mut skip, take, &mut found);
                }
            }
            if found.len() == take {
                break;
            }
        }
        found
    }

    /// Returns all blocks in stretches, each with its span if the sequence keeps spans.
    fn stretches(&self) -> impl Iterator<Item = (Range<usize>, Option<&PriceSpan>)> {
        let spans = self.spans.iter().flat_map(PriceSpans::stretches).map(|(blocks, span)| (blocks, Some(span)));
        spans.chain(self.spans.is_none().then_some((0..self.blocks.len(), None)))
    }

    #[cfg(test)]
    pub(super) fn run_over(&self) -> usize {
        self.run_over.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Returns the block that holds the entry, or that it would be inserted into.
    fn block_for(&self, compare: &impl Fn(Slot) -> Ordering) -> usize {
        let before = self.blocks.partition_point(|block| block.slots.last().is_some_and(|last| compare(*last).is_lt()));
        before.min(self.blocks.len().saturating_sub(1))
    }
}

impl EntryBlock {
    fn last_price(&self, exact: &impl Exact) -> Option<u64> {
        let (slot, price) = (self.slots.last()?, self.prices.last()?);
        Some(if *price == LARGE { exact.cents(*slot) } else { u64::from(*price) })
    }
}

/// A price range as the packed column sees it.
struct PriceRange<'a, E> {
    start: u32,
    /// How far the range reaches above `start`.
    span: u32,
    /// The exact range and the exact prices, if one of the bounds is among the prices that do not fit in the column.
    large: Option<(&'a RangeInclusive<u64>, &'a E)>,
}

impl<'a, E: Exact> PriceRange<'a, E> {
    fn new(range: &'a RangeInclusive<u64>, exact: &'a E) -> Self {
        let (start, end) = (packed(*range.start()), packed(*range.end()));
        let is_cut = start == LARGE || (end == LARGE && *range.end() != u64::MAX);
        Self { start, span: end.saturating_sub(start), large: is_cut.then_some((range, exact)) }
    }

    const fn may_have(&self, price: u32) -> bool {
        price.wrapping_sub(self.start) <= self.span
    }

    fn has(&self, (slot, price): &(&Slot, &u32)) -> bool {
        match self.large {
            Some((range, exact)) if **price == LARGE => range.contains(&exact.cents(**slot)),
            _ => self.may_have(**price),
        }
    }

    /// Counts the prices of a stretch in the range. Returns `None` if some of them do not fit in the column, and the
    /// range ends among these.
    fn count_in_span(&self, span: &PriceSpan) -> Option<usize> {
        let is_exact = self.large.is_none() || span.highest() < Some(LARGE);
        is_exact.then(|| span.count(self.start, self.start + self.span))
    }

    /// Passes over the first `skip` entries of these blocks that are in the range, and adds the next ones to `found`,
    /// up to `take` in all. Lowers `skip` by those that it has passed.
    fn search(&self, blocks: &[EntryBlock], skip: &mut usize, take: usize, found: &mut Vec<Slot>) {
        for block in blocks {
            if found.len() == take {
                break;
            }
            let matching = self.count(block);
            if matching <= *skip {
                *skip -= matching;
                continue;
            }
            let entries = block.slots.iter().zip(&block.prices).filter(|entry| self.has(entry));
            found.extend(entries.map(|(slot, _)| *slot).skip(*skip).take(take - found.len()));
            *skip = 0;
        }
    }

    fn count(&self, block: &EntryBlock) -> usize {
        if self.large.is_some() && block.prices.contains(&LARGE) {
            return block.slots.iter().zip(&block.prices).filter(|entry| self.has(entry)).count();
        }
        // Counted in 32 bits, so that the compiler can count four or more prices at a time.
        block.prices.iter().map(|price| u32::from(self.may_have(*price))).sum::<u32>() as usize
    }
}

fn packed(cents: u64) -> u32 {
    u32::try_from(cents).unwrap_or(LARGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Some of these prices fit in the column and some do not, and some are equal.
    struct SlotPrices;

    impl Exact for SlotPrices {
        fn cents(&self, slot: Slot) -> u64 {
            u64::from(slot % 37) + if slot.is_multiple_of(3) { u64::from(LARGE) - 8 } else { 0 }
        }
    }

    fn entries(slots: impl IntoIterator<Item = Slot>, exact: &impl Exact) -> Vec<Entry> {
        slots.into_iter().map(|slot| Entry::new(slot, exact.cents(slot))).collect()
    }

    fn bound() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..40, (0u64..40).prop_map(|n| u64::from(LARGE) - 10 + n), Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn a_sequence_is_a_sorted_list(
            initial in prop::collection::btree_set(0u32..100_000, 0..3_000),
            steps in prop::collection::vec((any::<bool>(), 0u32..5_000), 0..1_500),
            (one, other) in (bound(), bound()),
            size in 1usize..200,
        ) {
            let mut model = initial;
            let mut sequence = Sequence::from_sorted(&entries(model.iter().copied(), &SlotPrices)).with_spans();
            for (insert, slot) in steps {
                if insert && model.insert(slot) {
                    sequence.insert(slot, SlotPrices.cents(slot), |known| known.cmp(&slot));
                } else if !insert {
                    model.remove(&slot);
                    sequence.remove(|known| known.cmp(&slot));
                }
            }
            prop_assert_eq!(sequence.len(), model.len());
            for position in [0, 1, model.len() / 2, model.len(), model.len() + 1] {
                let tail: Vec<_> = sequence.starting_at(position).collect();
                prop_assert_eq!(tail, model.iter().copied().skip(position).collect::<Vec<_>>());
            }
            let range = one.min(other)..=one.max(other);
            let is_in_range = |slot: &Slot| range.contains(&SlotPrices.cents(*slot));
            let matching: Vec<_> = model.iter().copied().filter(is_in_range).collect();
            for skip in [0, 7, matching.len() / 2, matching.len().saturating_sub(size), matching.len()] {
                let expected: Vec<_> = matching.iter().copied().skip(skip).take(size).collect();
                prop_assert_eq!(sequence.in_price_range(&range, &SlotPrices, skip, size), expected);
            }
        }

        #[test]
        fn prices_are_counted_in_a_sequence_by_price(
            slots in prop::collection::btree_set(0u32..100_000, 0..3_000),
            bound in bound(),
        ) {
            let mut by_price: Vec<_> = slots.into_iter().collect();
            by_price.sort_by_key(|slot| SlotPrices.cents(*slot));
            let sequence = Sequence::from_sorted(&entries(by_price.iter().copied(), &SlotPrices));
            let expected = by_price.iter().filter(|slot| SlotPrices.cents(**slot) < bound).count();
            prop_assert_eq!(sequence.count_below(bound, &SlotPrices), expected);
        }
    }

    /// Prices by slot.
    struct By(fn(Slot) -> u64);

    impl Exact for By {
        fn cents(&self, slot: Slot) -> u64 {
            self.0(slot)
        }
    }

    #[test]
    fn a_page_runs_over_a_small_part_of_a_long_sequence() {
        const LEN: Slot = 200_000;
        let far_apart = By(|slot| if (50..LEN - 50).contains(&slot) { 1 } else { 7 });
        let one_is_large = By(|slot| if slot == 9 { u64::from(LARGE) + 5 } else { u64::from(slot % 4) });
        let cases = [
            (&far_apart, 7..=7, 20, 70, (20..50).chain(LEN - 50..LEN - 10).collect::<Vec<_>>()),
            (&one_is_large, 0..=u64::from(LARGE) + 4, 150_000, 3, vec![150_001, 150_002, 150_003]),
            (&one_is_large, u64::from(LARGE) + 4..=u64::MAX, 0, 1, vec![9]),
        ];
        for (exact, range, skip, take, expected) in cases {
            let sequence = Sequence::from_sorted(&entries(0..LEN, exact)).with_spans();
            assert_eq!(sequence.in_price_range(&range, exact, skip, take), expected, "{range:?}");
            let (run_over, blocks) = (sequence.run_over(), sequence.blocks());
            assert!(run_over * 40 < blocks, "{run_over} of {blocks} blocks for {range:?}");
        }
    }
}
