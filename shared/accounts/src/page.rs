//! Reads a page of orders in one round trip. Page and total come from one state (specification 1.3.3).
//!
//! The summary and the orders are read at the same time, so either may turn out newer than the other.
//!
//! - If the orders are *newer*, those that the summary does not count yet have a higher ordinal than its total. They
//!   are left out.
//! - If the orders are *older*, some that the summary counts may be missing. So every insert that the Query may have
//!   missed must be among the summary's recent positions, and each of these that lies in the range read must be there.
//!
//! If that cannot be told, the orders are read once more, now after the summary. The same happens if the page begins
//! behind skipped orders and the summary has changed since it was remembered. An order that the summary counts may even
//! then not show yet. It does as soon as its transaction has ended, so the orders are read again after a short pause.
//!
//! Which months to skip follows from the summary alone. Within a busy month, its hours say which of them to skip. They
//! are used only if they count as many orders of the month as the summary does, so they describe the same state. If
//! there are none that do, the orders of the month are read over. So are those of the hour in which the page begins.
//! That is exact, but slow if there are many.
//!
//! An order that cannot be read is an error of its user's page. It is not left out as elsewhere ([`common::rows`]),
//! because then page and total would no longer be exact.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::time::Duration;

use lru::LruCache;

use super::hours::Hours;
use super::summary::{MAX_HIDDEN_INSERTS, Start, Summary};
use super::{Accounts, lock, table};
use common::backoff::equal_jitter;
use common::ids::UserId;
use common::paging::{Paged, Paging};
use common::records::PublicOrder;
use common::store::{Attributes, Row, StoreError, s};

/// If the user's summary is not remembered, a page after at most this many orders is read from the newest order on. For
/// a deeper page the summary is read first.
const MAX_ORDERS_READ_OVER: usize = 500;
/// If more orders of the month than this lie before the page, its hours say which of them to skip.
const MAX_READ_OVER_WITHOUT_HOURS: usize = 128;
/// How many orders are read beyond the page, so that inserts during the read do not make a second read necessary.
const EXTRA_ORDERS: usize = 8;
/// The longest pauses before the orders are read again after their summary. An insert shows as a whole after some
/// milliseconds, and on a bad day after some hundred. All pauses together fit in the time that a request has.
const REREAD_PAUSES: [Duration; 6] = [
    Duration::from_millis(10),
    Duration::from_millis(20),
    Duration::from_millis(40),
    Duration::from_millis(80),
    Duration::from_millis(160),
    Duration::from_millis(320),
];
/// The most users whose summaries an instance remembers. For one more it forgets the user who asked least recently.
const MAX_USERS: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();
/// The most months whose hours it remembers. Those of a month with orders in each hour take about 15 KB.
const MAX_MONTHS: NonZeroUsize = NonZeroUsize::new(1_000).unwrap();

/// Reads pages of orders, and remembers the summaries and hours that this instance has seen.
pub struct OrderPages {
    accounts: Accounts,
    memory: Memory,
}

/// The orders that a Query returned, newest first.
#[derive(Debug, Default)]
struct ReadOrders {
    orders: Vec<OrderRow>,
    /// Whether there are no older ones.
    complete: bool,
    /// The highest ordinal on the first page of the Query. Later pages may show an insert that was made after the first
    /// page was read, and so say nothing of what the first page shows.
    seen_first: Option<u64>,
}

#[derive(Debug)]
struct OrderRow {
    position: String,
    ordinal: u64,
    data: Vec<u8>,
}

impl OrderPages {
    pub fn new(accounts: Accounts) -> Self {
        Self { accounts, memory: Memory::new() }
    }

    /// Sets how many orders of a month are read over without a look at its hours, so that tests look at the hours of
    /// small months.
    #[must_use]
    pub fn with_max_read_over(mut self, orders: usize) -> Self {
        self.memory.max_read_over = orders;
        self
    }

    /// Reads one page of a user's orders, newest first (specification 4.10.2).
    pub async fn page(&self, user: UserId, paging: Paging) -> Result<Paged<PublicOrder>, StoreError> {
        let (summary, read, skip) = self.read(user, paging).await?;
        let total = usize::try_from(summary.total).unwrap_or(usize::MAX);
        self.memory.remember(user, summary);
        let visible = read.orders.iter().filter(|order| order.ordinal <= total as u64);
        let page = visible.skip(skip).take(paging.take());
        let orders: Result<Vec<PublicOrder>, StoreError> = page.map(OrderRow::order).collect();
        Ok(paging.envelope(orders?, total))
    }

