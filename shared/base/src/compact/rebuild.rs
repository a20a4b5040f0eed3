//! Makes a base from the entities.

use market::{Manifest, Standing};
use platform::store::StoreError;
use types::timestamp::Timestamp;

use super::parts::{PartWriter, RunObjects};
use super::{Compacted, Compaction, run_id};
use crate::columns::{Columnar, Columns};
use crate::load::Load;
use crate::snapshot::Snapshot;

/// How long a run has the lease if it dies. It is longer than the function's time-out.
const LEASE_MILLIS: i64 = 16 * 60 * 1_000;
/// How often the manifest is put again because another run has added a delta at the same moment.
const MAX_PUTS: usize = 5;

impl<R: Columnar> Compaction<R> {
    /// Makes a base from the entities, unless another run is doing so.
    pub(super) async fn rebuild(&self, seen: &Standing) -> Result<Compacted, StoreError> {
        let now = self.clock.now();
        let until = now.plus_millis(LEASE_MILLIS);
        if !self.log.take_lease(now, until).await? {
            return Ok(Compacted::Overtaken);
        }
        let outcome = self.rebuild_alone(seen, now).await;
        if let Err(error) = self.log.end_lease(until, self.clock.now()).await {
            tracing::warn!(stream = R::STREAM, %error, "the lease could not be ended and runs out by itself");
        }
        outcome
    }

    /// Makes a base from the entities, whatever the present one is, and whoever has the lease. The lease only saves work:
    /// of two runs at the same time, one is abandoned.
    pub async fn renew(&self) -> Result<Compacted, StoreError> {
        self.rebuild_alone(&self.standing().await?, self.clock.now()).await
    }

    async fn rebuild_alone(&self, seen: &Standing, now: Timestamp) -> Result<Compacted, StoreError> {
        let mut load = Load::new(self.log.clone(), self.objects.clone(), self.clock.clone());
        let snapshot = load.entities(seen.head).await?;
        let end = snapshot.end();
        let generation = run_id(now)?;
        let mut writer = PartWriter::new(RunObjects::new(&self.objects, R::STREAM, generation));
        for record in in_order(snapshot)? {
            writer.push(record).await?;
        }
        let (parts, records) = writer.finish().await?;
        let written = Compacted::Written { records, parts: parts.len(), from_entities: true };
        let rebuilt = Manifest {
            generation,
            base: end,
            end,
            records,
            written_at: now,
            scanned_at: now,
            parts,
            deltas: Vec::new(),
        };
        for _ in 0..MAX_PUTS {
            let standing = self.standing().await?;
            if scanned_at(&standing) != scanned_at(seen) {
                break;
            }
            let manifest = with_newer_deltas(rebuilt.clone(), &standing);
            if self.log.put_manifest(&manifest, &standing).await? {
                return Ok(written);
            }
        }
        Ok(Compacted::Overtaken)
    }
}

/// Returns when the entities were last read for the base that is there.
fn scanned_at(standing: &Standing) -> Option<Timestamp> {
    standing.manifest.as_ref()?.as_ref().ok().map(|manifest| manifest.scanned_at)
}

/// Takes over the deltas that other runs have written while the entities were read.
///
/// A delta may begin before the position of the rebuilt base. That does no harm: what it says about a record is either
/// newer, or what the base says too.
fn with_newer_deltas(mut rebuilt: Manifest, standing: &Standing) -> Manifest {
    let Some(Ok(present)) = &standing.manifest else { return rebuilt };
    let seq = rebuilt.base.seq;
    if present.base.seq <= seq && present.end.seq > seq {
        rebuilt.deltas = present.deltas.iter().filter(|delta| delta.end.seq > seq).cloned().collect();
        rebuilt.end = present.end;
    }
    rebuilt
}

/// Returns the records as of the end of the log, in the order of a base.
fn in_order<R: Columnar>(snapshot: Snapshot<R>) -> Result<Vec<R>, StoreError> {
    let mut records = Vec::new();
    for columns in snapshot.folded() {
        records.append(&mut columns.records()?);
    }
    records.sort_unstable_by(R::base_order);
    Ok(records)
}
