//! Takes spans of the log into deltas, or into a base that is being made.

use std::collections::HashMap;

use common::store::StoreError;
use market::{DeltaRef, LogPosition, Manifest, Record, Standing};
use uuid::Uuid;

use super::parts::RunObjects;
use super::sort::word_bytes;
use super::{Compaction, run_id};
use crate::base::columns::Columnar;
use crate::base::delta::Delta;
use crate::base::snapshot::{end_of, last_changes};
use crate::base::tail::LogTail;

/// The most pages of the log in one delta. DynamoDB's pages have at most 1 MB.
const MAX_PAGES: usize = 20;
/// Fewer changes than this fit in one page of the log, whatever their size.
const SMALL_TAIL: u64 = 100;

/// The last change to each record: what it is now, or `None` if it is gone.
pub(super) type LastWords<R> = HashMap<<R as Record>::Id, Option<R>>;

impl<R: Columnar> Compaction<R> {
    /// Returns whether a delta is due. One is due before the log behind base and deltas gets longer than one page, so
    /// that a start reads at most two: those that came since the last run need the other.
    pub(super) async fn is_delta_due(&self, standing: &Standing) -> Result<bool, StoreError> {
        let (Some(Ok(manifest)), behind) = (&standing.manifest, standing.behind()) else { return Ok(false) };
        if behind > self.thresholds.min_changes || (behind > 0 && self.is_fold_due(manifest)) {
            return Ok(true);
        }
        Ok(behind > SMALL_TAIL && self.log.since_eventually(manifest.end.seq).await?.1)
    }

    /// Puts a delta beside the base. Returns false if another run has changed the manifest in the meantime.
    pub(super) async fn extend(&self, manifest: &Manifest, standing: &Standing) -> Result<bool, StoreError> {
        let (end, newest) = self.span(manifest.end, standing.head.seq).await?;
        // If a fold is due, there may be more deltas than memory holds, and they go anyway.
        let (mut deltas, last) = if manifest.deltas.len() < self.thresholds.max_deltas || self.is_fold_due(manifest) {
            (manifest.deltas.clone(), newest)
        } else {
            let mut last = self.last_words(&manifest.deltas).await?;
            last.extend(newest);
            (Vec::new(), last)
        };
        let generation = run_id(self.clock.now())?;
        deltas.append(&mut self.put_deltas(generation, last, end).await?);
        self.log.put_manifest(&Manifest { generation, end, deltas, ..manifest.clone() }, standing).await
    }

    /// Reads the log behind a position: up to `head` or a bit more, but not more than fits into one delta. Returns
    /// where it ends, and the last change to each record.
    pub(super) async fn span(
        &self,
        position: LogPosition,
        head: u64,
    ) -> Result<(LogPosition, LastWords<R>), StoreError> {
        let mut tail = LogTail::new(position.seq);
        if !tail.read(&self.log, head, MAX_PAGES).await? {
            return Err(gap());
        }
        let batches = tail.take();
        Ok((end_of(position, &batches), last_changes(batches)))
    }

    /// Reads the log behind a position, up to `head` or a bit more, but not more than fits into the buffer. Returns
    /// where it ends, and the last change to each record.
    pub(super) async fn first_span(
        &self,
        position: LogPosition,
        head: u64,
    ) -> Result<(LogPosition, LastWords<R>), StoreError> {
        let (mut tail, mut end, mut bytes) = (LogTail::new(position.seq), position, 0);
        let mut last = LastWords::<R>::new();
        while end.seq < head {
            if !tail.read(&self.log, head, MAX_PAGES).await? {
                return Err(gap());
            }
            for batch in tail.drain() {
                if bytes >= self.limits.buffer_bytes {
                    return Ok((end, last));
                }
                end = end_of::<R>(end, std::slice::from_ref(&batch));
                for (id, record) in last_changes::<R>(vec![batch]) {
                    bytes += word_bytes(record.as_ref());
                    last.insert(id, record);
                }
            }
        }
        Ok((end, last))
    }

    /// Returns the position of a sequence number before the head. If entries behind it are missing, returns the head.
    pub(super) async fn position_before(&self, seq: u64, head: LogPosition) -> Result<LogPosition, StoreError> {
        let (mut tail, mut end, mut between) = (LogTail::new(seq), seq, 0);
        while end < head.seq {
            if !tail.read(&self.log, head.seq, MAX_PAGES).await? {
                tracing::warn!(stream = R::STREAM, seq, ?head, "entries before the head of the log are missing");
                return Ok(head);
            }
            for (number, changes) in tail.drain() {
                end = number;
                between += if number <= head.seq { changes.len() as u64 } else { 0 };
            }
        }
        Ok(LogPosition { seq, changes: head.changes.saturating_sub(between) })
    }

    /// Puts deltas that end at a position.
    pub(super) async fn put_deltas(
        &self,
        generation: Uuid,
        last: LastWords<R>,
        end: LogPosition,
    ) -> Result<Vec<DeltaRef>, StoreError> {
        let mut objects = RunObjects::new(&self.objects, R::STREAM, generation);
        for packed in Delta::<R>::pack(last)? {
            objects.put(packed).await?;
        }
        Ok(objects.written().into_iter().map(|object| DeltaRef { object, end }).collect())
    }
}

fn gap() -> StoreError {
    StoreError::corrupt("the log behind the base has a gap")
}
