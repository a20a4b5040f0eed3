//! Keeps the base of a stream fresh: writes deltas beside it, folds them into it, and makes it anew from the entities.
//!
//! Each run writes its objects under a name of its own. Then it puts the manifest, on condition that the stored one is
//! still the one that the run has seen. So if two runs overlap, both write objects, but only one changes the manifest.
//! Objects of the other run, or of a run that dies, are never named by a manifest, and S3 removes them in the end.
//!
//! A failure of one step does not skip the others. While a base is being made from the entities, or cannot be made from
//! them, the present one is still continued.

mod deltas;
mod rebuild;
mod writing;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;

use super::columns::Columnar;
use super::part::{self, Delta};
use super::snapshot::LogTail;
use crate::objects::Objects;
use common::clock::{Clock, Moment};
use common::store::StoreError;
use common::timestamp::{DAY_MILLIS, Timestamp};
use market::{Hash, Log, LogPosition, Manifest, Standing};

/// A base that is a week old is folded again, well before its objects expire.
const WEEK_MILLIS: i64 = 7 * DAY_MILLIS;
/// Two weeks after the entities were last read, a base is made from them again. So a mistake in a base does not last.
const TWO_WEEKS_MILLIS: i64 = 14 * DAY_MILLIS;
/// A run goes on with the next delta while more changes than this lie behind, ...
const STAY_CHANGES: u64 = 3_000;
/// ... and until this time has passed: the next run begins a minute after this one.
const STAY_MILLIS: i64 = 50_000;
/// How long an instance trusts the pieces that it has read.
const SOUND_FOR: Duration = Duration::from_mins(15);
/// How often the manifest is put again because another run has added a delta at the same moment.
const MAX_PUTS: usize = 5;

/// Keeps the base of one stream fresh.
pub struct Compaction<R> {
    log: Log<R>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    limits: RebuildLimits,
    thresholds: Thresholds,
    /// The pieces that this instance has read without an error, and when it has read all of them last. `None` until it has.
    sound: Mutex<Option<(Moment, HashSet<Hash>)>>,
}

/// Bounds of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildLimits {
    /// How many read units the entities may take a second. One is a strongly consistent read of 4 KB.
    pub read_units_per_second: u32,
    /// After this time a run leaves the rest to the next one.
    pub slice: Duration,
}

/// When deltas and folds are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// A delta is due if more changes than this lie behind base and deltas. A fold is due if the deltas have more ...
    pub min_changes: u64,
    /// ... and more than the base's number of records divided by this.
    pub records_per_change: u64,
    /// If a base has this many deltas, the next one takes them in.
    pub max_deltas: usize,
    /// A base with this many deltas is folded before it gets another one. Only failed folds let it come to that. The
    /// manifest of a few thousand deltas would be too large for a row.
    pub most_deltas: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { min_changes: 1_000, records_per_change: 10, max_deltas: 16, most_deltas: 1_000 }
    }
}

impl RebuildLimits {
    /// Returns limits for a rebuild in one run, as fast as the store answers.
    pub fn at_once() -> Self {
        Self { read_units_per_second: u32::MAX, slice: Duration::MAX }
    }
}

impl Default for RebuildLimits {
    fn default() -> Self {
        Self {
            // A new table serves 12,000 read units a second, and a partition 3,000.
            read_units_per_second: 2_000,
            // The two streams together take two thirds of the function's time-out.
            slice: Duration::from_mins(5),
        }
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// The base is fresh enough.
    Idle {
        /// How many changes have come after it and its deltas.
        behind: u64,
    },
    /// Deltas continue the base.
    Extended {
        /// How many changes they hold together.
        changes: u64,
    },
    /// A part of the entities was read for a new base. The next run goes on with it.
    Reading {
        /// How many records have been read so far.
        records: u64,
    },
    /// A new base is in place.
    Written {
        records: u64,
        parts: usize,
        /// Whether it was made from the entities.
        from_entities: bool,
    },
    /// Another run has changed the manifest in the meantime, so this run's work is abandoned.
    Overtaken,
}

impl<R: Columnar> Compaction<R> {
    pub fn new(log: Log<R>, objects: Objects, clock: Arc<dyn Clock>) -> Self {
        let (limits, thresholds) = (RebuildLimits::default(), Thresholds::default());
        Self { log, objects, clock, limits, thresholds, sound: Mutex::default() }
    }

    /// Sets what a rebuild may take.
    #[must_use]
    pub fn with_limits(self, limits: RebuildLimits) -> Self {
        Self { limits, ..self }
    }

    /// Sets when deltas and folds are due.
    #[must_use]
    pub fn with_thresholds(self, thresholds: Thresholds) -> Self {
        Self { thresholds, ..self }
    }

    /// Reads where the stream stands: its head and its base.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        self.log.standing().await
    }