    async fn read(&self, user: UserId, paging: Paging) -> Result<(Summary, ReadOrders, usize), StoreError> {
        let remembered = self.memory.summary(user);
        let (start, unknown) = match &remembered {
            Some(summary) => self.memory.start(user, summary, paging.skip()),
            None if paging.skip() <= MAX_ORDERS_READ_OVER => (Start::newest(paging.skip()), None),
            None => {
                let summary = self.accounts.summary(user).await?;
                return self.read_after(user, paging, summary).await;
            }
        };
        let unknown = unknown.as_deref();
        let era = remembered.as_ref().map(|remembered| remembered.era);
        if unknown.is_some() && start.skip > MAX_ORDERS_READ_OVER {
            let (summary, hours) = tokio::try_join!(self.accounts.summary(user), self.hours_of(user, unknown))?;
            self.memory.remember_hours(user, &summary, unknown, hours.filter(|_| era == Some(summary.era)));
            return self.read_after(user, paging, summary).await;
        }
        let (summary, read, hours) = tokio::try_join!(
            self.accounts.summary(user),
            self.accounts.orders(user, &start, paging.take()),
            self.hours_of(user, unknown),
        )?;
        // A repair between the two reads may have counted the orders anew.
        self.memory.remember_hours(user, &summary, unknown, hours.filter(|_| era == Some(summary.era)));
        let known = remembered.as_ref().filter(|remembered| remembered.era == summary.era);
        let known = known.map_or(0, |remembered| remembered.total);
        // A read from the newest order on shows what was inserted. A read behind skipped orders does not, so there the
        // summary must not have changed at all. A repaired one may have reached the same total by other orders.
        let is_as_remembered = || remembered.as_ref() == Some(&summary);
        let holds = if start.below.is_none() { read.covers(&summary, known) } else { is_as_remembered() };
        if holds && read.shows_recent(&summary, &start) && read.fills(&summary, start.skip, paging) {
            return Ok((summary, read, start.skip));
        }
        self.read_after(user, paging, summary).await
    }

    /// Reads the orders after their summary, so that they include what it counts. If one that the summary counts does
    /// not show yet, the orders are read again after a pause, and the summary stays: its inserts show in the end. Only
    /// if more inserts than [`EXTRA_ORDERS`] came between the two reads does it take a newer summary.
    async fn read_after(
        &self,
        user: UserId,
        paging: Paging,
        mut summary: Summary,
    ) -> Result<(Summary, ReadOrders, usize), StoreError> {
        let mut longest_pauses = REREAD_PAUSES.into_iter();
        loop {
            if paging.skip() as u64 >= summary.total {
                return Ok((summary, ReadOrders::default(), 0));
            }
            let start = self.start_by_hours(user, paging, &mut summary).await?;
            let read = self.accounts.orders(user, &start, paging.take()).await?;
            let shows_recent = read.shows_recent(&summary, &start);
            if shows_recent && read.fills(&summary, start.skip, paging) {
                return Ok((summary, read, start.skip));
            }
            let Some(longest_pause) = longest_pauses.next() else {
                return Err(StoreError::Unavailable("orders arrive faster than they can be read".to_owned()));
            };
            if shows_recent {
                summary = self.accounts.summary(user).await?;
            } else {
                tokio::time::sleep(equal_jitter(longest_pause)).await;
            }
        }
    }

    /// Finds where the page begins, and first reads the hours that this takes. The summary is read again if the hours
    /// turn out to be newer.
    async fn start_by_hours(&self, user: UserId, paging: Paging, summary: &mut Summary) -> Result<Start, StoreError> {
        let (start, unknown) = self.memory.start(user, summary, paging.skip());
        let Some(month) = unknown else { return Ok(start) };
        let (hours, era) = (self.accounts.hours(user, &month).await?, summary.era);
        if hours.as_ref().is_some_and(|hours| hours.orders() > summary.orders_in(&month)) {
            *summary = self.accounts.summary(user).await?;
        }
        self.memory.remember_hours(user, summary, Some(&month), hours.filter(|_| era == summary.era));
        Ok(self.memory.start(user, summary, paging.skip()).0)
    }

    async fn hours_of(&self, user: UserId, month: Option<&str>) -> Result<Option<Hours>, StoreError> {
        let Some(month) = month else { return Ok(None) };
        self.accounts.hours(user, month).await
    }
}

