//! Reads a whole stream: its base, or its entities if no base can be read, and the log after that.

use std::collections::HashMap;

use futures_util::future::{try_join, try_join_all};
use futures_util::{StreamExt, TryStreamExt, stream};
use market::{Batch, Change, ENTITY_PARTITIONS, Hash, Log, LogPosition, Pointer, Standing, Tail};
use platform::store::StoreError;
use types::clock::{Clock, Moment};
use uuid::Uuid;

use super::chunk;
use super::columns::{Columnar, Columns};

/// How many chunks are read at the same time.
const CONCURRENT_READS: usize = 16;

/// A stream's records as of a position in its log, and the log from there to its end.
pub struct Snapshot<R: Columnar> {
    /// The records at the position. If they come from the entities, some may already be newer. The tail has those too.
    pub records: Vec<R::Columns>,
    pub position: LogPosition,
    /// The log from the position to its end.
    pub tail: Vec<Batch<R>>,
    /// When the Query that saw the end of the log was sent.
    pub as_of: Moment,
    /// The base that the records come from, or `None` if they were read from the entities.
    pub(crate) base: Option<Pointer>,
}

impl<R: Columnar> Snapshot<R> {
    /// The position at the end of the log.
    pub fn end(&self) -> LogPosition {
        let changes: usize = self.tail.iter().map(|(_, changes)| changes.len()).sum();
        LogPosition {
            seq: self.tail.last().map_or(self.position.seq, |(seq, _)| *seq),
            changes: self.position.changes + changes as u64,
        }
    }

    /// Returns the records as of the end of the log: first those that the tail does not touch, then those that it does.
    pub fn folded(self) -> Vec<R::Columns> {
        let Self { mut records, tail, .. } = self;
        let mut last: HashMap<R::Id, Option<R>> = HashMap::new();
        for change in tail.into_iter().flat_map(|(_, changes)| changes) {
            match change {
                Change::Put(record) => last.insert(record.id(), Some(record)),
                Change::Remove(id) => last.insert(id, None),
            };
        }
        if !last.is_empty() {
            for columns in &mut records {
                columns.retain(|id| !last.contains_key(id));
            }
            records.push(R::Columns::from_records(last.values().flatten()));
        }
        records
    }

    fn new(records: Vec<R::Columns>, position: LogPosition, tail: Tail<R>, base: Option<Pointer>) -> Self {
        Self { records, position, tail: tail.batches, as_of: tail.as_of, base }
    }
}

/// Reads the whole stream as it is now.
pub async fn load<R: Columnar>(log: &Log<R>, clock: &dyn Clock) -> Result<Snapshot<R>, StoreError> {
    load_at(log, &log.standing().await?, clock).await
}

/// Reads the whole stream, for a caller that has already read its head and pointer.
pub(super) async fn load_at<R: Columnar>(
    log: &Log<R>,
    standing: &Standing,
    clock: &dyn Clock,
) -> Result<Snapshot<R>, StoreError> {
    let from_base = match &standing.base {
        None => return load_entities(log, standing.head, clock).await,
        Some(Ok(pointer)) => load_base(log, pointer, standing.head, clock).await,
        Some(Err(error)) => Err(error.clone()),
    };
    match from_base {
        Err(error @ StoreError::Corrupt { .. }) => {
            tracing::error!(stream = R::STREAM, %error, "the base cannot be read: reading the entities instead");
            load_entities(log, standing.head, clock).await
        }
        other => other,
    }
}

/// Reads the chunks and the log at the same time. Neither has to wait for the other, because the base is exact at
/// its position.
async fn load_base<R: Columnar>(
    log: &Log<R>,
    pointer: &Pointer,
    head: LogPosition,
    clock: &dyn Clock,
) -> Result<Snapshot<R>, StoreError> {
    let chunks = pointer.hashes.iter().enumerate();
    let chunks = chunks.map(|(number, hash)| chunk(log, pointer.generation, number, *hash));
    let chunks = stream::iter(chunks.collect::<Vec<_>>()).buffered(CONCURRENT_READS).try_collect();
    let tail = log.tail(pointer.position.seq, head.seq, clock);
    let (records, tail) = try_join(chunks, tail).await?;
    let tail = tail.ok_or_else(|| StoreError::corrupt("the log behind the base has a gap"))?;
    Ok(Snapshot::new(records, pointer.position, tail, Some(pointer.clone())))
}

/// Reads the entities, and then the log from well before `head`, which was read before.
///
/// The scan may see a transaction in part, even the one that moved the head to where it was read. The log holds all of
/// these transactions, and it is read last. So at its end, the last entry about each entity has decided.
/// [`Log::before_scan`] says how far back the log has to be read.
pub(super) async fn load_entities<R: Columnar>(
    log: &Log<R>,
    head: LogPosition,
    clock: &dyn Clock,
) -> Result<Snapshot<R>, StoreError> {
    let start = log.before_scan(head.seq, clock.now()).await?;
    let partitions = (0..ENTITY_PARTITIONS).map(|partition| async move {
        let mut columns = R::Columns::default();
        log.scan(partition, |record| columns.push(&record)).await?;
        Ok::<_, StoreError>(columns)
    });
    let records = try_join_all(partitions).await?;
    let end = log.head().await?.max(head.seq);
    if let Some(tail) = log.tail(start, end, clock).await? {
        return Ok(Snapshot::new(records, before(head, start, &tail), tail, None));
    }
    tracing::warn!(stream = R::STREAM, start, head = head.seq, "entries before the head of the log are missing");
    let tail = log.tail(head.seq, end, clock).await?;
    let tail = tail.ok_or_else(|| StoreError::Unavailable("the log has a gap".to_owned()))?;
    Ok(Snapshot::new(records, head, tail, None))
}

/// Returns the position of `seq`, which is not after the head. The tail begins behind it.
fn before<R: Columnar>(head: LogPosition, seq: u64, tail: &Tail<R>) -> LogPosition {
    let overlap = tail.batches.iter().take_while(|(number, _)| *number <= head.seq);
    let changes: usize = overlap.map(|(_, changes)| changes.len()).sum();
    LogPosition { seq, changes: head.changes.saturating_sub(changes as u64) }
}

/// Reads a chunk and compares it with its hash in the pointer.
async fn chunk<R: Columnar>(
    log: &Log<R>,
    generation: Uuid,
    number: usize,
    hash: Hash,
) -> Result<R::Columns, StoreError> {
    let packed = log.base_chunk(generation, number).await?;
    let packed = packed.ok_or_else(|| StoreError::corrupt(format!("chunk {number} is missing")))?;
    if chunk::hash(&packed) != hash {
        return Err(StoreError::corrupt(format!("chunk {number} is not what was written")));
    }
    chunk::unpack::<R>(&packed)
}
