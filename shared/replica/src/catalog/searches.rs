//! The counts of the latest searches. Whoever walks over the pages of a search asks for the same text again and again,
//! and only the first time all blocks have to be searched for it.
//!
//! Each search has a number. Each block keeps its counts of the last few numbers, and forgets them when it changes. So a
//! count is always that of the block as it is.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use super::kind::KindNumber;

/// How many searches are known. Each takes 8 bytes of each block.
const KEPT: usize = 8;
/// A count takes the lowest bits of a kept number, and the number of its search the others.
const COUNT_BITS: u32 = 16;

/// The latest searches.
#[derive(Default)]
pub(super) struct Searches {
    /// The newest first.
    recent: VecDeque<(Box<str>, Option<KindNumber>)>,
    /// The number of the newest. The first one has the number 1.
    newest: u64,
}

impl Searches {
    /// Returns the number of a search: the one that it has already, or else the next.
    pub(super) fn number(&mut self, needle: &str, kind: Option<KindNumber>) -> u64 {
        let known = self.recent.iter().position(|(known, of_kind)| **known == *needle && *of_kind == kind);
        if let Some(before) = known {
            return self.newest - before as u64;
        }
        self.recent.truncate(KEPT - 1);
        self.recent.push_front((needle.into(), kind));
        self.newest += 1;
        self.newest
    }
}

/// A block's counts of the latest searches.
#[derive(Default)]
pub(super) struct KnownCounts([AtomicU64; KEPT]);

impl KnownCounts {
    pub(super) fn get(&self, search: u64) -> Option<usize> {
        let kept = self.place(search).load(Ordering::Relaxed);
        (kept >> COUNT_BITS == search).then_some((kept & ((1 << COUNT_BITS) - 1)) as usize)
    }

    /// Keeps a count in place of that of an older search.
    pub(super) fn set(&self, search: u64, count: usize) {
        self.place(search).store(search << COUNT_BITS | count as u64, Ordering::Relaxed);
    }

    fn place(&self, search: u64) -> &AtomicU64 {
        &self.0[search as usize % KEPT]
    }
}
