//! The log of changes. Each stream numbers its batches of changes without gaps, and commits each in one transaction.
//!
//! A transaction moves the stream's head from *n* to *n+1*, puts log entry *n+1*, and puts each changed entity on
//! condition that it is newer than the stored one.
//!
//! Readers start from a base, which is exact at its sequence number, or from a strongly consistent scan of the entities.
//! Then they apply the log entries that follow: behind the base, or from well before the head that they read before the
//! scan ([`Log::before_scan`]). An entry may repeat what the scan saw, but once the log has been read to its end,
//! it does not contradict what the scan saw.
//!
//! An entry or an entity that cannot be read is an error of the whole stream. It is not left out as elsewhere
//! ([`common::rows`]): without it, a replica would answer with wrong pages and totals, and nobody would know.
//!
//! # Where a reader of the entities begins
//!
//! A scan consists of Queries, and a Query beside a transaction may see some of its writes and miss others. So it would
//! not be enough to read the log after the head that was there before the scan:
//!
//! 1. A transaction writes the head (7), log entry 7, and the entities A and B.
//! 2. A reader's Query already sees that the head is 7.
//! 3. Its scan sees the new A, but still the old B.
//! 4. The log after entry 7 is empty. The reader would keep the old B until B changes again.
//!
//! Therefore the reader begins well before the head, with entry 6 or an earlier one, and reads the log only after the
//! scan. A transaction that was committed long before the scan has been seen as a whole. Every later one is in the part
//! of the log that is read, and so its changes are applied in their order, whatever the scan has seen of them. An entry
//! that is older than what the scan saw does no harm, because the entries after it follow in the same log.
//!
//! A transaction may also be committed during the scan. Once the scan has ended, the reader asks for the head by a
//! `GetItem`, which sees each transaction as a whole or not at all. It reads the log at least up to there.

use std::marker::PhantomData;
use std::time::Duration;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};
use serde::{Deserialize, Serialize};

use super::{Batch, Change, Market, Record, table};
use common::backoff::equal_jitter;
use common::clock::{Clock, Moment};
use common::store::{Attributes, Row, StoreError, get_row};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// The longest pauses between looks for an entry that is not there, even for a `GetItem`. All pauses together fit in the
/// time that a request has.
const GAP_PAUSES: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(80), Duration::from_millis(320)];
/// The read units of a full page, which is 1 MB. They are assumed if the store does not say what a page took.
const PAGE_UNITS: f64 = 256.0;
/// How old an entry must be for a scan to see all of its transaction: five minutes. Transactions take milliseconds. The
/// rest is for clocks that are wrong.
const MIN_AGE_MILLIS: i64 = 5 * 60 * 1_000;
/// At least this many entries are read again, whatever the clocks say.
const MIN_OVERLAP: u64 = 16;
/// How long log entries are kept: 28 days.
pub(super) const LOG_KEEP_MILLIS: i64 = 28 * DAY_MILLIS;

/// One stream of the market table.
pub struct Log<R> {
    pub(super) market: Market,
    _record: PhantomData<fn() -> R>,
}

/// A position in a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPosition {
    /// The sequence number of the last committed batch; 0 before the first.
    pub seq: u64,
    /// How many changes have been committed up to there.
    pub changes: u64,
}

/// The log after a position, read to its end.
pub struct Tail<R: Record> {
    pub batches: Vec<Batch<R>>,
    /// When the Query that saw the end was sent.
    pub as_of: Moment,
}

impl<R> Clone for Log<R> {
    fn clone(&self) -> Self {
        Self { market: self.market.clone(), _record: PhantomData }
    }
}

impl<R: Record> Log<R> {
    pub fn new(market: Market) -> Self {
        Self { market, _record: PhantomData }
    }

    /// Reads the sequence number of the last committed batch; 0 before the first.
    pub async fn head(&self) -> Result<u64, StoreError> {
        let head = get_row(&self.market.client, &self.market.table, table::head::<R>()).await?;
        Ok(position(head.as_ref())?.seq)
    }

    /// Visits every live record in one of the [`ENTITY_PARTITIONS`] partitions, by strongly consistent Queries.
    ///
    /// [`ENTITY_PARTITIONS`]: table::ENTITY_PARTITIONS
    pub async fn scan(&self, partition: u32, mut visit: impl FnMut(R) + Send) -> Result<(), StoreError> {
        let mut pages = self.market.query(table::entity_partition::<R>(partition), None).into_paginator().send();
        while let Some(page) = pages.next().await {
            for row in page?.items() {
                if let Some(record) = Self::live(row)? {
                    visit(record);
                }
            }
        }
        Ok(())
    }