impl ReadOrders {
    /// Returns whether the page has as many orders as the summary counts for it.
    fn fills(&self, summary: &Summary, skip: usize, paging: Paging) -> bool {
        let visible = self.orders.iter().filter(|order| order.ordinal <= summary.total).skip(skip);
        let left = usize::try_from(summary.total).unwrap_or(usize::MAX).saturating_sub(paging.skip());
        visible.take(paging.take()).count() == left.min(paging.take())
    }

    /// Takes in a page of the Query.
    fn push_page(&mut self, mut page: Vec<OrderRow>, is_last: bool) {
        self.seen_first.get_or_insert(page.iter().map(|order| order.ordinal).max().unwrap_or(0));
        self.orders.append(&mut page);
        self.complete = is_last;
    }

    /// Returns whether every insert that a read from the newest order on may have missed is among the summary's recent
    /// ones. The latest insert that was made before the read is `known`, or has the highest ordinal of the first page.
    fn covers(&self, summary: &Summary, known: u64) -> bool {
        let seen = self.seen_first.unwrap_or(0).max(known);
        let complete = seen.saturating_sub(MAX_HIDDEN_INSERTS);
        summary.total.saturating_sub(complete) <= summary.recent.len() as u64
    }

    /// Returns whether every recent insert whose place lies in the range read is there. One may be missing, because
    /// readers may see a transaction's summary before they see its order.
    fn shows_recent(&self, summary: &Summary, start: &Start) -> bool {
        let oldest = self.orders.last().filter(|_| !self.complete).map_or("", |order| &order.position);
        let was_read = |position: &&String| {
            position.as_str() >= oldest && start.below.as_ref().is_none_or(|below| *position < below)
        };
        let mut recent = summary.recent.iter().filter(was_read);
        recent.all(|position| self.orders.iter().any(|order| &order.position == position))
    }
}

impl OrderRow {
    fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::ORDER_FORMAT.of_row(row)?;
        let read = Attributes(row);
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
    /// Reads orders backwards from `start`: those to skip, those of the page, and [`EXTRA_ORDERS`] more.
    async fn orders(&self, user: UserId, start: &Start, take: usize) -> Result<ReadOrders, StoreError> {
        let wanted = start.skip.saturating_add(take + EXTRA_ORDERS);
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
            Some(below) => query
                .key_condition_expression("#pk = :pk AND #sk < :below")
                .expression_attribute_names("#sk", table::SK)
                .expression_attribute_values(":below", s(below)),
            None => query.key_condition_expression("#pk = :pk"),
        };
        let mut pages = query.into_paginator().send();
        let mut read = ReadOrders::default();
        while let Some(page) = pages.next().await {
            let page = page?;
            let orders: Result<_, _> = page.items().iter().map(OrderRow::from_row).collect();
            read.push_page(orders?, page.last_evaluated_key().is_none());
            if read.orders.len() >= wanted {
                break;
            }
        }
        Ok(read)
    }
}

struct Memory {
    summaries: Mutex<LruCache<UserId, Summary>>,
    /// The hours of months, each with the era of the summary that they belong to.
    hours: Mutex<LruCache<(UserId, u64, String), Hours>>,
    /// The most orders of a month that are read over without a look at its hours.
    max_read_over: usize,
}

impl Memory {
    fn new() -> Self {
        Self {
            summaries: Mutex::new(LruCache::sparse(MAX_USERS)),
            hours: Mutex::new(LruCache::sparse(MAX_MONTHS)),
            max_read_over: MAX_READ_OVER_WITHOUT_HOURS,
        }
    }

    fn summary(&self, user: UserId) -> Option<Summary> {
        lock(&self.summaries).get(&user).cloned()
    }

    /// Remembers a summary, unless a newer one of its era is remembered.
    fn remember(&self, user: UserId, summary: Summary) {
        let mut summaries = lock(&self.summaries);
        let known = summaries.peek(&user).filter(|known| known.era == summary.era);
        let is_newer = known.is_none_or(|known| known.total <= summary.total);
        if is_newer {
            summaries.put(user, summary);
        }
    }

    /// Remembers the hours of a month if some were read. [`Self::start`] finds out whether they fit a summary.
    fn remember_hours(&self, user: UserId, summary: &Summary, month: Option<&str>, hours: Option<Hours>) {
        let Some((month, hours)) = month.zip(hours) else { return };
        lock(&self.hours).put((user, summary.era, month.to_owned()), hours);
    }

