//! Loads a whole stream from its base, or by a scan of its entities. What was read is kept until the load is done,
//! whatever fails in between.
//!
//! A start in a crowd may be refused many times. It never begins anew: each further step asks only for what is still
//! missing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures_util::future::{join, join_all};
use futures_util::{StreamExt, stream};

use super::columns::{Columnar, Columns};
use super::part::{self, Delta};
use super::snapshot::{LogTail, Snapshot};
use crate::beside;
use crate::objects::Objects;
use common::clock::{Clock, Moment};
use common::store::StoreError;
use market::{ENTITY_PARTITIONS, Hash, Log, LogPosition, Manifest, ObjectRef, Standing, Tail};
use tokio::sync::Mutex;

/// How many pieces are read at the same time.
const CONCURRENT_READS: usize = 16;

/// A load that is under way.
///
/// It keeps the columns of what it has read. A listing takes 41 bytes of columns, and an item its texts and 20 more.
/// What is on the way takes at most 130 MB: 16 parts of 4 MB, packed, and one of 32 MB that is being unpacked into
/// columns.
pub struct Load<R: Columnar> {
    log: Log<R>,
    objects: Objects,
    clock: Arc<dyn Clock>,
    pieces: Pieces<R>,
    tail: LogTail<R>,
    /// A scan that was refused.
    scan: Option<EntityScan<R>>,
}

impl<R: Columnar> Load<R> {
    pub fn new(log: Log<R>, objects: Objects, clock: Arc<dyn Clock>) -> Self {
        Self { log, objects, clock, pieces: Pieces::default(), tail: LogTail::new(0), scan: None }
    }

    /// Reads what is still missing, and returns the stream as it is now. After an error, call it again: what was read
    /// stays, also if a new base is in place by then, as far as that one has the same pieces.
    ///
    /// If the base cannot be read, it is looked for again, because it may just have been replaced. If it is still the
    /// same, the entities are read instead.
    pub async fn step(&mut self) -> Result<Snapshot<R>, StoreError> {
        let mut broken = None;
        loop {
            let asked = Moment::now(&*self.clock);
            let standing = self.log.standing().await?;
            let Some(found) = &standing.manifest else { return self.entities(&standing).await };
            let generation = found.as_ref().ok().map(|base| base.generation);
            if broken == Some(generation) {
                return self.entities(&standing).await;
            }
            let outcome = match found {
                Ok(base) => self.base(base, standing.head, asked).await,
                Err(error) => Err(error.clone()),
            };
            let error = match outcome {
                Err(error @ StoreError::Corrupt { .. }) => error,
                outcome => return outcome,
            };
            tracing::error!(stream = R::STREAM, %error, "the base cannot be read");
            broken = Some(generation);
        }
    }

    /// Reads the pieces and the log at the same time. Neither has to wait for the other, because base and deltas are
    /// exact at their end.
    async fn base(&mut self, base: &Manifest, head: LogPosition, asked: Moment) -> Result<Snapshot<R>, StoreError> {
        self.tail.begin_at(base.end.seq);
        let pieces = self.pieces.read(base, &self.objects);
        let (pieces, tail) = join(pieces, self.tail.read(&self.log, head.seq, usize::MAX)).await;
        pieces?;
        if !tail? {
            return Err(StoreError::corrupt("the log behind the base has a gap"));
        }
        self.scan = None;
        let (records, deltas) = self.pieces.take(base);
        let scanned_at = Some(base.scanned_at);
        Ok(Snapshot { records, deltas, position: base.end, tail: self.tail.take(), as_of: asked, scanned_at })
    }

