//! A page of a stream's log, for those who keep a copy of their own.

use std::cmp::Ordering;

use common::clock::{Clock, Moment};
use common::store::StoreError;

use crate::log::contiguous;
use crate::{Batch, Log, Record};

/// The most changes on a page, which ends with a whole batch.
const MAX_CHANGES: usize = 1_000;
/// The most batches that are read first. If all are full, that takes 120 read units, for a fifth of what they have. If those
/// are small, and the next ones full, a page takes 275. The log has 3,000 a second, for all who follow it.
const FIRST_BATCHES: i32 = 50;

/// What follows on a position of the log.
#[derive(Debug, PartialEq)]
pub enum Changes<R: Record> {
    Page {
        batches: Vec<Batch<R>>,
        /// The position of the page's end, from which the next page goes on.
        position: u64,
        /// Whether the log may go on behind this page.
        more: bool,
    },
    /// The log no longer has what follows: it is kept for 28 days, and may begin anew with a base.
    Expired,
    /// The log ends before this position: at `head`.
    Beyond { head: u64 },
}

impl<R: Record> Log<R> {
    /// Reads the changes behind a position by one strongly consistent Query, and by a second one if the batches of the first
    /// are so small that there is room for more. Also returns when the first was sent.
    ///
    /// A Query may show a batch and not the one before it. The page ends before such a gap. If it would be empty, the
    /// missing batch is read by its number, which finds every batch that was committed.
    pub async fn changes(&self, after: u64, clock: &dyn Clock) -> Result<(Changes<R>, Moment), StoreError> {
        let as_of = Moment::now(clock);
        // Begins with the batch at the position itself, which shows that the log is that long.
        let query = self.behind(after.saturating_sub(1)).limit(FIRST_BATCHES);
        let (mut found, mut is_cut) = Self::page(query).await?;
        let is_there = after == 0 || found.first().is_some_and(|(seq, _)| *seq == after);
        found.retain(|(seq, _)| *seq > after);
        let (mut position, mut batches) = (after, Vec::new());
        let mut is_whole = contiguous(&mut position, found, &mut batches);
        // Without an answer the page ends here.
        if let Some(room) = room(&batches).filter(|_| is_whole && is_cut)
            && let Ok((found, is_cut_again)) = Self::page(self.behind(position).limit(room)).await
        {
            is_whole = contiguous(&mut position, found, &mut batches);
            is_cut = is_cut_again;
        }
        if !batches.is_empty() {
            let kept = fitting(&batches);
            let more = is_cut || !is_whole || kept < batches.len();
            batches.truncate(kept);
            let position = batches.last().map_or(after, |(seq, _)| *seq);
            return Ok((Changes::Page { batches, position, more }, as_of));
        }
        if is_whole && is_there {
            return Ok((Changes::Page { batches, position, more: false }, as_of));
        }
        Ok((self.changes_by_number(after).await?, as_of))
    }

    /// Answers if a Query shows neither what follows on a position nor that the position is the end. The head comes first:
    /// whatever it counts was committed before, so a batch that is not found then has expired.
    async fn changes_by_number(&self, after: u64) -> Result<Changes<R>, StoreError> {
        let head = self.head().await?;
        let following = match after.cmp(&head) {
            Ordering::Less => self.batch(after + 1).await?,
            Ordering::Equal => return Ok(Changes::Page { batches: Vec::new(), position: after, more: false }),
            Ordering::Greater => return Ok(Changes::Beyond { head }),
        };
        let page = following.map(|batch| Changes::Page { position: batch.0, batches: vec![batch], more: true });
        Ok(page.unwrap_or(Changes::Expired))
    }
}

/// Returns for how many more batches like these a page has room, if it has room for one.
fn room<R: Record>(batches: &[Batch<R>]) -> Option<i32> {
    let changes: usize = batches.iter().map(|(_, changes)| changes.len()).sum();
    let room = MAX_CHANGES.saturating_sub(changes) * batches.len() / changes.max(1);
    i32::try_from(room).ok().filter(|room| *room > 0)
}

/// Returns how many of the first batches fit on a page: all that have [`MAX_CHANGES`] together, and at least one.
fn fitting<R: Record>(batches: &[Batch<R>]) -> usize {
    let sizes = batches.iter().scan(0, |sum, (_, changes)| {
        *sum += changes.len();
        Some(*sum)
    });
    sizes.take_while(|sum| *sum <= MAX_CHANGES).count().max(1)
}
