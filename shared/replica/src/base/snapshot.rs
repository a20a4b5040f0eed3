//! What was read of a stream: all of it as of a moment, and the log behind a base, which is read page by page.

use std::collections::{HashMap, HashSet};

use super::columns::{Columnar, Columns};
use super::part::Delta;
use common::clock::Moment;
use common::store::StoreError;
use common::timestamp::Timestamp;
use market::{Batch, Change, GapWatch, Log, LogPosition, Record, contiguous};

/// A stream's records as of a position in its log, the deltas up to a later one, and the log from there to its end.
pub struct Snapshot<R: Columnar> {
    /// The records. If they come from the entities, some may already be newer. The tail has those too.
    pub(super) records: Vec<R::Columns>,
    /// What came after the records, oldest first.
    pub(super) deltas: Vec<Delta<R>>,
    /// Where the tail begins.
    pub(super) position: LogPosition,
    /// The log from the position to its end.
    pub(super) tail: Vec<Batch<R>>,
    /// The snapshot holds every change that was committed before this moment.
    pub as_of: Moment,
    /// When the entities were last read for the base that the records come from. `None` if the records were read from
    /// the entities.
    pub(super) scanned_at: Option<Timestamp>,
}

impl<R: Columnar> Snapshot<R> {
    /// The position at the end of the log.
    pub fn end(&self) -> LogPosition {
        end_of(self.position, &self.tail)
    }

    /// Returns whether the records come from a base. If not, they were read from the entities.
    pub fn is_from_base(&self) -> bool {
        self.scanned_at.is_some()
    }

    /// Returns the records as of the end of the log. The last word about a record is in the tail, or else in the newest
    /// delta that names it, or else in the base.
    pub fn folded(self) -> Vec<R::Columns> {
        let Self { mut records, deltas, tail, .. } = self;
        let last = last_changes(tail);
        let mut decided: HashSet<R::Id> = last.keys().cloned().collect();
        let mut newer = vec![R::Columns::from_records(last.values().flatten())];
        for Delta { gone, mut put } in deltas.into_iter().rev() {
            put.retain(|id| decided.insert(id.clone()));
            decided.extend(gone);
            newer.push(put);
        }
        if !decided.is_empty() {
            for columns in &mut records {
                columns.retain(|id| !decided.contains(id));
            }
            records.append(&mut newer);
        }
        records
    }
}

/// Returns the position after batches that follow on a position.
pub(super) fn end_of<R: Columnar>(position: LogPosition, batches: &[Batch<R>]) -> LogPosition {
    let changes: usize = batches.iter().map(|(_, changes)| changes.len()).sum();
    LogPosition {
        seq: batches.last().map_or(position.seq, |(seq, _)| *seq),
        changes: position.changes + changes as u64,
    }
}

/// Returns the last change to each record of some batches: what it is now, or `None` if it is gone.
pub(super) fn last_changes<R: Columnar>(batches: Vec<Batch<R>>) -> HashMap<R::Id, Option<R>> {
    let changes = batches.into_iter().flat_map(|(_, changes)| changes);
    let named = changes.map(|change| match change {
        Change::Put(record) => (record.id(), Some(record)),
        Change::Remove(id) => (id, None),
    });
    named.collect()
}

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
            if strongly && !gap.bridge(log, &mut self.cursor, &mut self.batches).await? {
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
