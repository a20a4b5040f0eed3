//! Order marks: the places at which the blocks of a busy month begin, and how many orders each block holds. With them
//! a page deep inside the month is found without reading the orders before it.
//!
//! Marks are exact for the orders that they count, and these are the first that were inserted into the month. Those that
//! an instance remembers fall behind, and so may those in a table that was restored. So they hold only if they count as
//! many orders as the summary does. If they are behind by a few, the summary's recent inserts are those that they lack.

use super::summary::{Place, Start, Summary};
use super::table;
use common::ids::OrderId;
use common::layout::Format;
use common::store::{Attributes, Row, StoreError, b, n};
use common::timestamp::Timestamp;

/// A month has not many more blocks than this: the more orders it has, the larger its blocks may be. So the marks of a
/// month of 100,000 orders are about 5 KB.
const BLOCKS_PER_MONTH: u64 = 512;

/// The marks of one month.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Marks {
    /// Oldest first. The first block begins before every order.
    blocks: Vec<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Block {
    start: Place,
    orders: u64,
}

/// A block that has become too large, and what to read of it to cut it.
#[derive(Debug)]
pub(super) struct Cut {
    block: usize,
    /// The range of positions in which its orders lie. `below` is not part of it.
    pub(super) from: String,
    pub(super) below: String,
    /// How many of its newest orders to read: those to move to new blocks, and the one before them.
    pub(super) read: usize,
    /// How many orders a new block may hold.
    block_orders: usize,
}

impl Marks {
    /// Returns the marks of a month of which only the number of orders is known: one block.
    pub(super) fn coarse(orders: u64) -> Self {
        Self { blocks: vec![Block { start: Place::first(), orders }] }
    }

    /// Returns the marks of the month as of this summary: those that were stored, or coarse ones if these cannot catch
    /// up with the summary.
    pub(super) fn as_of(stored: Option<Self>, summary: &Summary, month: &str) -> Self {
        let current = stored.and_then(|mut marks| marks.catch_up(summary, month).then_some(marks));
        current.unwrap_or_else(|| Self::coarse(summary.orders_in(month)))
    }

    /// Makes the marks of a month whose orders have these places, oldest first. No block holds more than it should.
    pub(super) fn of(places: &[Place], smallest: u64) -> Self {
        let max = Self::coarse(places.len() as u64).max_block_orders(smallest);
        let step = usize::try_from(max).unwrap_or(usize::MAX).max(1);
        let starts = (step..places.len()).step_by(step).map(|at| Place::between(places[at - 1], places[at]));
        let blocks = std::iter::once(Place::first()).chain(starts).map(|start| Block { start, orders: 0 });
        Self { blocks: blocks.collect() }.recounted(places)
    }

    /// Returns whether a block holds more orders than it should.
    pub(super) fn is_too_coarse(&self, smallest: u64) -> bool {
        self.newest_above(self.max_block_orders(smallest)).is_some()
    }

    /// Returns the number of orders that the marks count.
    pub(super) fn orders(&self) -> u64 {
        self.blocks.iter().map(|block| block.orders).sum()
    }

    /// Returns the most orders that a block should hold. `smallest` is that number in a month of few orders.
    pub(super) fn max_block_orders(&self, smallest: u64) -> u64 {
        smallest.max(self.orders() / BLOCKS_PER_MONTH)
    }

    /// Returns the same blocks with the orders counted anew. `places` are those of the month, oldest first.
    pub(super) fn recounted(&self, places: &[Place]) -> Self {
        let before = |start: Place| places.partition_point(|place| *place < start);
        let ends = self.blocks.iter().skip(1).map(|block| before(block.start)).chain([places.len()]);
        let mut counted = 0;
        let blocks = self.blocks.iter().zip(ends).map(|(block, end)| {
            let begin = std::mem::replace(&mut counted, end);
            Block { start: block.start, orders: (end - begin) as u64 }
        });
        Self { blocks: blocks.collect() }
    }

    pub(super) fn insert(&mut self, place: Place) {
        let block = self.block_of(place);
        self.blocks[block].orders += 1;
    }

