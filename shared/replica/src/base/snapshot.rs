//! A whole stream, as it was read.

use std::collections::{HashMap, HashSet};

use common::clock::Moment;
use common::timestamp::Timestamp;
use market::{Batch, Change, LogPosition};

use super::columns::{Columnar, Columns};
use super::delta::Delta;

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
