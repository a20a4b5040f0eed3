//! Makes a base from the entities. Several runs may share the work: each reads entities for a while, writes down how far
//! it came, and leaves the rest to the next one.
//!
//! 1. The entities are read page by page, and put into the bucket in slices.
//! 2. All of them are sorted in memory, and written as the parts of the base. The log since before the scan is laid over
//!    them, as much of it as fits into one delta.
//! 3. Deltas take the rest of the log, at least up to where the head was after the scan. Parts and deltas together are
//!    exact there, because the log has the last word about each entity that has changed since it was read.
//! 4. The manifest is put.

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::deltas::LastWords;
use super::writing::{Overlay, PartWriter, RunObjects};
use super::{Compacted, Compaction, MAX_PUTS, run_id};
use crate::base::columns::{Columnar, Columns};
use crate::base::part::{self, Packer};
use common::clock::Moment;
use common::store::StoreError;
use common::timestamp::{DAY_MILLIS, Timestamp};
use market::{ENTITY_PARTITIONS, EntityCursor, LogPosition, Manifest, Rebuild, Standing, StoredRebuild};

/// How often a run renews its lease. By that, readers know that it lives.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// A rebuild that has taken longer than this begins anew, because the log since then has become long.
const MAX_AGE_MILLIS: i64 = DAY_MILLIS;

/// Spreads reads evenly over time, so that they leave the table's throughput to others.
struct Pacer {
    units_per_second: f64,
    free_at: Instant,
}

impl Pacer {
    fn new(units_per_second: u32) -> Self {
        Self { units_per_second: f64::from(units_per_second.max(1)), free_at: Instant::now() }
    }

    /// Waits until what was read before has had its time.
    async fn wait(&mut self) {
        tokio::time::sleep_until(self.free_at).await;
        self.free_at = self.free_at.max(Instant::now());
    }

    /// Counts what a read has taken.
    fn spent(&mut self, units: f64) {
        self.free_at += Duration::try_from_secs_f64(units / self.units_per_second).unwrap_or_default();
    }
}

impl<R: Columnar> Compaction<R> {
    /// Goes on making a base from the entities, unless another run is doing so.
    pub(super) async fn rebuild(&self, seen: &Standing) -> Result<Compacted, StoreError> {
        let run = run_id(self.clock.now())?;
        if !self.log.take_lease(run, self.clock.now()).await? {
            return Ok(Compacted::Overtaken);
        }
        let outcome = tokio::select! {
            outcome = self.rebuild_alone(seen) => outcome,
            () = self.renew_lease(run) => Ok(Compacted::Overtaken),
        };
        if let Err(error) = self.log.end_lease(run, self.clock.now()).await {
            tracing::warn!(stream = R::STREAM, %error, "the lease could not be ended and runs out by itself");
        }
        outcome
    }

    /// Renews the lease of a run, until another run has taken it.
    async fn renew_lease(&self, run: Uuid) {
        loop {
            sleep(RENEW_EVERY).await;
            match self.log.take_lease(run, self.clock.now()).await {
                Ok(true) => {}
                Ok(false) => return tracing::warn!(stream = R::STREAM, "another run has taken the lease"),
                Err(error) => tracing::warn!(stream = R::STREAM, %error, "the lease could not be renewed"),
            }
        }
    }

    /// Begins the stream anew at `seq`, with a base of the entities as they are now, whoever has the lease. Readers go on
    /// with what there is until then. Nobody may write meanwhile: if the head moves, the run is overtaken.
    pub async fn begin_anew(&self, seq: u64) -> Result<Compacted, StoreError> {
        let mut stored = self.log.rebuild().await?;
        let (seen, began_at) = (self.standing().await?, self.clock.now());
        if !self.save(&mut stored, None).await? || !self.log.settle(seen.head).await? {
            return Ok(Compacted::Overtaken);
        }
        let mut rebuild =
            Rebuild { began_at, start: seen.head, next: Some(EntityCursor::default()), records: 0, slices: Vec::new() };
        while rebuild.next.is_some() {
            if !self.read_entities(&mut rebuild, &mut stored, Moment::now(&*self.clock)).await? {
                return Ok(Compacted::Overtaken);
            }
        }
        let base = self.write_parts(&rebuild, LogPosition { seq, ..seen.head }, &LastWords::new()).await?;
        if !self.log.begin_anew(&base, &seen, self.clock.now()).await? {
            return Ok(Compacted::Overtaken);
        }
        self.end(&mut stored).await;
        Ok(written(&base))
    }

