use super::*;
use proptest::prelude::*;
use uuid::Uuid;

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
        let is_inside = |place: &Place| (cut.from.as_str()..cut.below.as_str()).contains(&place.to_string().as_str());
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
