//! Folds the log into a new base.
//!
//! Each run writes its chunks under a name of its own. Then it moves the pointer to them, on condition that the pointer
//! still names what it named when the run began. So if two runs overlap, both write chunks, but only one moves the
//! pointer. Chunks of the other run, or of a run that dies, are never pointed at, and their time to live removes them.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::{StreamExt, TryStreamExt, stream};
use market::{LOG_KEEP_MILLIS, Log, Pointer, Standing};
use objects::Objects;
use platform::store::StoreError;
use types::clock::Clock;
use types::timestamp::{DAY_MILLIS, Timestamp};
use uuid::Uuid;

use super::chunk;
use super::columns::{Columnar, Columns};
use super::load::Load;
use super::snapshot::Snapshot;

/// A base that is a week old is folded again, well before its chunks expire.
const WEEK_MILLIS: i64 = 7 * DAY_MILLIS;
/// Two weeks after the entities were last read, a base is made from them again. So a mistake in a base does not last.
const TWO_WEEKS_MILLIS: i64 = 14 * DAY_MILLIS;
/// A new base is due if more changes than this have come after the old one ...
const MIN_CHANGES: u64 = 1_000;
/// ... and more than the old one's number of records divided by this.
const RECORDS_PER_CHANGE: u64 = 10;
/// How many chunks are written at the same time.
const CONCURRENT_WRITES: usize = 8;

/// Folds the log of one stream into bases.
pub struct Compaction<R> {
    log: Log<R>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    /// The generation of the base that this instance has written, or has read whole without an error.
    sound: Mutex<Option<Uuid>>,
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compacted {
    /// The base is fresh enough.
    Idle {
        /// How many changes have come after it.
        behind: u64,
    },
    /// A new base is in place.
    Written {
        records: usize,
        chunks: usize,
        /// Whether it was made from the entities.
        from_entities: bool,
    },
    /// Another run has put a base in place in the meantime, so this run's base is abandoned.
    Overtaken,
}

impl<R: Columnar> Compaction<R> {
    pub fn new(log: Log<R>, objects: Objects, clock: Arc<dyn Clock>) -> Self {
        Self { log, objects, clock, sound: Mutex::default() }
    }

    /// Reads the stream's head and base pointer.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        self.log.standing().await
    }

    /// Writes a new base if one is due.
    pub async fn run(&self) -> Result<Compacted, StoreError> {
        self.run_from(self.standing().await?).await
    }

    /// Writes a new base if one is due, for a caller that has already read where the stream stands.
    pub async fn run_from(&self, standing: Standing) -> Result<Compacted, StoreError> {
        let now = self.clock.now();
        let snapshot = match self.plan(&standing, now) {
            CompactionPlan::Idle { behind } => return Ok(Compacted::Idle { behind }),
            CompactionPlan::Fold => self.load().step().await?,
            CompactionPlan::Rebuild => self.load().entities(standing.head).await?,
            CompactionPlan::Verify { generation, behind } => {
                let snapshot = self.load().step().await?;
                if snapshot.scanned_at.is_some() {
                    self.trust(generation);
                    return Ok(Compacted::Idle { behind });
                }
                snapshot
            }
        };
        self.write(snapshot, &standing, now).await
    }

    fn load(&self) -> Load<R> {
        Load::new(self.log.clone(), self.objects.clone(), Arc::clone(&self.clock))
    }

    fn plan(&self, standing: &Standing, now: Timestamp) -> CompactionPlan {
        let Some(Ok(base)) = &standing.base else { return CompactionPlan::Rebuild };
        let age = |then: Timestamp| now.millis() - then.millis();
        let behind = standing.behind();
        if age(base.scanned_at) >= TWO_WEEKS_MILLIS {
            CompactionPlan::Rebuild
        } else if behind > MIN_CHANGES.max(base.records / RECORDS_PER_CHANGE) || age(base.written_at) >= WEEK_MILLIS {
            CompactionPlan::Fold
        } else if *self.sound.lock().unwrap_or_else(PoisonError::into_inner) == Some(base.generation) {
            CompactionPlan::Idle { behind }
        } else {
            CompactionPlan::Verify { generation: base.generation, behind }
        }
    }

    /// Writes the chunks and then the pointer, on condition that nobody else has moved it.
    async fn write(&self, snapshot: Snapshot<R>, standing: &Standing, now: Timestamp) -> Result<Compacted, StoreError> {
        let (position, from_entities) = (snapshot.end(), snapshot.scanned_at.is_none());
        let scanned_at = snapshot.scanned_at.unwrap_or(now);
        let records = in_order(snapshot)?;
        let generation = run_id(now)?;
        let chunks = chunk::pack(&records)?;
        let hashes: Vec<_> = chunks.iter().map(|packed| chunk::hash(packed)).collect();
        let written = chunks.len();
        let expires = now.plus_millis(LOG_KEEP_MILLIS);
        let puts = (0..).zip(chunks);
        let puts = puts.map(|(number, packed)| self.log.put_base_chunk(generation, number, packed, expires));
        stream::iter(puts.collect::<Vec<_>>()).buffer_unordered(CONCURRENT_WRITES).try_collect::<Vec<()>>().await?;
        let count = records.len();
        let pointer = Pointer { generation, position, records: count as u64, hashes, written_at: now, scanned_at };
        if !self.log.put_base_pointer(&pointer, standing).await? {
            return Ok(Compacted::Overtaken);
        }
        self.trust(generation);
        Ok(Compacted::Written { records: count, chunks: written, from_entities })
    }

    fn trust(&self, generation: Uuid) {
        *self.sound.lock().unwrap_or_else(PoisonError::into_inner) = Some(generation);
    }
}

/// What a run should do.
enum CompactionPlan {
    Idle {
        behind: u64,
    },
    /// Fold the log into the base, or into the records of the entities if the base turns out to be broken.
    Fold,
    /// Make the base from the entities.
    Rebuild,
    /// Nothing is due, but this instance does not know yet whether the base can be read.
    Verify {
        generation: Uuid,
        behind: u64,
    },
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

/// Makes a run's id. Ids sort by time, which makes it easy to tell the chunks of one run from those of another.
fn run_id(now: Timestamp) -> Result<Uuid, StoreError> {
    let millis = u64::try_from(now.millis()).unwrap_or_default();
    let mut random = [0; 10];
    getrandom::fill(&mut random).map_err(|error| StoreError::Defect(error.to_string()))?;
    Ok(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
}
