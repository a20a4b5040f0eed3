//! Folds the deltas of a base into a new base, part by part. Both are in the same order, so a fold holds the deltas and
//! a few parts in memory, however large the base is. If the deltas do not fit into the buffer, the newer ones stay
//! beside the new base, and the next run folds them.

use futures_util::{StreamExt, stream};
use market::{DeltaRef, Manifest, Standing};
use platform::store::StoreError;

use super::overlay::Overlay;
use super::parts::{PartWriter, RunObjects};
use super::sort::word_bytes;
use super::spans::LastWords;
use super::{Compacted, Compaction, MAX_PUTS, run_id};
use crate::chunk;
use crate::columns::{Columnar, Columns};
use crate::delta::Delta;
use crate::source::{Base, Piece};

/// How many parts are read ahead.
const READ_AHEAD: usize = 2;

impl<R: Columnar> Compaction<R> {
    pub(super) async fn fold(&self, base: &Base, standing: &Standing) -> Result<Compacted, StoreError> {
        let (now, (last, folded)) = (self.clock.now(), self.oldest_words(base).await?);
        let generation = run_id(now)?;
        let writer = PartWriter::new(RunObjects::new(&self.objects, R::STREAM, generation));
        let mut overlay = Overlay::new(&last, writer);
        let parts: Vec<_> = base.parts.iter().map(|piece| self.part(piece)).collect();
        let mut parts = stream::iter(parts).buffered(READ_AHEAD);
        while let Some(part) = parts.next().await {
            for record in part?.records()? {
                overlay.push(record).await?;
            }
        }
        let (parts, records) = overlay.finish().await?;
        let folded_to = if folded < base.deltas.len() { base.delta_refs[folded - 1].end } else { base.end };
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
    async fn put_folded(&self, mut folded: Manifest, base: &Base, seen: &Standing) -> Result<bool, StoreError> {
        let mut later = None;
        for _ in 0..MAX_PUTS {
            let present = later.as_ref().unwrap_or(seen);
            match &present.manifest {
                Some(Ok(manifest)) if Base::from_manifest(manifest).has_parts_of(base) => {
                    let is_left = |delta: &&DeltaRef| delta.end.seq > folded.base.seq;
                    folded.deltas = manifest.deltas.iter().filter(is_left).cloned().collect();
                    folded.end = manifest.end;
                }
                // The base of the release before is folded into the first one of the bucket.
                None if seen.manifest.is_none() => {}
                _ => return Ok(false),
            }
            if self.log.put_manifest(&folded, present).await? {
                return Ok(true);
            }
            later = Some(self.standing().await?);
        }
        Ok(false)
    }

    /// Returns the last change to each record of the oldest deltas, as many as fit into the buffer and at least one,
    /// and how many deltas these are. Deltas that hold a stretch of the log together stay together.
    async fn oldest_words(&self, base: &Base) -> Result<(LastWords<R>, usize), StoreError> {
        let (mut last, mut bytes) = (LastWords::<R>::new(), 0);
        for (number, piece) in base.deltas.iter().enumerate() {
            let begins = number > 0 && base.delta_refs[number].end != base.delta_refs[number - 1].end;
            if begins && bytes >= self.limits.buffer_bytes {
                return Ok((last, number));
            }
            for (id, record) in self.words(piece).await? {
                bytes += word_bytes(record.as_ref());
                last.insert(id, record);
            }
        }
        Ok((last, base.deltas.len()))
    }

    /// Returns the last change to each record of some deltas, which come oldest first.
    pub(super) async fn last_words(&self, deltas: &[Piece]) -> Result<LastWords<R>, StoreError> {
        let mut last = LastWords::<R>::new();
        for piece in deltas {
            last.extend(self.words(piece).await?);
        }
        Ok(last)
    }

    /// Reads a delta: each record that it names, as it is now, or `None` if it is gone.
    async fn words(&self, piece: &Piece) -> Result<Vec<(R::Id, Option<R>)>, StoreError> {
        let Delta { gone, put } = Delta::<R>::unpack(&piece.read(&self.log, &self.objects).await?)?;
        let put = put.records()?.into_iter().map(|record| (record.id(), Some(record)));
        Ok(gone.into_iter().map(|id| (id, None)).chain(put).collect())
    }

    pub(super) async fn part(&self, piece: &Piece) -> Result<R::Columns, StoreError> {
        chunk::unpack::<R>(&piece.read(&self.log, &self.objects).await?)
    }
}
