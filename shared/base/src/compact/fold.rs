//! Folds the deltas of a base into a new base, part by part. Both are in the same order, so a fold holds the deltas and
//! a few parts in memory, however large the base is. If the deltas do not fit into the buffer, the newer ones stay
//! beside the new base, and the next run folds them.

use futures_util::{StreamExt, stream};
use market::{Manifest, Standing};
use platform::store::StoreError;

use super::overlay::Overlay;
use super::parts::{PartWriter, RunObjects};
use super::sort::word_bytes;
use super::spans::LastWords;
use super::{Compacted, Compaction, run_id};
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
        let deltas = base.delta_refs[folded..].to_vec();
        let folded_to = if deltas.is_empty() { base.end } else { base.delta_refs[folded - 1].end };
        let manifest = Manifest {
            generation,
            base: folded_to,
            end: base.end,
            records,
            written_at: now,
            scanned_at: base.scanned_at,
            parts,
            deltas,
        };
        let written = Compacted::Written { records, parts: manifest.parts.len(), from_entities: false };
        let is_put = self.log.put_manifest(&manifest, standing).await?;
        Ok(if is_put { written } else { Compacted::Overtaken })
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
