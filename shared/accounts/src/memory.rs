//! What an instance remembers of users' orders, so that it knows where a page begins before it reads anything.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lru::LruCache;

use super::marks::Marks;
use super::summary::{Start, Summary};
use common::ids::UserId;

/// The most users whose summaries an instance remembers. For one more it forgets the user who asked least recently.
const MAX_USERS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// The most months whose marks it remembers. The marks of a month of 100,000 orders take about 30 KB.
const MAX_MONTHS: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

pub(super) struct Memory {
    summaries: Mutex<LruCache<UserId, Summary>>,
    /// The marks of months, each with the era of the summary that they belong to.
    marks: Mutex<LruCache<(UserId, u64, String), Marks>>,
    /// How many orders a block of a month may hold.
    block_orders: u64,
}

/// Whether marks could save reading over orders that lie before the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marking {
    /// No: few are read over.
    Fine,
    /// The marks that this instance remembers do not, but there may be finer ones.
    Coarse,
    /// This instance remembers no marks that hold.
    Unknown,
}

impl Memory {
    pub(super) fn new(block_orders: u64) -> Self {
        Self {
            summaries: Mutex::new(LruCache::sparse(MAX_USERS)),
            marks: Mutex::new(LruCache::sparse(MAX_MONTHS)),
            block_orders,
        }
    }

    pub(super) fn summary(&self, user: UserId) -> Option<Summary> {
        lock(&self.summaries).get(&user).cloned()
    }

    /// Remembers a summary, unless a newer one of its era is remembered.
    pub(super) fn remember(&self, user: UserId, summary: Summary) {
        let mut summaries = lock(&self.summaries);
        let known = summaries.peek(&user).filter(|known| known.era == summary.era);
        let is_newer = known.is_none_or(|known| known.total <= summary.total);
        if is_newer {
            summaries.put(user, summary);
        }
    }

    /// Remembers the marks of a month, which were read with this summary.
    pub(super) fn remember_marks(&self, user: UserId, summary: &Summary, month: &str, marks: Marks) {
        lock(&self.marks).put((user, summary.era, month.to_owned()), marks);
    }

    /// Finds the order that has `skip` newer ones, by a summary and by the marks that this instance remembers. They
    /// are brought up to the summary if its recent inserts are all that they lack.
    pub(super) fn start(&self, user: UserId, summary: &Summary, skip: usize) -> (Start, Marking) {
        let start = summary.start(skip);
        let Some(month) = start.month.clone() else { return (start, Marking::Fine) };
        if start.skip as u64 <= self.block_orders {
            return (start, Marking::Fine);
        }
        let mut remembered = lock(&self.marks);
        let Some(marks) = remembered.get_mut(&(user, summary.era, month.clone())) else {
            return (start, Marking::Unknown);
        };
        if !marks.catch_up(summary, &month) {
            return (start, Marking::Unknown);
        }
        let start = marks.narrow(start);
        let is_fine = start.skip as u64 <= marks.max_block_orders(self.block_orders);
        (start, if is_fine { Marking::Fine } else { Marking::Coarse })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
