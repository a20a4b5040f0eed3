use super::*;

const MONTH: &str = "2026-11";
/// More orders than a summary lists by position.
const MAX_OTHERS: u64 = 10;

/// A read beside a transaction that inserts several orders.
#[derive(Debug)]
struct HalfSeen {
    /// How many orders there were before the transaction.
    before: u64,
    /// How many it inserts.
    inserts: u64,
    /// Which of them the read saw, the first of them as the lowest bit.
    seen: u32,
    /// How many more were inserted until the summary was read.
    later: u64,
    known: u64,
}

impl HalfSeen {
    /// Returns every such read of few orders.
    fn all() -> impl Iterator<Item = Self> {
        let counts = (0..=MAX_OTHERS).flat_map(|before| (0..=MAX_OTHERS).map(move |later| (before, later)));
        counts.flat_map(|(before, later)| {
            (1..=INSERTS_PER_TRANSACTION as u64).flat_map(move |inserts| {
                (0..1_u32 << inserts).flat_map(move |seen| {
                    [0, before, before + inserts].map(|known| Self { before, inserts, seen, later, known })
                })
            })
        })
    }

    fn is_seen(&self, ordinal: u64) -> bool {
        ordinal <= self.before
            || (ordinal <= self.before + self.inserts && self.seen & (1 << (ordinal - self.before - 1)) != 0)
    }

    fn summary(&self) -> Summary {
        let mut summary = Summary::default();
        for ordinal in 1..=self.before + self.inserts + self.later {
            summary.insert(MONTH.to_owned(), position(ordinal));
        }
        summary
    }

    fn read(&self) -> ReadOrders {
        let seen = (1..=self.before + self.inserts).filter(|ordinal| self.is_seen(*ordinal));
        let row = |ordinal| OrderRow { position: position(ordinal), ordinal, data: Vec::new() };
        ReadOrders { orders: seen.map(row).collect(), complete: true }
    }
}

fn position(ordinal: u64) -> String {
    format!("{MONTH}-{ordinal:02}")
}

#[test]
fn a_read_that_covers_a_summary_missed_only_inserts_that_the_summary_lists() {
    for half in HalfSeen::all() {
        let (summary, read) = (half.summary(), half.read());
        let missed = (1..=summary.total).filter(|ordinal| !half.is_seen(*ordinal));
        let is_listed = |ordinal| summary.recent.contains(&position(ordinal));
        let unlisted: Vec<u64> = missed.filter(|ordinal| !is_listed(*ordinal)).collect();
        assert!(unlisted.is_empty() || !read.covers(&summary, half.known), "{half:?} misses {unlisted:?}");
    }
}

#[test]
fn a_read_beside_one_transaction_of_the_most_inserts_still_covers_the_summary() {
    let most = INSERTS_PER_TRANSACTION as u64;
    for half in HalfSeen::all().filter(|half| half.later <= most) {
        let has_known = half.known == half.before + half.inserts;
        assert!(!has_known || half.read().covers(&half.summary(), half.known), "{half:?}");
    }
}