    /// Inserts what the summary counts beyond these marks. Returns `false`, and changes nothing, if its recent inserts
    /// do not name all of that, or if the marks are ahead of the summary.
    pub(super) fn catch_up(&mut self, summary: &Summary, month: &str) -> bool {
        let missing = summary.orders_in(month).checked_sub(self.orders());
        let Some(missing) = missing.and_then(|missing| usize::try_from(missing).ok()) else { return false };
        let recent = summary.recent.iter().rev().filter(|position| position.starts_with(month));
        let places: Vec<Place> = recent.take(missing).filter_map(|position| Place::parse(position)).collect();
        if places.len() < missing {
            return false;
        }
        for place in places {
            self.insert(place);
        }
        true
    }

    /// Skips blocks that hold only orders to skip. Reading begins in this month.
    pub(super) fn narrow(&self, mut start: Start) -> Start {
        for block in self.blocks.iter().rev() {
            let orders = usize::try_from(block.orders).unwrap_or(usize::MAX);
            if start.skip < orders.max(1) {
                break;
            }
            start.skip -= orders;
            start.below = Some(block.start.to_string());
        }
        start
    }

    /// Returns the block to cut before `place` is inserted: the one that holds the place if it is full, or else the
    /// newest that is too large.
    pub(super) fn too_large(&self, month: &str, place: Place, smallest: u64) -> Option<Cut> {
        let max = self.max_block_orders(smallest);
        let own = self.block_of(place);
        let is_full = self.blocks[own].orders >= max;
        let block = if is_full { own } else { self.newest_above(max)? };
        let half = self.blocks[block].orders.min(2 * max) / 2;
        Some(self.cut_of(month, block, max, half.max(1)))
    }

    /// Cuts a block. `newest` are its newest orders, newest first, and `inserted` the places to insert.
    ///
    /// If an order to insert is the newest of the month, a block begins with it, and the full one stays as it is.
    /// Otherwise the orders read move to new blocks, all but the last.
    pub(super) fn cut(&mut self, cut: &Cut, newest: &[Place], inserted: &[Place]) {
        let Some((_, moved)) = newest.split_last() else { return };
        let at = cut.block;
        let appended = inserted.iter().filter(|place| **place > newest[0]).min();
        if let (Some(place), true) = (appended, at + 1 == self.blocks.len()) {
            self.blocks.push(Block { start: Place::between(newest[0], *place), orders: 0 });
            return;
        }
        let Some(left) = self.blocks[at].orders.checked_sub(moved.len() as u64) else { return };
        self.blocks[at].orders = left;
        let mut end = 0;
        for part in moved.chunks(cut.block_orders) {
            end += part.len();
            let start = Place::between(newest[end], newest[end - 1]);
            self.blocks.insert(at + 1, Block { start, orders: part.len() as u64 });
        }
    }

    /// Adds the marks to the key of their row.
    pub(super) fn to_row(&self, mut row: Row) -> Result<Row, StoreError> {
        row.insert(table::ORDERS.to_owned(), n(self.orders()));
        row.insert(table::MARKS.to_owned(), b(self.pack()?));
        Ok(row)
    }

    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        Self::unpack(Attributes(row).bytes(table::MARKS).ok_or_else(|| StoreError::corrupt(table::MARKS))?)
    }

    /// Packs the marks. A mark of a large month takes about seven bytes.
    fn pack(&self) -> Result<Vec<u8>, StoreError> {
        let mut before = 0;
        let blocks: Vec<PackedBlock> = self
            .blocks
            .iter()
            .map(|block| {
                let millis = block.start.at.millis();
                let since = millis - std::mem::replace(&mut before, millis);
                (since, block.start.id, block.orders)
            })
            .collect();
        Ok(postcard::to_extend(&blocks, vec![PACKED.writes])?)
    }

    fn unpack(data: &[u8]) -> Result<Self, StoreError> {
        let (_, packed) = PACKED.split(data)?;
        let packed: Vec<PackedBlock> = postcard::from_bytes(packed).map_err(|error| PACKED.corrupt(&error))?;
        let mut millis = 0_i64;
        let blocks = packed.into_iter().map(|(since, id, orders)| {
            millis = millis.saturating_add(since);
            Block { start: Place { at: Timestamp::from_millis(millis), id }, orders }
        });
        let blocks: Vec<Block> = blocks.collect();
        let is_sound = blocks.first().is_some_and(|block| block.start == Place::first())
            && blocks.is_sorted_by(|a, b| a.start < b.start);
        if is_sound { Ok(Self { blocks }) } else { Err(PACKED.corrupt(&"its blocks are out of order")) }
    }

    fn newest_above(&self, orders: u64) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.orders > orders)
    }

    fn cut_of(&self, month: &str, block: usize, block_orders: u64, moved: u64) -> Cut {
        let as_usize = |orders: u64| usize::try_from(orders).unwrap_or(usize::MAX);
        let next = self.blocks.get(block + 1);
        Cut {
            block,
            from: self.blocks[block].start.to_string().max(month.to_owned()),
            // `.` sorts behind the `-` that follows the month in a position.
            below: next.map_or_else(|| format!("{month}."), |next| next.start.to_string()),
            read: as_usize(moved).saturating_add(1),
            block_orders: as_usize(block_orders).max(1),
        }
    }

    /// Returns the block that holds a place. The first one begins before every place.
    fn block_of(&self, place: Place) -> usize {
        self.blocks.partition_point(|block| block.start <= place).saturating_sub(1)
    }
}