    /// Reads the entities. Once that was refused, a run that makes a base comes first, for as long as it lives: the starts
    /// of a crowd would take the throughput from the run that all of them need.
    async fn entities(&mut self, standing: &Standing) -> Result<Snapshot<R>, StoreError> {
        if self.scan.is_some() && standing.is_being_made(self.clock.now()) {
            return Err(StoreError::Unavailable("a base is being made".to_owned()));
        }
        let mut scan = match self.scan.take() {
            Some(scan) => scan,
            None => EntityScan::begin(&self.log, standing.head, &*self.clock).await?,
        };
        match scan.read(&self.log, &*self.clock).await {
            Ok(Some(snapshot)) => {
                self.clear();
                Ok(snapshot)
            }
            Ok(None) => Err(StoreError::Unavailable("the log has a gap".to_owned())),
            Err(error) => {
                self.scan = Some(scan);
                Err(error)
            }
        }
    }

    /// Drops what was read. The next step begins anew.
    fn clear(&mut self) {
        (self.pieces, self.tail, self.scan) = (Pieces::default(), LogTail::new(0), None);
    }
}

/// The parts and deltas that were read, by their hashes.
struct Pieces<R: Columnar> {
    parts: HashMap<Hash, R::Columns>,
    deltas: HashMap<Hash, Delta<R>>,
    /// Only one piece is unpacked at a time. Two at a time would take a tenth more memory, and save a tenth of the time.
    unpacking: Arc<Mutex<()>>,
}

/// A piece that was read.
enum Unpacked<R: Columnar> {
    Part(R::Columns),
    Delta(Delta<R>),
}

type Unpack<R> = fn(&[u8]) -> Result<Unpacked<R>, StoreError>;

impl<R: Columnar> Default for Pieces<R> {
    fn default() -> Self {
        Self { parts: HashMap::new(), deltas: HashMap::new(), unpacking: Arc::default() }
    }
}

impl<R: Columnar> Pieces<R> {
    /// Reads the pieces of a base that are missing. After an error, those that could be read are there.
    async fn read(&mut self, base: &Manifest, objects: &Objects) -> Result<(), StoreError> {
        let wanted: HashSet<Hash> = base.objects().map(|object| object.hash).collect();
        self.parts.retain(|hash, _| wanted.contains(hash));
        self.deltas.retain(|hash, _| wanted.contains(hash));
        let parts = base.parts.iter().filter(|part| !self.parts.contains_key(&part.hash));
        let parts = parts.map(|part| (part, unpack_part::<R> as Unpack<R>));
        let deltas = base.deltas.iter().map(|delta| &delta.object);
        let deltas = deltas.filter(|delta| !self.deltas.contains_key(&delta.hash));
        let deltas = deltas.map(|delta| (delta, unpack_delta::<R> as Unpack<R>));
        let unpacking = Arc::clone(&self.unpacking);
        let read = |(object, unpack)| read_piece(object, unpack, objects, &unpacking);
        let reads: Vec<_> = parts.chain(deltas).map(read).collect();
        let mut reads = stream::iter(reads).buffer_unordered(CONCURRENT_READS);
        let mut outcome = Ok(());
        while let Some(read) = reads.next().await {
            match read {
                Ok((hash, Unpacked::Part(part))) => drop(self.parts.insert(hash, part)),
                Ok((hash, Unpacked::Delta(delta))) => drop(self.deltas.insert(hash, delta)),
                // If a piece is broken, it does not help to ask again for those that were refused.
                Err(error) if !matches!(outcome, Err(StoreError::Corrupt { .. })) => outcome = Err(error),
                Err(_) => {}
            }
        }
        outcome
    }

    /// Takes out the parts and the deltas of a base, in its order. Of two equal deltas only the newer is taken, since it
    /// has the last word about all that they name.
    fn take(&mut self, base: &Manifest) -> (Vec<R::Columns>, Vec<Delta<R>>) {
        let Self { mut parts, mut deltas, .. } = std::mem::take(self);
        let records = base.parts.iter().filter_map(|part| parts.remove(&part.hash)).collect();
        let newest_first = base.deltas.iter().rev().filter_map(|delta| deltas.remove(&delta.object.hash));
        let mut deltas: Vec<_> = newest_first.collect();
        deltas.reverse();
        (records, deltas)
    }
}

