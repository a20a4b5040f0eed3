//! The log of changes: dense sequence numbers per stream, a batch of changes in one transaction.
//!
//! A transaction moves the stream's head from *n* to *n+1*, puts log entry *n+1*, and puts each changed
//! entity on condition that it is newer than what is there. Readers start from a strong scan of the
//! entities taken *after* reading the head, then apply log entries; an entry may repeat what the scan saw,
//! never contradict it once the log has been read to its end.

use std::fmt::Display;
use std::marker::PhantomData;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::{Market, table};
use crate::store::{Attributes, Item, StoreError, b, n, s};
use crate::timestamp::Timestamp;
use crate::transaction;

/// A transaction holds at most 100 writes (DynamoDB); two of them are the head and the log entry.
const MAX_BATCH: usize = 98;
/// Entities and log entry of a batch stay below this, well inside DynamoDB's 4 MB for a transaction.
const MAX_BATCH_BYTES: usize = 2_000_000;
/// The packed log entry stays below DynamoDB's 400 KB for an item.
const MAX_ENTRY_BYTES: usize = 300_000;
/// Log entries are kept for 28 days.
const KEEP_SECONDS: i64 = 28 * 24 * 3_600;
/// A writer that loses so many races in a row hands the batch back for a later try.
const MAX_RACES: u32 = 50;
/// The layout of packed changes; a reader that does not know it says so.
const LAYOUT: u8 = 1;

/// A record that travels in a stream and is held by replicas.
pub trait Record: Clone + Send + Sync + Serialize + DeserializeOwned + 'static {
    /// Its identifier.
    type Id: Clone + Ord + Display + Send + Sync + Serialize + DeserializeOwned;
    /// The stream's name in the table.
    const STREAM: &'static str;

    /// Its identifier.
    fn id(&self) -> Self::Id;

    /// The record in an entity's data.
    fn from_data(data: &str) -> Result<Self, serde_json::Error>;
}

/// What happened to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change<R, I> {
    /// It is now this.
    Put(R),
    /// It is gone.
    Remove(I),
}

/// A change on its way into the table.
#[derive(Clone, Debug)]
pub struct Write<R: Record> {
    /// The entity's version; not newer than what is there means no change.
    pub version: u64,
    /// What replicas learn.
    pub change: Change<R, R::Id>,
    /// The entity's data as JSON; none for a removal.
    pub data: Option<String>,
}

impl<R: Record> Write<R> {
    /// The entity that changes.
    pub fn id(&self) -> R::Id {
        match &self.change {
            Change::Put(record) => record.id(),
            Change::Remove(id) => id.clone(),
        }
    }
}

/// A committed batch: its sequence number and its changes.
pub type Batch<R> = (u64, Vec<Change<R, <R as Record>::Id>>);

/// One stream of the market table.
pub struct Log<R> {
    market: Market,
    _record: PhantomData<fn() -> R>,
}

impl<R> Clone for Log<R> {
    fn clone(&self) -> Self {
        Self { market: self.market.clone(), _record: PhantomData }
    }
}

impl<R: Record> Log<R> {
    /// The stream of `R` in the market table.
    pub fn new(market: Market) -> Self {
        Self { market, _record: PhantomData }
    }

    /// The sequence number of the last committed batch; 0 before the first.
    pub async fn head(&self) -> Result<u64, StoreError> {
        let head = self.market.get(table::head::<R>()).await?;
        head.map_or(Ok(0), |item| Attributes(&item).required_number(table::SEQ))
    }

    /// Every live record, read strongly from the entities.
    pub async fn scan(&self) -> Result<Vec<R>, StoreError> {
        let partitions = (0..table::ENTITY_PARTITIONS).map(|number| async move {
            let items = self.market.partition(table::entity_partition::<R>(number)).await?;
            let live = items.iter().filter_map(|item| Attributes(item).text(table::DATA));
            let records: Result<Vec<R>, _> = live.map(R::from_data).collect();
            records.map_err(|error| StoreError::corrupt(format!("{}: {error}", R::STREAM)))
        });
        Ok(try_join_all(partitions).await?.into_iter().flatten().collect())
    }

    /// The batches behind `seq` in order, each with its number, read strongly; as many as one call gives,
    /// and whether there are more.
    pub async fn since(&self, seq: u64) -> Result<(Vec<Batch<R>>, bool), StoreError> {
        let behind = Some(table::log_position(seq));
        let page = self.market.query(table::log_partition::<R>(), behind).send().await?;
        let batches: Result<Vec<_>, _> = page.items().iter().map(Self::unpack).collect();
        Ok((batches?, page.last_evaluated_key().is_some()))
    }

    /// Splits writes into batches that fit a transaction: each entity at most once, in order.
    pub fn batches(writes: Vec<Write<R>>) -> Vec<Vec<Write<R>>> {
        let (mut batches, mut batch, mut ids) = (Vec::new(), Vec::new(), std::collections::BTreeSet::new());
        let (mut bytes, mut packed) = (0, 0);
        for write in writes {
            let size = write.data.as_ref().map_or(0, String::len) + 200;
            let entry = postcard::experimental::serialized_size(&write.change).unwrap_or(size);
            let full = batch.len() == MAX_BATCH || bytes + size > MAX_BATCH_BYTES || packed + entry > MAX_ENTRY_BYTES;
            if full || ids.contains(&write.id()) {
                batches.push(std::mem::take(&mut batch));
                ids.clear();
                (bytes, packed) = (0, 0);
            }
            ids.insert(write.id());
            bytes += size;
            packed += entry;
            batch.push(write);
        }
        if !batch.is_empty() {
            batches.push(batch);
        }
        batches
    }