/// The format of packed marks. Postcard is positional: the order of the parts of a block is part of it.
const PACKED: Format = Format::first("order marks");

/// The milliseconds from the start of the block before (from 1970 for the first one), the id of the order at which the
/// block starts unless it starts with a time, and its number of orders.
type PackedBlock = (i64, Option<OrderId>, u64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    const MONTH: &str = "2026-11";
    /// How many orders a block may hold here.
    const BLOCK: u64 = 4;

    /// An order's place in the month. Many orders share a minute.
    fn place(minute: u8, id: u8) -> Place {
        let at: Timestamp = format!("2026-11-20T10:{:02}:00Z", minute % 60).parse().unwrap();
        Place::from_order(at, Uuid::from_u128(id.into()).into())
    }

    /// Places, each once, in the order in which they are inserted.
    fn history() -> impl Strategy<Value = Vec<Place>> {
        let places = prop::collection::vec((0u8..60, any::<u8>()), 0..120);
        places.prop_map(|places| {
            let mut places: Vec<Place> = places.into_iter().map(|(minute, id)| place(minute, id)).collect();
            let mut seen = std::collections::BTreeSet::new();
            places.retain(|place| seen.insert(*place));
            places
        })
    }

    /// Inserts an order as the service does. `stored` are the orders that are there.
    fn insert(marks: &mut Marks, stored: &[Place], place: Place) {
        if let Some(cut) = marks.too_large(MONTH, place, BLOCK) {
            let is_inside =
                |place: &Place| (cut.from.as_str()..cut.below.as_str()).contains(&place.to_string().as_str());
            let mut newest: Vec<Place> = stored.iter().copied().filter(is_inside).collect();
            newest.sort_unstable_by(|a, b| b.cmp(a));
            newest.truncate(cut.read);
            marks.cut(&cut, &newest, &[place]);
        }
        marks.insert(place);
    }

    /// Asserts that each block holds what it says.
    fn assert_exact(marks: &Marks, stored: &[Place]) {
        for (number, block) in marks.blocks.iter().enumerate() {
            let next = marks.blocks.get(number + 1).map(|next| next.start);
            let inside = stored.iter().filter(|place| **place >= block.start && next.is_none_or(|next| **place < next));
            assert_eq!(block.orders, inside.count() as u64, "block {number} of {marks:?}");
        }
    }

    fn summary(places: &[Place]) -> Summary {
        let mut summary = Summary::default();
        for place in places {
            summary.insert(place.at.month(), place.to_string());
        }
        summary
    }

    fn start(skip: usize) -> Start {
        Start { below: None, skip, month: Some(MONTH.to_owned()) }
    }

    proptest! {
        #[test]
        fn counting_anew_finds_what_inserts_have_counted(history in history(), too_many in 0u64..9) {
            let mut marks = Marks::coarse(0);
            for (number, place) in history.iter().enumerate() {
                insert(&mut marks, &history[..number], *place);
            }
            let mut oldest_first = history;
            oldest_first.sort_unstable();
            let mut wrong = marks.clone();
            for block in &mut wrong.blocks {
                block.orders += too_many;
            }
            prop_assert_eq!(wrong.recounted(&oldest_first), marks);
        }

        #[test]
        fn any_history_is_counted_exactly_and_leaves_few_orders_to_skip(history in history(), coarse in 0usize..60) {
            let coarse = coarse.min(history.len());
            let mut marks = Marks::coarse(coarse as u64);
            for (number, place) in history.iter().enumerate().skip(coarse) {
                insert(&mut marks, &history[..number], *place);
                assert_exact(&marks, &history[..=number]);
            }
            let mut newest_first = history.clone();
            newest_first.sort_unstable_by(|a, b| b.cmp(a));
            for skip in 0..history.len() {
                let start = marks.narrow(start(skip));
                let is_left = |place: &&Place| start.below.as_ref().is_none_or(|below| place.to_string() < *below);
                let left: Vec<&Place> = newest_first.iter().filter(is_left).skip(start.skip).collect();
                prop_assert_eq!(left, newest_first.iter().skip(skip).collect::<Vec<_>>());
                prop_assert!(coarse as u64 > BLOCK || start.skip as u64 <= BLOCK, "{skip} of {marks:?}");
            }
            prop_assert_eq!(Marks::unpack(&marks.pack().unwrap()).unwrap(), marks);
        }

        #[test]
        fn marks_that_are_made_of_all_orders_are_exact_and_fine(history in history()) {
            let mut oldest_first = history.clone();
            oldest_first.sort_unstable();
            let marks = Marks::of(&oldest_first, BLOCK);
            assert_exact(&marks, &history);
            prop_assert!(!marks.is_too_coarse(BLOCK), "{marks:?}");
            prop_assert_eq!(Marks::unpack(&marks.pack().unwrap()).unwrap(), marks);
        }

        #[test]
        fn marks_catch_up_with_the_recent_inserts_or_not_at_all(history in history(), behind in 0usize..20) {
            let known = history.len().saturating_sub(behind);
            let mut marks = Marks::coarse(0);
            for (number, place) in history[..known].iter().enumerate() {
                insert(&mut marks, &history[..number], *place);
            }
            let unchanged = marks.clone();
            let summary = summary(&history);
            if marks.catch_up(&summary, MONTH) {
                assert_exact(&marks, &history);
            } else {
                prop_assert!(history.len() - known > summary.recent.len());
                prop_assert_eq!(&marks, &unchanged);
            }
            let current = Marks::as_of(Some(unchanged), &summary, MONTH);
            assert_exact(&current, &history);
        }
    }

    #[test]
    fn orders_in_the_order_of_their_times_fill_every_block() {
        let places: Vec<Place> = (0..40).map(|minute| place(minute, 1)).collect();
        let mut marks = Marks::coarse(0);
        for (number, place) in places.iter().enumerate() {
            insert(&mut marks, &places[..number], *place);
        }
        assert!(marks.blocks.iter().all(|block| block.orders == BLOCK), "{marks:?}");
    }

    #[test]
    fn a_month_that_had_no_marks_gets_them_insert_by_insert() {
        let places: Vec<Place> = (0..60).map(|minute| place(minute, 1)).collect();
        let mut marks = Marks::coarse(40);
        for (number, place) in places.iter().enumerate().skip(40) {
            insert(&mut marks, &places[..number], *place);
        }
        assert!(marks.blocks.iter().all(|block| block.orders <= BLOCK), "{marks:?}");
    }

    #[test]
    fn marks_that_are_ahead_of_a_summary_do_not_describe_it() {
        let mut marks = Marks::coarse(2);
        assert!(!marks.catch_up(&summary(&[place(1, 1)]), MONTH));
        assert_eq!(Marks::as_of(Some(marks), &summary(&[place(1, 1)]), MONTH), Marks::coarse(1));
    }

    #[test]
    fn marks_of_a_large_month_stay_small() {
        let start = |n: i64| Place { at: Timestamp::from_millis(1_793_491_200_000 + n * 3_700_000), id: None };
        let mut marks = Marks::coarse(140);
        marks.blocks.extend((1..715).map(|n| Block { start: start(n), orders: 140 }));
        assert_eq!((marks.orders(), marks.max_block_orders(128)), (100_100, 195));
        let bytes = marks.pack().unwrap().len();
        assert!(bytes < 6_000, "{bytes} bytes");
        assert_eq!(Marks::unpack(&marks.pack().unwrap()).unwrap(), marks);
    }

    #[test]
    fn marks_of_a_newer_layout_and_blocks_out_of_order_are_refused() {
        let newer = Marks::unpack(&[PACKED.reads + 1]).unwrap_err().to_string();
        assert_eq!(newer, "unreadable row: order marks: layout 2, written by a newer release");
        let packed = postcard::to_extend(&Vec::<PackedBlock>::from([(0, None, 1)]), vec![PACKED.writes]).unwrap();
        let refused = Marks::unpack(&packed).unwrap_err().to_string();
        assert_eq!(refused, "unreadable row: order marks: its blocks are out of order");
    }
}