    /// Reads the batches after `seq` in order, by one strongly consistent Query. Returns as many as one call gives, and
    /// whether there are more.
    pub async fn since(&self, seq: u64) -> Result<(Vec<Batch<R>>, bool), StoreError> {
        Self::page(self.behind(seq)).await
    }

    /// Reads like [`since`](Self::since), but for half the price and without the latest entries: an eventually
    /// consistent Query may miss any of those that were written within about a second.
    pub async fn since_eventually(&self, seq: u64) -> Result<(Vec<Batch<R>>, bool), StoreError> {
        Self::page(self.behind(seq).consistent_read(false)).await
    }

    pub(super) fn behind(&self, seq: u64) -> QueryFluentBuilder {
        self.market.query(table::log_partition::<R>(), Some(table::log_position(seq)))
    }

    pub(super) async fn page(query: QueryFluentBuilder) -> Result<(Vec<Batch<R>>, bool), StoreError> {
        let page = query.send().await?;
        let batches: Result<Vec<_>, _> = page.items().iter().map(Self::unpack).collect();
        Ok((batches?, page.last_evaluated_key().is_some()))
    }

    /// Reads the log after `seq` to its end, which is at `head` or later. Returns `None` if the log has a gap.
    pub async fn tail(&self, seq: u64, head: u64, clock: &dyn Clock) -> Result<Option<Tail<R>>, StoreError> {
        let (mut batches, mut cursor, mut gap) = (Vec::new(), seq, GapWatch::default());
        loop {
            let as_of = Moment::now(clock);
            let (page, more) = self.since(cursor).await?;
            let whole = contiguous(&mut cursor, page, &mut batches);
            if whole && !more && cursor >= head {
                return Ok(Some(Tail { batches, as_of }));
            }
            let goes_on = (whole && more) || gap.bridge(self, &mut cursor, &mut batches).await?;
            if !goes_on {
                return Ok(None);
            }
        }
    }

    /// Reads a batch by its number.
    pub(super) async fn batch(&self, seq: u64) -> Result<Option<Batch<R>>, StoreError> {
        let entry = get_row(&self.market.client, &self.market.table, table::log_entry::<R>(seq)).await?;
        entry.as_ref().map(Self::unpack).transpose()
    }

