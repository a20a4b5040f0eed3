//! Folds the deltas of a base into a new base, part by part. Both are in the same order, so a fold holds the deltas and
//! a few parts in memory, however large the base is. If the deltas do not fit into the buffer, the newer ones stay
//! beside the new base, and the next run folds them.

use common::store::StoreError;
use futures_util::{StreamExt, stream};
use market::{DeltaRef, Manifest, ObjectRef, Standing};

use super::overlay::Overlay;
use super::parts::{PartWriter, RunObjects};
use super::sort::word_bytes;
use super::spans::LastWords;
use super::{Compacted, Compaction, MAX_PUTS, run_id};
use crate::base::columns::{Columnar, Columns};
use crate::base::delta::Delta;
use crate::base::part;

/// How many parts are read ahead.
const READ_AHEAD: usize = 2;

impl<R: Columnar> Compaction<R> {
    pub(super) async fn fold(&self, base: &Manifest, standing: &Standing) -> Result<Compacted, StoreError> {
        let (now, (last, folded)) = (self.clock.now(), self.oldest_words(base).await?);
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
        let folded_to = if folded < base.deltas.len() { base.deltas[folded - 1].end } else { base.end };
        let (end, written_at, scanned_at, deltas) = (folded_to, now, base.scanned_at, Vec::new());
        let manifest = Manifest { generation, base: folded_to, end, records, written_at, scanned_at, parts, deltas };
        let written = Compacted::Written { records, parts: manifest.parts.len(), from_entities: false };
        Ok(if self.put_folded(manifest, base, standing).await? { written } else { Compacted::Overtaken })
    }

    /// Puts the manifest of a folded base, and takes over the deltas that were not folded, also those that other runs
    /// have written meanwhile. Returns false if another run has put another base.
    ///
    /// A delta may begin before the position of the folded base, if it has taken in others. That does no harm: what it
    /// says about a record is either newer, or what the base says too.
    async fn put_folded(&self, mut folded: Manifest, base: &Manifest, seen: &Standing) -> Result<bool, StoreError> {
        let mut later = None;
        for _ in 0..MAX_PUTS {
            let present = later.as_ref().unwrap_or(seen);
            let Some(Ok(manifest)) = &present.manifest else { return Ok(false) };
            if !has_same_parts(manifest, base) {
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

    /// Returns the last change to each record of the oldest deltas, as many as fit into the buffer and at least one,
    /// and how many deltas these are. Deltas that hold a stretch of the log together stay together.
    async fn oldest_words(&self, base: &Manifest) -> Result<(LastWords<R>, usize), StoreError> {
        let (mut last, mut bytes) = (LastWords::<R>::new(), 0);
        for (number, delta) in base.deltas.iter().enumerate() {
            let begins = number > 0 && delta.end != base.deltas[number - 1].end;
            if begins && bytes >= self.limits.buffer_bytes {
                return Ok((last, number));
            }
            for (id, record) in self.words(&delta.object).await? {
                bytes += word_bytes(record.as_ref());
                last.insert(id, record);
            }
        }
        Ok((last, base.deltas.len()))
    }

    /// Returns the last change to each record of some deltas, which come oldest first.
    pub(super) async fn last_words(&self, deltas: &[DeltaRef]) -> Result<LastWords<R>, StoreError> {
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

/// Returns whether only the deltas of two bases differ.
fn has_same_parts(one: &Manifest, other: &Manifest) -> bool {
    let hashes = |base: &Manifest| base.parts.iter().map(|part| part.hash).collect::<Vec<_>>();
    one.scanned_at == other.scanned_at && hashes(one) == hashes(other)
}