    async fn rebuild_alone(&self, seen: &Standing) -> Result<Compacted, StoreError> {
        let (began, mut stored) = (Moment::now(&*self.clock), self.log.rebuild().await?);
        let (mut rebuild, mut is_continued) = match stored.rebuild.take() {
            Some(rebuild) if self.goes_on(&rebuild, seen) => (rebuild, true),
            _ => (self.begin(seen).await?, false),
        };
        loop {
            let was_read = rebuild.next.is_none();
            if !self.read_entities(&mut rebuild, &mut stored, began).await? {
                return Ok(Compacted::Overtaken);
            }
            // Parts take a while, and nothing of them is kept if the run ends before.
            let is_late = !was_read && began.age(&*self.clock) > self.limits.slice / 2;
            if rebuild.next.is_some() || is_late {
                return Ok(Compacted::Reading { records: rebuild.records });
            }
            match self.write_rebuilt(&rebuild, seen).await {
                // An object has been damaged, or the log no longer reaches back to the beginning.
                Err(StoreError::Corrupt { what }) if is_continued => {
                    tracing::warn!(stream = R::STREAM, %what, "the entities are read from the beginning");
                    (rebuild, is_continued) = (self.begin(seen).await?, false);
                }
                outcome => {
                    if matches!(outcome, Ok(Compacted::Written { .. })) {
                        self.end(&mut stored).await;
                    }
                    return outcome;
                }
            }
        }
    }

    /// Writes down that nothing is under way. If that fails, the next run sees from the manifest that all was done.
    async fn end(&self, stored: &mut StoredRebuild) {
        if let Err(error) = self.save(stored, None).await {
            tracing::warn!(stream = R::STREAM, %error, "the end of a rebuild could not be written down");
        }
    }

    /// Returns whether a rebuild may be continued: it is not too old, and its base is not in place yet.
    fn goes_on(&self, rebuild: &Rebuild, seen: &Standing) -> bool {
        self.age(rebuild.began_at) < MAX_AGE_MILLIS && scanned_at(seen).is_none_or(|at| at < rebuild.began_at)
    }

    async fn begin(&self, seen: &Standing) -> Result<Rebuild, StoreError> {
        let began_at = self.clock.now();
        let before = self.log.before_scan(seen.head.seq, began_at).await?;
        let start = self.position_before(before, seen.head).await?;
        Ok(Rebuild { began_at, start, next: Some(EntityCursor::default()), records: 0, slices: Vec::new() })
    }