    pub(super) fn pack<'c>(changes: impl Iterator<Item = &'c Change<R>>) -> Result<Vec<u8>, StoreError> {
        let changes: Vec<_> = changes.collect();
        Ok(postcard::to_extend(&changes, vec![R::LOG_ENTRY.writes])?)
    }

    fn unpack(row: &Row) -> Result<Batch<R>, StoreError> {
        let read = Attributes(row);
        let seq = read.parsed(table::SK)?;
        let (_, changes) = R::LOG_ENTRY.split(read.bytes(table::CHANGES).unwrap_or_default())?;
        let changes = postcard::from_bytes(changes)
            .map_err(|error| R::LOG_ENTRY.corrupt(&format_args!("sequence number {seq}: {error}")))?;
        Ok((seq, changes))
    }

    /// Reads the entities of a partition that follow an id, as many as one strongly consistent Query returns.
    pub async fn entities(&self, partition: u32, behind: Option<String>) -> Result<EntityPage<R>, StoreError> {
        let query = self.market.query(table::entity_partition::<R>(partition), behind);
        let page = query.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await?;
        let records = page.items().iter().filter_map(|row| Self::live(row).transpose());
        let last = page.last_evaluated_key().map(|key| Attributes(key).parsed(table::SK));
        let units = page.consumed_capacity().and_then(ConsumedCapacity::capacity_units);
        Ok(EntityPage {
            records: records.collect::<Result<_, _>>()?,
            last: last.transpose()?,
            units: units.unwrap_or(PAGE_UNITS),
        })
    }

    /// Returns the record of an entity, or `None` for a tombstone, which has no data.
    pub(super) fn live(row: &Row) -> Result<Option<R>, StoreError> {
        table::ENTITY_FORMAT.of_row(row)?;
        let Some(data) = Attributes(row).text(table::DATA) else { return Ok(None) };
        R::from_data(data).map(Some).map_err(|error| StoreError::corrupt(format!("{}: {error}", R::STREAM)))
    }

    /// Returns the position after which a reader reads the log if it scans the entities from `now` on, and the head was
    /// at `head` before. No entry is known to be missing between the position and the head.
    ///
    /// Looks at ever older entries, in steps that double. If one is missing, also after a while, the position is next to
    /// the gap.
    pub async fn before_scan(&self, head: u64, now: Timestamp) -> Result<u64, StoreError> {
        let (mut start, mut step) = (head.saturating_sub(1), 1);
        while start > 0 {
            let seq = head.saturating_sub(step).max(1);
            let Some(committed_at) = self.committed_at_last(seq).await? else {
                return self.behind_gap(seq, start).await;
            };
            if seq == 1 {
                return Ok(0);
            }
            start = seq;
            if step >= MIN_OVERLAP && now.millis() - committed_at.millis() > MIN_AGE_MILLIS {
                break;
            }
            step *= 2;
        }
        Ok(start)
    }

    /// Returns the last number between the two whose entry is missing. The entry of `missing` is, and that behind `start`
    /// is not.
    async fn behind_gap(&self, mut missing: u64, mut start: u64) -> Result<u64, StoreError> {
        while start - missing > 1 {
            let middle = missing + (start - missing) / 2;
            if self.committed_at(middle).await?.is_some() {
                start = middle;
            } else {
                missing = middle;
            }
        }
        Ok(missing)
    }

    /// Does what [`committed_at`](Self::committed_at) does, and looks again after pauses before it says that there is no
    /// entry. A Query may have shown a part of the transaction before the entry shows.
    async fn committed_at_last(&self, seq: u64) -> Result<Option<Timestamp>, StoreError> {
        for longest in GAP_PAUSES {
            if let Some(at) = self.committed_at(seq).await? {
                return Ok(Some(at));
            }
            tokio::time::sleep(equal_jitter(longest)).await;
        }
        self.committed_at(seq).await
    }

    /// Returns when a batch was stamped, by its writer's clock. Returns `None` if its entry has expired, or
    /// does not show yet.
    async fn committed_at(&self, seq: u64) -> Result<Option<Timestamp>, StoreError> {
        let entry = get_row(&self.market.client, &self.market.table, table::log_entry::<R>(seq)).await?;
        entry.map_or(Ok(None), |entry| {
            let expires: i64 = Attributes(&entry).required_number(table::TTL)?;
            Ok(Some(Timestamp::from_millis(expires.saturating_mul(1_000)).plus_millis(-LOG_KEEP_MILLIS)))
        })
    }
}

/// Moves batches to `taken` while each follows directly on the cursor, and advances the cursor. Returns false at a gap.
pub fn contiguous<C>(cursor: &mut u64, batches: Vec<(u64, C)>, taken: &mut Vec<(u64, C)>) -> bool {
    for (seq, batch) in batches {
        if seq != *cursor + 1 {
            return false;
        }
        *cursor = seq;
        taken.push((seq, batch));
    }
    true
}

/// Reads the position from the stream's head row. Without that row, the stream is at its beginning.
pub(super) fn position(head: Option<&Row>) -> Result<LogPosition, StoreError> {
    head.map_or(Ok(LogPosition::default()), |row| {
        table::HEAD_FORMAT.of_row(row)?;
        let read = Attributes(row);
        Ok(LogPosition { seq: read.required_number(table::SEQ)?, changes: read.required_number(table::CHANGES)? })
    })
}

/// Steps over gaps that only Queries see. A Query may show a transaction's head, or the transaction after it, long before
/// it shows the log entry. A `GetItem` finds the entry. Only one that it does not find is lost or has expired.
#[derive(Debug, Default)]
pub struct GapWatch {
    pauses: usize,
}

impl GapWatch {
    /// Takes the batch that follows on the cursor, if it is there. Otherwise waits before the next look. Returns false at
    /// once if it has been looked for often enough.
    pub async fn bridge<R: Record>(
        &mut self,
        log: &Log<R>,
        cursor: &mut u64,
        taken: &mut Vec<Batch<R>>,
    ) -> Result<bool, StoreError> {
        if let Some(batch) = log.batch(*cursor + 1).await? {
            *cursor += 1;
            taken.push(batch);
            self.pauses = 0;
            return Ok(true);
        }
        let Some(longest) = GAP_PAUSES.get(self.pauses) else { return Ok(false) };
        self.pauses += 1;
        tokio::time::sleep(equal_jitter(*longest)).await;
        Ok(true)
    }
}

/// A page of a partition's entities, in the order of their ids.
pub struct EntityPage<R> {
    /// The live ones.
    pub records: Vec<R>,
    /// The id that the next page follows. `None` if this page is the partition's last.
    pub last: Option<String>,
    /// The read units that the page took.
    pub units: f64,
}