    /// Commits one batch and says for each of its writes whether it changed anything.
    ///
    /// `head` is the last sequence number this writer knows of, and is moved along.
    pub async fn commit(
        &self,
        batch: &[Write<R>],
        head: &mut Option<u64>,
        now: Timestamp,
    ) -> Result<Vec<bool>, StoreError> {
        let mut live: Vec<usize> = (0..batch.len()).collect();
        let mut races = 0;
        while !live.is_empty() {
            let seq = match *head {
                Some(seq) => seq,
                None => self.head().await?,
            };
            let request = self.market.client.transact_write_items();
            let request = request.set_transact_items(Some(self.transaction(batch, &live, seq, now)?));
            match transaction::send(request).await {
                Ok(Ok(())) => {
                    *head = Some(seq + 1);
                    break;
                }
                Ok(Err(cancelled)) => {
                    let moved = cancelled.failed(0) || cancelled.failed(1);
                    *head = (!moved).then_some(seq);
                    let mut position = 2..;
                    live.retain(|_| !position.next().is_some_and(|at| cancelled.failed(at)));
                    if moved {
                        races = lost(races).await?;
                    }
                }
                Err(StoreError::Conflict) => {
                    *head = None;
                    races = lost(races).await?;
                }
                Err(error) => {
                    *head = None;
                    return Err(error);
                }
            }
        }
        Ok((0..batch.len()).map(|index| live.contains(&index)).collect())
    }

    fn transaction(
        &self,
        batch: &[Write<R>],
        live: &[usize],
        seq: u64,
        now: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let head = Update::builder()
            .table_name(&self.market.table)
            .set_key(Some(table::head::<R>()))
            .update_expression("SET #seq = :next")
            .condition_expression(if seq == 0 { "attribute_not_exists(#seq)" } else { "#seq = :seq" })
            .expression_attribute_names("#seq", table::SEQ)
            .expression_attribute_values(":next", n(seq + 1));
        let head = if seq == 0 { head } else { head.expression_attribute_values(":seq", n(seq)) };
        let mut entry = table::log_entry::<R>(seq + 1);
        entry.insert(table::CHANGES.to_owned(), b(Self::pack(live.iter().map(|&index| &batch[index].change))?));
        entry.insert(table::TTL.to_owned(), n(now.seconds() + KEEP_SECONDS));
        let entry = self.put(entry).condition_expression("attribute_not_exists(#pk)");
        let entry = entry.expression_attribute_names("#pk", table::PK);
        let mut writes = vec![
            TransactWriteItem::builder().update(head.build()?).build(),
            TransactWriteItem::builder().put(entry.build()?).build(),
        ];
        for &index in live {
            let put = self
                .put(entity(&batch[index]))
                .condition_expression("attribute_not_exists(#version) OR #version < :version")
                .expression_attribute_names("#version", table::VERSION)
                .expression_attribute_values(":version", n(batch[index].version));
            writes.push(TransactWriteItem::builder().put(put.build()?).build());
        }
        Ok(writes)
    }

    fn put(&self, item: Item) -> aws_sdk_dynamodb::types::builders::PutBuilder {
        Put::builder().table_name(&self.market.table).set_item(Some(item))
    }

    fn pack<'c>(changes: impl Iterator<Item = &'c Change<R, R::Id>>) -> Result<Vec<u8>, StoreError> {
        let changes: Vec<_> = changes.collect();
        Ok(postcard::to_extend(&changes, vec![LAYOUT])?)
    }

    fn unpack(item: &Item) -> Result<Batch<R>, StoreError> {
        let read = Attributes(item);
        let seq = read.parsed(table::SK)?;
        let packed = read.bytes(table::CHANGES).unwrap_or_default();
        let Some((&LAYOUT, changes)) = packed.split_first() else {
            return Err(StoreError::corrupt(format!("{} log entry {seq}: unknown layout", R::STREAM)));
        };
        let changes = postcard::from_bytes(changes)
            .map_err(|error| StoreError::corrupt(format!("{} log entry {seq}: {error}", R::STREAM)))?;
        Ok((seq, changes))
    }
}

/// Waits a little after a race that another writer won.
async fn lost(races: u32) -> Result<u32, StoreError> {
    if races == MAX_RACES {
        return Err(StoreError::Conflict);
    }
    tokio::time::sleep(crate::store::jitter(races)).await;
    Ok(races + 1)
}

fn entity<R: Record>(write: &Write<R>) -> Item {
    let mut item = table::entity::<R>(&write.id().to_string());
    item.insert(table::VERSION.to_owned(), n(write.version));
    match &write.data {
        Some(data) => item.insert(table::DATA.to_owned(), s(data)),
        None => item.insert(table::REMOVED.to_owned(), aws_sdk_dynamodb::types::AttributeValue::Bool(true)),
    };
    item
}
