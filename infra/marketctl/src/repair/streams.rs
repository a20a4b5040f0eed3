//! Brings a stream back in line.
//!
//! The entities are taken as they are, because only they have versions: a message changes an entity unless the entity
//! is as new, whatever the log says. So where the log says something else, or does not end at the head, a new base is
//! made of the entities, and the stream *begins anew* with it: in one transaction, its head moves to a number that no
//! batch has had, an empty entry is put there, and the manifest names the new base. Nothing connects that entry to the log
//! before it. Every reader takes this for a gap, and reads the new base. Until then it goes on with what there is.
//!
//! The number is the time in milliseconds. A stream commits far less than a thousand batches a second, so the number is
//! higher than every one before it, also than those that were lost with a damaged table.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use common::clock::Clock;
use common::store::StoreError;
use market::{ENTITY_PARTITIONS, Log, Record, Standing};
use replica::base::{Columnar, Columns, Compacted, Compaction, Load};
use replica::objects::Objects;

use super::mode::{Mode, Progress, RepairError};

/// The most records that are named. If a base is lost, all of millions differ.
const MAX_NAMED: usize = 1_000;
/// How often the entities are read if other runs get ahead.
const MAX_RUNS: usize = 3;

/// What was wrong with a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamFindings {
    /// Whether the log or the base went on behind the head. No writer could have moved that head again.
    pub head_behind_log: bool,
    /// Whether the entry to which the head points was missing.
    pub entry_missing: bool,
    /// Whether the base was missing or could not be read, or the log behind it had a gap. Then nothing tells what
    /// running instances have.
    pub base_unusable: bool,
    /// How many records the base and the log had otherwise than the entities.
    pub differing_records: u64,
}

/// What was found in a stream, and what was done about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamReport {
    pub stream: &'static str,
    pub found: StreamFindings,
    /// The ids of the first thousand records that differed.
    pub differing: Vec<String>,
    /// The number with which the stream began anew, if it did.
    pub began_at: Option<u64>,
    /// How many records its new base has, if there is one.
    pub base_records: Option<u64>,
}

impl StreamFindings {
    /// Returns whether nothing was wrong.
    pub fn is_in_line(&self) -> bool {
        *self == Self::default()
    }
}

pub(super) async fn repair<R: Columnar>(
    log: &Log<R>,
    objects: &Objects,
    clock: &Arc<dyn Clock>,
    mode: Mode,
    progress: &dyn Fn(Progress),
) -> Result<StreamReport, RepairError> {
    progress(Progress::Comparing(R::STREAM));
    let standing = log.standing().await?;
    let end = log.newest_entry().await?.max(standing.base_seq());
    let (mut found, differing) =
        compare(log, &standing, Load::new(log.clone(), objects.clone(), Arc::clone(clock))).await?;
    found.head_behind_log = standing.head.seq < end;
    found.entry_missing = standing.head.seq > end;
    if log.head().await? != standing.head.seq {
        return Err(RepairError::Written(R::STREAM));
    }
    let mut report = StreamReport { stream: R::STREAM, found, differing, began_at: None, base_records: None };
    let is_due = !found.is_in_line() || mode.restored;
    if mode.dry_run || !is_due {
        return Ok(report);
    }
    // At least two more, so that there is a gap.
    let after_all = standing.head.seq.max(end) + 2;
    let seq = after_all.max(u64::try_from(clock.now().millis()).unwrap_or_default());
    progress(Progress::Writing(R::STREAM));
    let compaction = Compaction::new(log.clone(), objects.clone(), Arc::clone(clock));
    for _ in 0..MAX_RUNS {
        if let Compacted::Written { records, .. } = Box::pin(compaction.begin_anew(seq)).await? {
            (report.began_at, report.base_records) = (Some(seq), Some(records));
            return Ok(report);
        }
        if log.head().await? != standing.head.seq {
            return Err(RepairError::Written(R::STREAM));
        }
    }
    Err(StoreError::Conflict.into())
}

/// Compares what readers read with the entities. Returns also the ids of the first records that differ.
async fn compare<R: Columnar>(
    log: &Log<R>,
    standing: &Standing,
    mut load: Load<R>,
) -> Result<(StreamFindings, Vec<String>), StoreError> {
    let snapshot = Box::pin(load.step()).await?;
    let is_from_base = snapshot.is_from_base();
    let mut read = HashMap::new();
    for columns in snapshot.folded() {
        read.extend(columns.records()?.iter().map(|record| (record.id(), digest(record))));
    }
    let is_empty = standing.manifest.is_none() && standing.head.seq == 0 && read.is_empty();
    let (mut differing, mut named) = (0, Vec::new());
    for partition in 0..ENTITY_PARTITIONS {
        let visit = |record: R| {
            let is_same = read.remove(&record.id()).is_some_and(|read| read == digest(&record));
            differing += u64::from(!is_same);
            if !is_same && named.len() < MAX_NAMED {
                named.push(record.id().to_string());
            }
        };
        log.scan(partition, visit).await?;
    }
    let differing_records = differing + read.len() as u64;
    named.extend(read.keys().take(MAX_NAMED - named.len()).map(ToString::to_string));
    named.sort();
    let base_unusable = !is_from_base && !is_empty;
    Ok((StreamFindings { base_unusable, differing_records, ..StreamFindings::default() }, named))
}

/// Returns a number that almost certainly differs if records differ, and saves keeping them.
fn digest<R: Record>(record: &R) -> u64 {
    let mut hasher = DefaultHasher::new();
    serde_json::to_vec(record).unwrap_or_default().hash(&mut hasher);
    hasher.finish()
}