async fn read_piece<R: Columnar>(
    object: &ObjectRef,
    unpack: Unpack<R>,
    objects: &Objects,
    unpacking: &Mutex<()>,
) -> Result<(Hash, Unpacked<R>), StoreError> {
    let (packed, object) = (part::get(object, objects).await?, object.clone());
    let _turn = unpacking.lock().await;
    beside(move || {
        part::verify(&object, &packed)?;
        Ok((object.hash, unpack(&packed)?))
    })
    .await?
}

fn unpack_part<R: Columnar>(packed: &[u8]) -> Result<Unpacked<R>, StoreError> {
    part::unpack::<R>(packed).map(Unpacked::Part)
}

fn unpack_delta<R: Columnar>(packed: &[u8]) -> Result<Unpacked<R>, StoreError> {
    Delta::unpack(packed).map(Unpacked::Delta)
}

/// A scan of the entities that may go on after a failure.
///
/// It may see a transaction in part, even the one that moved the head to where it was read. The log holds all of these
/// transactions, and it is read last. So at its end, the last entry about each entity has decided.
/// [`Log::before_scan`] says how far back the log has to be read.
struct EntityScan<R: Columnar> {
    /// Where the head was before the scan.
    head: LogPosition,
    /// Behind which entry the log is read.
    start: u64,
    partitions: Vec<PartitionScan<R>>,
}

/// How far a partition was read.
struct PartitionScan<R: Columnar> {
    number: u32,
    columns: R::Columns,
    /// The last id that was read.
    behind: Option<String>,
    is_done: bool,
}

impl<R: Columnar> PartitionScan<R> {
    fn begin(number: u32) -> Self {
        Self { number, columns: R::Columns::default(), behind: None, is_done: false }
    }

    /// Reads the pages that are missing. After an error, those that could be read are there.
    async fn read(&mut self, log: &Log<R>) -> Result<(), StoreError> {
        while !self.is_done {
            let page = log.entities(self.number, self.behind.clone()).await?;
            for record in &page.records {
                self.columns.push(record);
            }
            (self.is_done, self.behind) = (page.last.is_none(), page.last);
        }
        Ok(())
    }
}

impl<R: Columnar> EntityScan<R> {
    /// Prepares a scan. `head` was read before.
    async fn begin(log: &Log<R>, head: LogPosition, clock: &dyn Clock) -> Result<Self, StoreError> {
        let start = log.before_scan(head.seq, clock.now()).await?;
        Ok(Self { head, start, partitions: (0..ENTITY_PARTITIONS).map(PartitionScan::begin).collect() })
    }

    /// Reads the entities that are missing, and then the log. Returns `None` if the log has a gap behind the head that
    /// was there before the scan. Then another scan is needed, because the stream may have begun anew.
    async fn read(&mut self, log: &Log<R>, clock: &dyn Clock) -> Result<Option<Snapshot<R>>, StoreError> {
        join_all(self.partitions.iter_mut().map(|partition| partition.read(log)))
            .await
            .into_iter()
            .collect::<Result<(), _>>()?;
        let end = log.head().await?.max(self.head.seq);
        let (position, tail) = if let Some(tail) = log.tail(self.start, end, clock).await? {
            (self.position_before(&tail), tail)
        } else {
            let (start, head) = (self.start, self.head.seq);
            tracing::warn!(stream = R::STREAM, start, head, "entries before the head of the log are missing");
            let Some(tail) = log.tail(head, end, clock).await? else { return Ok(None) };
            (self.head, tail)
        };
        let records = std::mem::take(&mut self.partitions).into_iter().map(|partition| partition.columns).collect();
        let Tail { batches: tail, as_of } = tail;
        Ok(Some(Snapshot { records, deltas: Vec::new(), position, tail, as_of, scanned_at: None }))
    }

    /// Returns the position of the start, which is not after the head.
    fn position_before(&self, tail: &Tail<R>) -> LogPosition {
        let overlap = tail.batches.iter().take_while(|(seq, _)| *seq <= self.head.seq);
        let changes: usize = overlap.map(|(_, changes)| changes.len()).sum();
        LogPosition { seq: self.start, changes: self.head.changes.saturating_sub(changes as u64) }
    }
}
