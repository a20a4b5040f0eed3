//! Reads a whole stream from its entities, and the log from well before the scan. Partitions that were read stay,
//! whatever fails afterwards.

use std::collections::HashMap;

use common::clock::Clock;
use common::store::StoreError;
use futures_util::future::join_all;
use market::{ENTITY_PARTITIONS, Log, LogPosition, Tail};

use super::columns::{Columnar, Columns};
use super::snapshot::Snapshot;

/// A scan of the entities that may go on after a failure.
///
/// It may see a transaction in part, even the one that moved the head to where it was read. The log holds all of these
/// transactions, and it is read last. So at its end, the last entry about each entity has decided.
/// [`Log::before_scan`] says how far back the log has to be read.
pub(super) struct EntityScan<R: Columnar> {
    /// Where the head was before the scan.
    head: LogPosition,
    /// Behind which entry the log is read.
    start: u64,
    partitions: HashMap<u32, R::Columns>,
}

impl<R: Columnar> EntityScan<R> {
    /// Prepares a scan. `head` was read before.
    pub(super) async fn begin(log: &Log<R>, head: LogPosition, clock: &dyn Clock) -> Result<Self, StoreError> {
        let start = log.before_scan(head.seq, clock.now()).await?;
        Ok(Self { head, start, partitions: HashMap::new() })
    }

    /// Reads the partitions that are missing, and then the log. Returns `None` if the log has a gap behind the head that
    /// was there before the scan. Then another scan is needed, because the stream may have begun anew.
    pub(super) async fn read(&mut self, log: &Log<R>, clock: &dyn Clock) -> Result<Option<Snapshot<R>>, StoreError> {
        self.read_partitions(log).await?;
        let end = log.head().await?.max(self.head.seq);
        let (position, tail) = if let Some(tail) = log.tail(self.start, end, clock).await? {
            (self.position_before(&tail), tail)
        } else {
            let (start, head) = (self.start, self.head.seq);
            tracing::warn!(stream = R::STREAM, start, head, "entries before the head of the log are missing");
            let Some(tail) = log.tail(head, end, clock).await? else { return Ok(None) };
            (self.head, tail)
        };
        let records = std::mem::take(&mut self.partitions).into_values().collect();
        let Tail { batches: tail, as_of } = tail;
        Ok(Some(Snapshot { records, deltas: Vec::new(), position, tail, as_of, scanned_at: None }))
    }

    async fn read_partitions(&mut self, log: &Log<R>) -> Result<(), StoreError> {
        let missing = (0..ENTITY_PARTITIONS).filter(|partition| !self.partitions.contains_key(partition));
        let reads = missing.map(|partition| async move {
            let mut columns = R::Columns::default();
            log.scan(partition, |record| columns.push(&record)).await?;
            Ok::<_, StoreError>((partition, columns))
        });
        let mut outcome = Ok(());
        for read in join_all(reads.collect::<Vec<_>>()).await {
            match read {
                Ok((partition, columns)) => drop(self.partitions.insert(partition, columns)),
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    /// Returns the position of the start, which is not after the head.
    fn position_before(&self, tail: &Tail<R>) -> LogPosition {
        let overlap = tail.batches.iter().take_while(|(seq, _)| *seq <= self.head.seq);
        let changes: usize = overlap.map(|(_, changes)| changes.len()).sum();
        LogPosition { seq: self.start, changes: self.head.changes.saturating_sub(changes as u64) }
    }
}