    /// Reads entities until all were read or the time is over, and at least one page. Returns false if another run has
    /// gone on with the rebuild.
    async fn read_entities(
        &self,
        rebuild: &mut Rebuild,
        stored: &mut StoredRebuild,
        began: Moment,
    ) -> Result<bool, StoreError> {
        if rebuild.next.is_none() {
            return Ok(true);
        }
        let mut pacer = Pacer::new(self.limits.read_units_per_second);
        let mut slice = Packer::default();
        while let Some(EntityCursor { partition, behind }) = rebuild.next.take() {
            pacer.wait().await;
            let page = match self.log.entities(partition, behind.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    rebuild.next = Some(EntityCursor { partition, behind });
                    self.keep(slice.rest(), rebuild, stored).await?;
                    return Err(error);
                }
            };
            pacer.spent(page.units);
            let full: Vec<Vec<R>> = page.records.into_iter().filter_map(|record| slice.push(record)).collect();
            rebuild.next = match page.last {
                Some(last) => Some(EntityCursor { partition, behind: Some(last) }),
                None if partition + 1 < ENTITY_PARTITIONS => {
                    Some(EntityCursor { partition: partition + 1, behind: None })
                }
                None => None,
            };
            if !full.is_empty() {
                let records = full.into_iter().flatten().chain(std::mem::take(&mut slice).rest()).collect();
                if !self.keep(records, rebuild, stored).await? {
                    return Ok(false);
                }
            }
            if began.age(&*self.clock) >= self.limits.slice {
                break;
            }
        }
        self.keep(slice.rest(), rebuild, stored).await
    }

    /// Puts records into the bucket as a slice, and writes down how far the entities were read.
    async fn keep(
        &self,
        records: Vec<R>,
        rebuild: &mut Rebuild,
        stored: &mut StoredRebuild,
    ) -> Result<bool, StoreError> {
        let mut objects = RunObjects::new(&self.objects, R::STREAM, run_id(self.clock.now())?);
        if !records.is_empty() {
            for packed in part::pack(&records)? {
                objects.put(packed).await?;
            }
        }
        rebuild.records += records.len() as u64;
        rebuild.slices.append(&mut objects.written());
        self.save(stored, Some(&*rebuild)).await
    }

    async fn save(&self, stored: &mut StoredRebuild, rebuild: Option<&Rebuild>) -> Result<bool, StoreError> {
        self.log.put_rebuild(stored, run_id(self.clock.now())?, rebuild).await
    }

    /// Writes the base whose entities were read, and puts its manifest.
    async fn write_rebuilt(&self, rebuild: &Rebuild, seen: &Standing) -> Result<Compacted, StoreError> {
        let head = self.log.head().await?;
        let (base, last) = self.span(rebuild.start, head).await?;
        let manifest = self.write_parts(rebuild, base, &last).await?;
        let outcome = written(&manifest);
        Ok(if self.put_rebuilt(manifest, head, seen).await? { outcome } else { Compacted::Overtaken })
    }

    /// Sorts the records that were read, and writes them, with these changes over them, as the parts of a base.
    async fn write_parts(
        &self,
        rebuild: &Rebuild,
        base: LogPosition,
        last: &LastWords<R>,
    ) -> Result<Manifest, StoreError> {
        let mut slices = Vec::with_capacity(rebuild.slices.len());
        for slice in &rebuild.slices {
            slices.push(self.part(slice).await?);
        }
        let (written_at, scanned_at) = (self.clock.now(), rebuild.began_at);
        let generation = run_id(written_at)?;
        let writer = PartWriter::new(RunObjects::new(&self.objects, R::STREAM, generation));
        let mut overlay = Overlay::new(last, writer);
        for record in R::Columns::in_base_order(&slices) {
            overlay.push(record?).await?;
        }
        let (parts, records) = overlay.finish().await?;
        Ok(Manifest { generation, base, end: base, records, written_at, scanned_at, parts, deltas: Vec::new() })
    }

    /// Continues a rebuilt base up to `head`, and puts its manifest in place of the one that is there. Returns false if
    /// another run has put a rebuilt base.
    async fn put_rebuilt(&self, mut rebuilt: Manifest, head: u64, seen: &Standing) -> Result<bool, StoreError> {
        for _ in 0..MAX_PUTS {
            let standing = self.standing().await?;
            if scanned_at(&standing) != scanned_at(seen) {
                break;
            }
            // Other runs may have continued the base that is there. No reader is to go back.
            while rebuilt.end.seq < head.max(standing.base_seq()) {
                let (end, last) = self.span(rebuilt.end, head.max(standing.base_seq())).await?;
                rebuilt.deltas.append(&mut self.put_deltas(run_id(self.clock.now())?, last, end).await?);
                rebuilt.end = end;
            }
            if self.log.put_manifest(&rebuilt, &standing).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn written(base: &Manifest) -> Compacted {
    Compacted::Written { records: base.records, parts: base.parts.len(), from_entities: true }
}

/// Returns when the entities were last read for the base that is there.
fn scanned_at(standing: &Standing) -> Option<Timestamp> {
    standing.manifest.as_ref()?.as_ref().ok().map(|manifest| manifest.scanned_at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_take_no_more_units_a_second_than_they_may() {
        let began = Instant::now();
        let mut pacer = Pacer::new(100);
        for _ in 0..5 {
            pacer.wait().await;
            // A quarter of the time that the units allow.
            tokio::time::sleep(Duration::from_millis(500)).await;
            pacer.spent(200.0);
        }
        pacer.wait().await;
        assert_eq!(began.elapsed().as_secs(), 10);
        tokio::time::sleep(Duration::from_mins(1)).await;
        for _ in 0..2 {
            pacer.wait().await;
            pacer.spent(200.0);
        }
        pacer.wait().await;
        assert_eq!(began.elapsed().as_secs(), 10 + 60 + 4, "a pause saves nothing up");
    }
}
