//! Commits a batch of changes in one transaction. After a restore, a stream may begin anew, and versions are reset so that
//! any message may follow.

use aws_sdk_dynamodb::types::{AttributeValue, Put, ReturnValuesOnConditionCheckFailure, TransactWriteItem, Update};

use super::base::{Manifest, Standing};
use super::log::{LOG_KEEP_MILLIS, Log, LogPosition, position};
use super::writer::Writer;
use super::{Change, Record, Write, table};
use common::clock::Clock;
use common::store::{Attributes, IS_NEWER, Row, StoreError, b, n, reset_version, retry_conflicts, s};
use common::timestamp::{DAY_MILLIS, Timestamp};
use common::transaction;

/// The most changes in a batch. A DynamoDB transaction holds at most 100 writes, and two of them are the head and the
/// log entry.
const MAX_BATCH: usize = 98;
/// The most bytes of entities in a batch. Together with the log entry they stay well below DynamoDB's 4 MB for a
/// transaction.
const MAX_BATCH_BYTES: usize = 2_000_000;
/// The most bytes of a packed log entry, which must stay below DynamoDB's 400 KB for a row.
const MAX_ENTRY_BYTES: usize = 300_000;
/// How long the tombstone of a removed entity is kept: 90 days. A message waits for at most 14 days in the feed, and
/// for another 14 after it was sent again from the dead letters. The rest is for what an operator repeats or imports.
const TOMBSTONE_KEEP_MILLIS: i64 = 90 * DAY_MILLIS;
/// A writer that has lost this many races for a batch returns a conflict, and the batch may be handed in again. With
/// pauses of at most 100 ms, that takes less than two minutes.
const MAX_RACES: u32 = 1_000;

impl<R: Record> Log<R> {
    /// Splits writes, in their order, into batches that fit in a transaction. No batch has two writes of one entity.
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

