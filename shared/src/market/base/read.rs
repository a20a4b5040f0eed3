//! Reading a stream whole: from its base, or where none can be read from its entities, then the log behind.

use std::collections::HashMap;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::chunk;
use super::pointer::{Hash, Pointer};
use crate::clock::{Clock, Moment};
use crate::market::columns::Columns;
use crate::market::log::{Log, Position, Tail, position};
use crate::market::stream::{Batch, Change, Record};
use crate::market::table;
use crate::store::{Attributes, StoreError};

/// So many chunks are read at a time.
const AT_A_TIME: usize = 16;

/// A stream's records as of a position of its log, and the log from there to its end.
pub struct Whole<R: Record> {
    /// The records at the position.
    pub records: Vec<R::Columns>,
    /// What they stand at.
    pub position: Position,
    /// The log behind the position, to its end.
    pub tail: Vec<Batch<R>>,
    /// When the Query that saw the end of the log was sent.
    pub as_of: Moment,
    /// The base that the records come from; none if they were read from the entities.
    pub(crate) base: Option<Pointer>,
}

/// Where a stream stands.
pub struct Standing {
    pub(super) head: Position,
    /// The base's pointer; the error if there is one that cannot be read.
    pub(super) base: Option<Result<Pointer, StoreError>>,
    /// Which generation the pointer names, readable or not.
    pub(super) generation: Option<String>,
}

impl Standing {
    /// How many changes lie behind the base; all, where there is none that can be read.
    pub fn behind(&self) -> u64 {
        let base = self.base.as_ref().and_then(|base| base.as_ref().ok());
        self.head.changes.saturating_sub(base.map_or(0, |base| base.position.changes))
    }
}

impl<R: Record> Whole<R> {
    /// The position at the end of the log.
    pub fn end(&self) -> Position {
        let changes: usize = self.tail.iter().map(|(_, changes)| changes.len()).sum();
        Position {
            seq: self.tail.last().map_or(self.position.seq, |(seq, _)| *seq),
            changes: self.position.changes + changes as u64,
        }
    }

    /// The records at the end of the log: those at the position that it does not touch, then those that it does.
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
            records.push(R::Columns::of(last.values().flatten()));
        }
        records
    }

    fn of(records: Vec<R::Columns>, position: Position, tail: Tail<R>, base: Option<Pointer>) -> Self {
        Self { records, position, tail: tail.batches, as_of: tail.as_of, base }
    }
}

impl<R: Record> Log<R> {
    /// Everything, as of now.
    pub async fn whole(&self, clock: &dyn Clock) -> Result<Whole<R>, StoreError> {
        let standing = self.standing().await?;
        self.whole_at(&standing, clock).await
    }

    /// Head and pointer by one Query, as of one time.
    pub(super) async fn standing(&self) -> Result<Standing, StoreError> {
        let items = self.market.partition(table::standing_partition::<R>()).await?;
        let find = |name: &str| items.iter().find(|item| Attributes(item).text(table::SK) == Some(name));
        let base = find(table::BASE);
        let generation = base.and_then(|item| Attributes(item).text(table::GENERATION)).map(ToOwned::to_owned);
        Ok(Standing { head: position(find(table::HEAD))?, base: base.map(Pointer::of), generation })
    }

    pub(super) async fn whole_at(&self, standing: &Standing, clock: &dyn Clock) -> Result<Whole<R>, StoreError> {
        let from_base = match &standing.base {
            None => return self.read_entities(standing.head, clock).await,
            Some(Ok(pointer)) => self.read_base(pointer, standing.head, clock).await,
            Some(Err(error)) => Err(error.clone()),
        };
        match from_base {
            Err(error @ StoreError::Corrupt { .. }) => {
                tracing::error!(stream = R::STREAM, %error, "the base cannot be read: the entities are read instead");
                self.read_entities(standing.head, clock).await
            }
            other => other,
        }
    }

    /// Chunks and log at a time: the base is exact where it stands, so that neither waits for the other.
    async fn read_base(&self, pointer: &Pointer, head: Position, clock: &dyn Clock) -> Result<Whole<R>, StoreError> {
        let chunks = pointer.hashes.iter().enumerate().map(|(number, hash)| self.chunk(pointer, number, *hash));
        let chunks = stream::iter(chunks.collect::<Vec<_>>()).buffered(AT_A_TIME).try_collect();
        let tail = self.tail(pointer.position.seq, head.seq, clock);
        let (records, tail) = futures_util::try_join!(chunks, tail)?;
        let tail = tail.ok_or_else(|| StoreError::corrupt("the log behind the base has a gap"))?;
        Ok(Whole::of(records, pointer.position, tail, Some(pointer.clone())))
    }

    /// The log is read after the entities: whatever a scan saw too early or too late, its last word on each
    /// entity stands by then.
    pub(super) async fn read_entities(&self, head: Position, clock: &dyn Clock) -> Result<Whole<R>, StoreError> {
        let records = self.scan().await?;
        let tail = self.tail(head.seq, head.seq, clock).await?;
        let tail = tail.ok_or_else(|| StoreError::Unavailable("the log has a gap".to_owned()))?;
        Ok(Whole::of(records, head, tail, None))
    }

    /// A chunk never changes, so that the cheaper read that may be behind is right if it finds one at all.
    async fn chunk(&self, pointer: &Pointer, number: usize, hash: Hash) -> Result<R::Columns, StoreError> {
        let get = |strongly: bool| {
            let key = table::base_chunk::<R>(pointer.generation, number);
            let get = self.market.client.get_item().table_name(&self.market.table).set_key(Some(key));
            get.consistent_read(strongly).send()
        };
        let found = match get(false).await?.item {
            Some(item) => Some(item),
            None => get(true).await?.item,
        };
        let packed = found.as_ref().and_then(|item| Attributes(item).bytes(table::PACKED));
        let packed = packed.ok_or_else(|| StoreError::corrupt(format!("chunk {number} is missing")))?;
        if Pointer::hash(packed) != hash {
            return Err(StoreError::corrupt(format!("chunk {number} is not what was written")));
        }
        chunk::unpack::<R>(packed)
    }
}