    /// Does what is due.
    pub async fn run(&self) -> Result<Compacted, StoreError> {
        self.run_from(self.standing().await?).await
    }

    /// Does what is due, for a caller that has already read where the stream stands.
    pub async fn run_from(&self, standing: Standing) -> Result<Compacted, StoreError> {
        let Some(Ok(base)) = &standing.manifest else { return Box::pin(self.rebuild(&standing)).await };
        let is_rebuild_due = self.age(base.scanned_at) >= TWO_WEEKS_MILLIS;
        let outcome = self.continue_base(standing).await;
        match outcome {
            Err(StoreError::Corrupt { what }) => {
                tracing::error!(stream = R::STREAM, %what, "the base cannot be read, so it is made from the entities");
                Box::pin(self.rebuild(&self.standing().await?)).await
            }
            outcome if is_rebuild_due => {
                let rebuilt = Box::pin(self.rebuild(&self.standing().await?)).await;
                // Readers depend on the present base until the new one is there.
                match (rebuilt, outcome) {
                    (Ok(Compacted::Overtaken), outcome)
                    | (
                        Ok(Compacted::Reading { .. }),
                        outcome @ (Err(_) | Ok(Compacted::Written { .. } | Compacted::Extended { .. })),
                    ) => outcome,
                    (rebuilt, _) => rebuilt,
                }
            }
            outcome => outcome,
        }
    }

    /// Writes deltas and folds them, as far as that is due. Makes sure that the base can be read, unless it is replaced.
    async fn continue_base(&self, mut standing: Standing) -> Result<Compacted, StoreError> {
        let (began, mut done) = (self.clock.now(), None);
        if let Some(Ok(manifest)) = &standing.manifest
            && manifest.deltas.len() >= self.thresholds.most_deltas
        {
            return self.fold(manifest, &standing).await;
        }
        while self.is_delta_due(&standing).await? {
            let Some(Ok(manifest)) = &standing.manifest else { break };
            if !self.extend(manifest, &standing).await? {
                return Ok(Compacted::Overtaken);
            }
            standing = self.standing().await?;
            done = standing.manifest.as_ref().and_then(|manifest| manifest.as_ref().ok()).map(extended).or(done);
            if standing.behind() <= STAY_CHANGES || self.age(began) >= STAY_MILLIS {
                break;
            }
        }
        let Some(Ok(manifest)) = &standing.manifest else { return Ok(Compacted::Overtaken) };
        if self.is_fold_due(manifest) {
            return self.fold(manifest, &standing).await;
        }
        self.verify(manifest, standing.head).await?;
        Ok(done.unwrap_or(Compacted::Idle { behind: standing.behind() }))
    }

    fn is_fold_due(&self, manifest: &Manifest) -> bool {
        let changes = manifest.end.changes.saturating_sub(manifest.base.changes);
        let Thresholds { min_changes, records_per_change, .. } = self.thresholds;
        changes > min_changes.max(manifest.records / records_per_change) || self.age(manifest.written_at) >= WEEK_MILLIS
    }

    /// Milliseconds since a time.
    fn age(&self, then: Timestamp) -> i64 {
        self.clock.now().millis() - then.millis()
    }

    /// Reads the pieces that this instance does not know yet or any more, one at a time, and the log behind them, which is short.
    async fn verify(&self, base: &Manifest, head: LogPosition) -> Result<(), StoreError> {
        let known = self.sound.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let known = known.filter(|(since, _)| since.is_within(SOUND_FOR, &*self.clock));
        let since = known.as_ref().map_or_else(|| Moment::now(&*self.clock), |(since, _)| *since);
        let is_known = |hash: &Hash| known.as_ref().is_some_and(|(_, known)| known.contains(hash));
        for part in base.parts.iter().filter(|part| !is_known(&part.hash)) {
            self.part(part).await?;
        }
        for delta in base.deltas.iter().filter(|delta| !is_known(&delta.object.hash)) {
            Delta::<R>::unpack(&part::read(&delta.object, &self.objects).await?)?;
        }
        if !LogTail::new(base.end.seq).read(&self.log, head.seq, usize::MAX).await? {
            return Err(StoreError::corrupt("the log behind the base has a gap"));
        }
        let sound: HashSet<Hash> = base.objects().map(|object| object.hash).collect();
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = Some((since, sound));
        Ok(())
    }
}

fn extended(manifest: &Manifest) -> Compacted {
    Compacted::Extended { changes: manifest.end.changes.saturating_sub(manifest.base.changes) }
}

/// Makes a run's id. Ids sort by time, which makes it easy to tell the objects of one run from those of another.
fn run_id(now: Timestamp) -> Result<Uuid, StoreError> {
    let millis = u64::try_from(now.millis()).unwrap_or_default();
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| StoreError::Defect(error.to_string()))?;
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
}
