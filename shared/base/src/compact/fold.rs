//! Folds the deltas of a base into a new base, part by part. Both are in the same order, so a fold holds the deltas and
//! a few parts in memory, however large the base is.

use std::collections::HashMap;

use futures_util::{StreamExt, stream};
use market::{Manifest, Standing};
use platform::store::StoreError;

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
        let mut newer: Vec<&R> = last.values().flatten().collect();
        newer.sort_unstable_by(|one, other| one.base_order(other));
        let mut newer = newer.into_iter().peekable();
        let generation = run_id(now)?;
        let mut writer = PartWriter::new(RunObjects::new(&self.objects, R::STREAM, generation));
        let parts: Vec<_> = base.parts.iter().map(|piece| self.part(piece)).collect();
        let mut parts = stream::iter(parts).buffered(READ_AHEAD);
        while let Some(part) = parts.next().await {
            let mut columns = part?;
            columns.retain(|id| !last.contains_key(id));
            for record in columns.records()? {
                while let Some(first) = newer.next_if(|candidate| candidate.base_order(&record).is_lt()) {
                    writer.push(first.clone()).await?;
                }
                writer.push(record).await?;
            }
        }
        for record in newer {
            writer.push(record.clone()).await?;
        }
        let (parts, records) = writer.finish().await?;
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
