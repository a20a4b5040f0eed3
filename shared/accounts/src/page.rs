//! Reading a page of orders in one round trip, page and total of one state.
//!
//! Summary and orders are read at once. Orders newer than the summary are told by their ordinal and left
//! out. That the orders are not *older* than the summary is checked: every insert that the orders may have
//! missed is among the summary's recent positions, and each of those whose place was read must be there.
//! Where that cannot be told, or a deeper page's summary has moved, the orders are read once more.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::summary::{Start, Summary};
use super::{Accounts, table};
use platform::store::{Attributes, Item, StoreError, s};
use types::ids::UserId;
use types::paging::{Paged, Paging};
use types::records::PublicOrder;

/// So many orders are read over rather than asking for the summary of an unknown user first.
const NEAR: usize = 500;
/// Orders read beyond the page, so that inserts during the read do not cost a second one.
const SLACK: usize = 8;
/// Tries to catch a page between inserts.
const READS_AFTER: u32 = 4;
/// Users whose summaries an instance remembers; at the bound it starts afresh.
const REMEMBERED: usize = 10_000;

/// Pages of orders, with the summaries this instance has seen.
pub struct OrderPages {
    accounts: Accounts,
    remembered: Mutex<HashMap<UserId, Summary>>,
}

/// Orders in reading order, newest first.
#[derive(Debug, Default)]
struct Read {
    orders: Vec<Placed>,
    /// Whether there are no older ones.
    complete: bool,
}

#[derive(Debug)]
struct Placed {
    position: String,
    ordinal: u64,
    data: Vec<u8>,
}

impl OrderPages {
    /// Pages over the accounts table.
    pub fn new(accounts: Accounts) -> Self {
        Self { accounts, remembered: Mutex::default() }
    }

    /// One page of a user's orders, newest first.
    pub async fn page(&self, user: UserId, paging: Paging) -> Result<Paged<PublicOrder>, StoreError> {
        let (summary, read, skip) = self.read(user, paging).await?;
        let total = usize::try_from(summary.total).unwrap_or(usize::MAX);
        self.remember(user, summary);
        let visible = read.orders.iter().filter(|order| order.ordinal <= total as u64);
        let page = visible.skip(skip).take(paging.take());
        let orders: Result<Vec<PublicOrder>, StoreError> = page.map(Placed::order).collect();
        Ok(paging.envelope(orders?, total))
    }

    async fn read(&self, user: UserId, paging: Paging) -> Result<(Summary, Read, usize), StoreError> {
        let remembered = self.recall(user);
        let start = match &remembered {
            Some(summary) => summary.start(paging.skip()),
            None if paging.skip() <= NEAR => Start { below: None, skip: paging.skip() },
            None => {
                let summary = self.accounts.summary(user).await?;
                return self.read_after(user, paging, summary).await;
            }
        };
        let (summary, read) =
            tokio::try_join!(self.accounts.summary(user), self.accounts.orders(user, &start, paging.take()))?;
        let known = remembered.map_or(0, |remembered| remembered.total);
        // From the top, what moved shows; behind skipped months it does not.
        let holds = if start.below.is_none() { read.covers(&summary, known) } else { summary.total == known };
        if holds && read.shows_recent(&summary, &start) && read.fills(&summary, start.skip, paging) {
            return Ok((summary, read, start.skip));
        }
        self.read_after(user, paging, summary).await
    }

    /// Orders read after their summary: nothing that it counts is missing. Read again only if more
    /// inserts than the slack came between the two.
    async fn read_after(
        &self,
        user: UserId,
        paging: Paging,
        mut summary: Summary,
    ) -> Result<(Summary, Read, usize), StoreError> {
        for _ in 0..READS_AFTER {
            let start = summary.start(paging.skip());
            if paging.skip() as u64 >= summary.total {
                return Ok((summary, Read::default(), 0));
            }
            let read = self.accounts.orders(user, &start, paging.take()).await?;
            if read.shows_recent(&summary, &start) && read.fills(&summary, start.skip, paging) {
                return Ok((summary, read, start.skip));
            }
            summary = self.accounts.summary(user).await?;
        }
        Err(StoreError::Unavailable("orders arrive faster than they can be read".to_owned()))
    }

    fn recall(&self, user: UserId) -> Option<Summary> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner).get(&user).cloned()
    }

    fn remember(&self, user: UserId, summary: Summary) {
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        let newer = remembered.get(&user).is_none_or(|known| known.total <= summary.total);
        if newer {
            remembered.insert(user, summary);
        }
    }
}

impl Read {
    /// Whether the page has as many orders as the summary counts for it.
    fn fills(&self, summary: &Summary, skip: usize, paging: Paging) -> bool {
        let visible = self.orders.iter().filter(|order| order.ordinal <= summary.total).skip(skip);
        let left = usize::try_from(summary.total).unwrap_or(usize::MAX).saturating_sub(paging.skip());
        visible.take(paging.take()).count() == left.min(paging.take())
    }

    /// Whether every insert that a read from the top may have missed is among the summary's recent ones.
    /// Inserts up to `known`, and up to the latest ordinal that was read, were made before.
    fn covers(&self, summary: &Summary, known: u64) -> bool {
        let seen = self.orders.iter().map(|order| order.ordinal).max().unwrap_or(0).max(known);
        summary.total.saturating_sub(seen) <= summary.recent.len() as u64
    }

    /// Whether every recent insert whose place was read is there: a Query may see a transaction's summary
    /// before it sees its order.
    fn shows_recent(&self, summary: &Summary, start: &Start) -> bool {
        let oldest = self.orders.last().filter(|_| !self.complete).map_or("", |order| &order.position);
        let was_read = |position: &&String| {
            position.as_str() >= oldest && start.below.as_ref().is_none_or(|below| *position < below)
        };
        let mut recent = summary.recent.iter().filter(was_read);
        recent.all(|position| self.orders.iter().any(|order| &order.position == position))
    }
}

impl Placed {
    fn from_item(item: &Item) -> Result<Self, StoreError> {
        let read = Attributes(item);
        Ok(Self {
            position: read.parsed(table::SK)?,
            ordinal: read.required_number(table::ORDINAL)?,
            data: read.bytes(table::DATA).ok_or_else(|| StoreError::corrupt(table::DATA))?.to_vec(),
        })
    }

    fn order(&self) -> Result<PublicOrder, StoreError> {
        super::orders::unpack(&self.data)
    }
}

impl Accounts {
    /// The orders from `start` on, backwards: those to skip, those of the page, and some slack.
    async fn orders(&self, user: UserId, start: &Start, take: usize) -> Result<Read, StoreError> {
        let wanted = start.skip.saturating_add(take + SLACK);
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(i32::try_from(wanted).unwrap_or(i32::MAX))
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_values(":pk", s(table::orders_partition(user)));
        query = match &start.below {
            Some(month) => query
                .key_condition_expression("#pk = :pk AND #sk < :below")
                .expression_attribute_names("#sk", table::SK)
                .expression_attribute_values(":below", s(month)),
            None => query.key_condition_expression("#pk = :pk"),
        };
        let mut pages = query.into_paginator().send();
        let mut read = Read { orders: Vec::new(), complete: true };
        while let Some(page) = pages.next().await {
            let page = page?;
            for item in page.items() {
                read.orders.push(Placed::from_item(item)?);
            }
            read.complete = page.last_evaluated_key().is_none();
            if read.orders.len() >= wanted {
                break;
            }
        }
        Ok(read)
    }
}