    /// Commits one batch and returns, for each of its writes, whether it changed anything.
    ///
    /// Writes that are not newer than the stored entity are dropped, and the rest of the batch is tried again.
    ///
    /// `writer` remembers the head. If it is wrong, the refusal says where the head is. It is read from the table only
    /// if it is unknown. Each try has the time of `clock`, because readers tell by it how far back they must look.
    pub async fn commit(
        &self,
        batch: &[Write<R>],
        writer: &mut Writer,
        clock: &dyn Clock,
    ) -> Result<Vec<bool>, StoreError> {
        let mut live: Vec<usize> = (0..batch.len()).collect();
        let mut races = 0;
        while !live.is_empty() {
            writer.turn().await;
            let seq = match writer.head() {
                Some(seq) => seq,
                None => self.head().await?,
            };
            let request = self.market.client.transact_write_items();
            let request = request.set_transact_items(Some(self.transaction(batch, &live, seq, clock.now())?));
            match transaction::send(request).await {
                Ok(Ok(())) => {
                    writer.won(seq + 1);
                    break;
                }
                Ok(Err(cancelled)) => {
                    if cancelled.failed(0) || cancelled.failed(1) {
                        races = lost(races)?;
                        let head = cancelled.item(0).map(|head| position(Some(head))).transpose()?;
                        writer.lost(head.map(|head| head.seq));
                    } else {
                        writer.knew(seq);
                    }
                    let mut position = 2..;
                    live.retain(|_| !position.next().is_some_and(|at| cancelled.failed(at)));
                }
                Err(StoreError::Conflict) => {
                    races = lost(races)?;
                    writer.met_conflict(seq);
                }
                Err(StoreError::Throttled) => {
                    races = lost(races)?;
                    writer.was_throttled(seq);
                }
                Err(error) => {
                    // A request that is invalid says nothing about the head.
                    if matches!(error, StoreError::InvalidRequest(_)) {
                        writer.knew(seq);
                    } else {
                        writer.lost_sight();
                    }
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
        let changes = live.iter().map(|&index| &batch[index].change);
        let mut writes = Vec::from(self.advance(seq, seq + 1, changes, now)?);
        for &index in live {
            let put = self
                .put(entity_row(&batch[index], now))
                .condition_expression(IS_NEWER)
                .expression_attribute_names("#version", table::VERSION)
                .expression_attribute_values(":version", n(batch[index].version));
            writes.push(TransactWriteItem::builder().put(put.build()?).build());
        }
        Ok(writes)
    }

    /// Returns the writes that move the head from `seq` to `next`, and put the log entry of that number.
    fn advance<'c>(
        &self,
        seq: u64,
        next: u64,
        changes: impl ExactSizeIterator<Item = &'c Change<R>>,
        now: Timestamp,
    ) -> Result<[TransactWriteItem; 2], StoreError> {
        let head = Update::builder()
            .table_name(&self.market.table)
            .set_key(Some(table::head::<R>()))
            .update_expression("SET #seq = :next, #changes = if_not_exists(#changes, :zero) + :count")
            .condition_expression(if seq == 0 { "attribute_not_exists(#seq)" } else { "#seq = :seq" })
            .expression_attribute_names("#seq", table::SEQ)
            .expression_attribute_names("#changes", table::CHANGES)
            .expression_attribute_values(":next", n(next))
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":count", n(changes.len()))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        let head = if seq == 0 { head } else { head.expression_attribute_values(":seq", n(seq)) };
        let mut entry = table::log_entry::<R>(next);
        entry.insert(table::CHANGES.to_owned(), b(Self::pack(changes)?));
        entry.insert(table::TTL.to_owned(), n(now.plus_millis(LOG_KEEP_MILLIS).seconds()));
        let entry = self.put(entry).condition_expression("attribute_not_exists(#pk)");
        let entry = entry.expression_attribute_names("#pk", table::PK);
        Ok([
            TransactWriteItem::builder().update(head.build()?).build(),
            TransactWriteItem::builder().put(entry.build()?).build(),
        ])
    }

    fn put(&self, row: Row) -> aws_sdk_dynamodb::types::builders::PutBuilder {
        Put::builder().table_name(&self.market.table).set_item(Some(row))
    }

    /// Reads the sequence number of the newest entry, whatever the head says; 0 if there is no entry.
    pub async fn newest_entry(&self) -> Result<u64, StoreError> {
        let newest = self.market.query(table::log_partition::<R>(), None).scan_index_forward(false).limit(1);
        newest.send().await?.items().first().map_or(Ok(0), |row| Attributes(row).parsed(table::SK))
    }

    /// Waits until no transaction holds the head, which must be at `seen`. From then on, Queries show all that was written.
    /// Returns false if the head is elsewhere.
    pub async fn settle(&self, seen: LogPosition) -> Result<bool, StoreError> {
        if seen.seq == 0 {
            return Ok(self.head().await? == 0);
        }
        let same = Update::builder()
            .table_name(&self.market.table)
            .set_key(Some(table::head::<R>()))
            .update_expression("SET #seq = :seq")
            .condition_expression("#seq = :seq")
            .expression_attribute_names("#seq", table::SEQ)
            .expression_attribute_values(":seq", n(seen.seq));
        let same = TransactWriteItem::builder().update(same.build()?).build();
        let sent = retry_conflicts(MAX_RACES, || {
            transaction::send(self.market.client.transact_write_items().transact_items(same.clone()))
        });
        Ok(sent.await?.is_ok())
    }

    /// Begins the stream anew with a base: moves the head to the end of the base, puts an empty entry there, and puts the
    /// manifest, in one transaction. Returns false, and changes nothing, if the head or the manifest is not the one that
    /// was `seen`, or if there is such an entry.
    ///
    /// Before that entry is a gap. So every reader that stands before it, wherever it believes to be, reads the base.
    pub async fn begin_anew(&self, base: &Manifest, seen: &Standing, now: Timestamp) -> Result<bool, StoreError> {
        let nothing = std::iter::empty::<&Change<R>>();
        let mut writes = Vec::from(self.advance(seen.head.seq, base.end.seq, nothing, now)?);
        let put = self.put(base.row::<R>()?).expression_attribute_names("#generation", table::GENERATION);
        let put = match &seen.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        writes.push(TransactWriteItem::builder().put(put.build()?).build());
        let request = self.market.client.transact_write_items().set_transact_items(Some(writes));
        Ok(transaction::send(request).await?.is_ok())
    }

    /// Sets an entity's version to 0. Returns the version that it had, or `None` if there is no such entity.
    pub async fn reset_version(&self, id: &R::Id) -> Result<Option<u64>, StoreError> {
        let key = table::entity::<R>(&id.to_string());
        reset_version(&self.market.client, &self.market.table, key, table::VERSION).await
    }
}

/// Counts a lost race. After [`MAX_RACES`] it gives up.
fn lost(races: u32) -> Result<u32, StoreError> {
    if races == MAX_RACES { Err(StoreError::Conflict) } else { Ok(races + 1) }
}

/// Returns the row of an entity after this write.
pub fn entity_row<R: Record>(write: &Write<R>, now: Timestamp) -> Row {
    let mut row = table::entity::<R>(&write.id().to_string());
    row.insert(table::VERSION.to_owned(), n(write.version));
    if let Some(data) = &write.data {
        row.insert(table::DATA.to_owned(), s(data));
    } else {
        row.insert(table::REMOVED.to_owned(), AttributeValue::Bool(true));
        row.insert(table::TTL.to_owned(), n(now.plus_millis(TOMBSTONE_KEEP_MILLIS).seconds()));
    }
    row
}
