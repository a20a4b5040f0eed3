//! The log of changes. Each stream numbers its batches of changes without gaps, and commits each in one transaction.
//!
//! A transaction moves the stream's head from *n* to *n+1*, puts log entry *n+1*, and puts each changed entity on
//! condition that it is newer than the stored one.
//!
//! Readers start from a base, which is exact at its sequence number, or from a strongly consistent scan of the entities.
//! Then they apply the log entries that follow: behind the base, or from well before the head that they read before the
//! scan ([`overlap`](super::overlap)). An entry may repeat what the scan saw, but once the log has been read to its end,
//! it does not contradict what the scan saw.
//!
//! An entry or an entity that cannot be read is an error of the whole stream. It is not left out as elsewhere
//! ([`common::rows`]): without it, a replica would answer with wrong pages and totals, and nobody would know.

use std::marker::PhantomData;

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use serde::{Deserialize, Serialize};

use super::gap::GapWatch;
use super::{Market, table};
use crate::{Batch, ChangeOf, Record};
use common::clock::{Clock, Moment};
use common::store::{Attributes, Row, StoreError, get_row};

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

    fn behind(&self, seq: u64) -> QueryFluentBuilder {
        self.market.query(table::log_partition::<R>(), Some(table::log_position(seq)))
    }

    async fn page(query: QueryFluentBuilder) -> Result<(Vec<Batch<R>>, bool), StoreError> {
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
            let goes_on = (whole && more) || gap.look_again().await;
            if !goes_on {
                return Ok(None);
            }
        }
    }

    pub(super) fn pack<'c>(changes: impl Iterator<Item = &'c ChangeOf<R>>) -> Result<Vec<u8>, StoreError> {
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