    /// Finds the order that has `skip` newer ones, by a summary and by the hours that this instance remembers. They are
    /// brought up to the summary if its recent inserts are all that they lack. Returns also the month whose hours
    /// could bring the start nearer to the page, but are not known.
    fn start(&self, user: UserId, summary: &Summary, skip: usize) -> (Start, Option<String>) {
        let start = summary.start(skip);
        let Some(month) = start.month.clone().filter(|_| start.skip > self.max_read_over) else { return (start, None) };
        let mut remembered = lock(&self.hours);
        let hours = remembered.get_mut(&(user, summary.era, month.clone()));
        let fitting = hours.and_then(|hours| hours.catch_up(summary, &month).then_some(&*hours));
        match fitting {
            Some(hours) => (hours.narrow(&month, start), None),
            None => (start, Some(month)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::INSERTS_PER_TRANSACTION;

    const MONTH: &str = "2026-11";
    /// Numbers of orders, the last one higher than a summary lists by position.
    const OTHERS: [u64; 9] = [0, 1, 3, 4, 5, 8, 9, 20, 30];

    /// A read beside a transaction that inserts several orders.
    #[derive(Debug)]
    struct HalfSeen {
        /// How many orders there were before the transaction.
        before: u64,
        /// How many it inserts.
        inserts: u64,
        /// Which of them the read saw, the first of them as the lowest bit.
        seen: u32,
        /// How many more were inserted until the summary was read.
        later: u64,
        known: u64,
    }

    impl HalfSeen {
        /// Returns every such read of few orders.
        fn all() -> impl Iterator<Item = Self> {
            let counts = OTHERS.into_iter().flat_map(|before| OTHERS.map(move |later| (before, later)));
            counts.flat_map(|(before, later)| {
                (1..=INSERTS_PER_TRANSACTION as u64).flat_map(move |inserts| {
                    (0..1_u32 << inserts).flat_map(move |seen| {
                        [0, before, before + inserts].map(|known| Self { before, inserts, seen, later, known })
                    })
                })
            })
        }

        fn is_seen(&self, ordinal: u64) -> bool {
            ordinal <= self.before
                || (ordinal <= self.before + self.inserts && self.seen & (1 << (ordinal - self.before - 1)) != 0)
        }

        fn summary(&self) -> Summary {
            let mut summary = Summary::default();
            for ordinal in 1..=self.before + self.inserts + self.later {
                summary.insert(MONTH.to_owned(), position(ordinal));
            }
            summary
        }

        fn read(&self) -> ReadOrders {
            let mut read = ReadOrders::default();
            read.push_page(rows((1..=self.before + self.inserts).filter(|ordinal| self.is_seen(*ordinal))), true);
            read
        }
    }

    fn position(ordinal: u64) -> String {
        format!("{MONTH}-{ordinal:02}")
    }

    fn rows(ordinals: impl Iterator<Item = u64>) -> Vec<OrderRow> {
        ordinals.map(|ordinal| OrderRow { position: position(ordinal), ordinal, data: Vec::new() }).collect()
    }

    /// Orders were inserted between the two pages of a Query: most of them newer than those of the first page, the last
    /// one old enough to be on the second.
    #[test]
    fn a_second_page_does_not_tell_what_the_first_one_missed() {
        let mut summary = Summary::default();
        (1..=60).for_each(|ordinal| summary.insert(MONTH.to_owned(), position(ordinal)));
        let mut read = ReadOrders::default();
        read.push_page(rows((6..=10).rev()), false);
        read.push_page(rows([60, 5, 4, 3, 2, 1].into_iter()), true);
        assert!(!summary.recent.contains(&position(11)), "the summary lists all that the first page missed");
        assert!(!read.covers(&summary, 10));
    }

    #[test]
    fn a_read_that_covers_a_summary_missed_only_inserts_that_the_summary_lists() {
        for half in HalfSeen::all() {
            let (summary, read) = (half.summary(), half.read());
            let missed = (1..=summary.total).filter(|ordinal| !half.is_seen(*ordinal));
            let is_listed = |ordinal| summary.recent.contains(&position(ordinal));
            let unlisted: Vec<u64> = missed.filter(|ordinal| !is_listed(*ordinal)).collect();
            assert!(unlisted.is_empty() || !read.covers(&summary, half.known), "{half:?} misses {unlisted:?}");
        }
    }

    #[test]
    fn a_read_beside_one_transaction_of_the_most_inserts_still_covers_the_summary() {
        let most = INSERTS_PER_TRANSACTION as u64;
        for half in HalfSeen::all().filter(|half| half.later <= most) {
            let has_known = half.known == half.before + half.inserts;
            assert!(!has_known || half.read().covers(&half.summary(), half.known), "{half:?}");
        }
    }
}
