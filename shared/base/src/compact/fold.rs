//! Folds the deltas of a base into a new base, part by part. Both are in the same order, so a fold holds the deltas and
//! a few parts in memory, however large the base is.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use market::{Manifest, Standing};
use platform::store::StoreError;

use super::overlay::Overlay;
use super::parts::{PartWriter, RunObjects};
use super::{Compacted, Compaction, run_id};
use crate::chunk;
use crate::columns::{Columnar, Columns};
use crate::delta::Delta;
use crate::source::{Base, Piece};

/// How many parts are read ahead.
const READ_AHEAD: usize = 2;

impl<R: Columnar> Compaction<R> {
    pub(super) async fn fold(&self, base: &Base, standing: &Standing) -> Result<Compacted, StoreError> {
        let (now, last) = (self.clock.now(), self.last_words(&base.deltas).await?);
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
        let (end, scanned_at) = (base.end, base.scanned_at);
        let manifest =
            Manifest { generation, base: end, end, records, written_at: now, scanned_at, parts, deltas: Vec::new() };
        let written = Compacted::Written { records, parts: manifest.parts.len(), from_entities: false };
        let is_put = self.log.put_manifest(&manifest, standing).await?;
        Ok(if is_put { written } else { Compacted::Overtaken })
    }

    /// Returns the last change to each record of some deltas, which come oldest first.
    pub(super) async fn last_words(&self, deltas: &[Piece]) -> Result<HashMap<R::Id, Option<R>>, StoreError> {
        let mut last = HashMap::new();
        for piece in deltas {
            let Delta { gone, put } = Delta::<R>::unpack(&piece.read(&self.log, &self.objects).await?)?;
            last.extend(gone.into_iter().map(|id| (id, None)));
            last.extend(put.records()?.into_iter().map(|record| (record.id(), Some(record))));
        }
        Ok(last)
    }

    pub(super) async fn part(&self, piece: &Piece) -> Result<R::Columns, StoreError> {
        chunk::unpack::<R>(&piece.read(&self.log, &self.objects).await?)
    }
}
