//! Takes spans of the log into deltas, and folds deltas into a new base, part by part.
//!
//! Base and deltas are in the same order, so a fold holds the deltas and a few parts in memory, however large the base
//! is. The deltas have at most a tenth of its records, unless folds have failed.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use uuid::Uuid;

use super::writing::{Overlay, PartWriter, RunObjects};
use super::{Compacted, Compaction, MAX_PUTS, run_id};
use crate::base::columns::{Columnar, Columns};
use crate::base::part::{self, Delta};
use crate::base::snapshot::{LogTail, end_of, last_changes};
use common::store::StoreError;
use market::{DeltaRef, LogPosition, Manifest, ObjectRef, Record, Standing};

/// The most pages of the log in one delta. DynamoDB's pages have at most 1 MB.
const MAX_PAGES: usize = 20;
/// Fewer changes than this fit in one page of the log, whatever their size.
const SMALL_TAIL: u64 = 100;
/// How many parts are read ahead.
const READ_AHEAD: usize = 2;

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
        // If a fold is due, the deltas go anyway.
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

    pub(super) async fn fold(&self, base: &Manifest, standing: &Standing) -> Result<Compacted, StoreError> {
        let (now, last) = (self.clock.now(), self.last_words(&base.deltas).await?);
        let generation = run_id(now)?;
        let writer = PartWriter::new(RunObjects::new(&self.objects, R::STREAM, generation));
        let mut overlay = Overlay::new(&last, writer);
        let parts: Vec<_> = base.parts.iter().map(|part| self.part(part)).collect();
        let mut parts = stream::iter(parts).buffered(READ_AHEAD);
        while let Some(part) = parts.next().await {
            for record in part?.records()? {
                overlay.push(record).await?;
            }
        }
        let (parts, records) = overlay.finish().await?;
        let (end, written_at, scanned_at, deltas) = (base.end, now, base.scanned_at, Vec::new());
        let manifest = Manifest { generation, base: end, end, records, written_at, scanned_at, parts, deltas };
        let written = Compacted::Written { records, parts: manifest.parts.len(), from_entities: false };
        Ok(if self.put_folded(manifest, base, standing).await? { written } else { Compacted::Overtaken })
    }

    /// Puts the manifest of a folded base, and takes over the deltas that other runs have written meanwhile. Returns false
    /// if another run has put another base.
    ///
    /// A delta may begin before the position of the folded base, if it has taken in others. That does no harm: what it
    /// says about a record is either newer, or what the base says too.
    async fn put_folded(&self, mut folded: Manifest, base: &Manifest, seen: &Standing) -> Result<bool, StoreError> {
        let mut later = None;
        for _ in 0..MAX_PUTS {
            let present = later.as_ref().unwrap_or(seen);
            let Some(Ok(manifest)) = &present.manifest else { return Ok(false) };
            if !is_same_base(manifest, base) {
                return Ok(false);
            }
            let is_left = |delta: &&DeltaRef| delta.end.seq > folded.base.seq;
            folded.deltas = manifest.deltas.iter().filter(is_left).cloned().collect();
            folded.end = manifest.end;
            if self.log.put_manifest(&folded, present).await? {
                return Ok(true);
            }
            later = Some(self.standing().await?);
        }
        Ok(false)
    }

    /// Returns the last change to each record of some deltas, which come oldest first.
    async fn last_words(&self, deltas: &[DeltaRef]) -> Result<LastWords<R>, StoreError> {
        let mut last = LastWords::<R>::new();
        for delta in deltas {
            last.extend(self.words(&delta.object).await?);
        }
        Ok(last)
    }

    /// Reads a delta: each record that it names, as it is now, or `None` if it is gone.
    async fn words(&self, delta: &ObjectRef) -> Result<Vec<(R::Id, Option<R>)>, StoreError> {
        let Delta { gone, put } = Delta::<R>::unpack(&part::read(delta, &self.objects).await?)?;
        let put = put.records()?.into_iter().map(|record| (record.id(), Some(record)));
        Ok(gone.into_iter().map(|id| (id, None)).chain(put).collect())
    }

    pub(super) async fn part(&self, part: &ObjectRef) -> Result<R::Columns, StoreError> {
        part::unpack::<R>(&part::read(part, &self.objects).await?)
    }
}

fn gap() -> StoreError {
    StoreError::corrupt("the log behind the base has a gap")
}

/// Returns whether only the deltas of two manifests differ. The content of the parts does not tell: that of a later base
/// may be the same, if what changed has changed back.
fn is_same_base(one: &Manifest, other: &Manifest) -> bool {
    let base = |manifest: &Manifest| (manifest.base, manifest.written_at, manifest.scanned_at);
    base(one) == base(other) && one.parts == other.parts
}
