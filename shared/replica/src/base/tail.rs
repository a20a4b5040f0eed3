//! The log behind a base, read page by page. Pages that were read stay, whatever fails afterwards.

use common::store::StoreError;
use market::{Batch, GapWatch, Log, Record, contiguous};

/// As much of the log as was read, without gaps.
pub(super) struct LogTail<R: Record> {
    start: u64,
    /// The last sequence number that was read.
    cursor: u64,
    batches: Vec<Batch<R>>,
}

impl<R: Record> LogTail<R> {
    pub(super) const fn new(start: u64) -> Self {
        Self { start, cursor: start, batches: Vec::new() }
    }

    /// Makes the tail begin behind another sequence number. Keeps the batches that still belong to it.
    pub(super) fn begin_at(&mut self, start: u64) {
        if start < self.start || start > self.cursor {
            *self = Self::new(start);
        }
        self.start = start;
        self.batches.retain(|(seq, _)| *seq > start);
    }

    /// Reads on until the tail reaches `head` or a bit more, but reads at most `pages` pages. Returns false if the log
    /// has a gap.
    ///
    /// The head is known already, so the cheaper, eventually consistent Query is right if it reaches the head. If it
    /// does not, a strongly consistent one reads the rest.
    pub(super) async fn read(&mut self, log: &Log<R>, head: u64, mut pages: usize) -> Result<bool, StoreError> {
        let (mut strongly, mut gap) = (false, GapWatch::default());
        while self.cursor < head && pages > 0 {
            pages -= 1;
            let (page, more) =
                if strongly { log.since(self.cursor).await? } else { log.since_eventually(self.cursor).await? };
            let whole = contiguous(&mut self.cursor, page, &mut self.batches);
            if self.cursor >= head || (whole && more) {
                continue;
            }
            if strongly && !gap.look_again().await {
                return Ok(false);
            }
            strongly = true;
        }
        Ok(true)
    }

    /// Takes the batches out. The tail goes on behind them.
    pub(super) fn drain(&mut self) -> Vec<Batch<R>> {
        self.start = self.cursor;
        std::mem::take(&mut self.batches)
    }

    /// Takes the batches out. The tail is empty afterwards.
    pub(super) fn take(&mut self) -> Vec<Batch<R>> {
        std::mem::replace(self, Self::new(0)).batches
    }
}
