//! Finds by the wake-up index what a sweep and the drains must look at, and sets rows aside that cannot be read.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};

use super::listing::MAX_PAGE_ROWS;
use super::table::{PK, WAKE_AT, WAKE_INDEX, WAKE_SHARD};
use super::{StartKey, WebhookStore, table};
use crate::delivery::Token;
use common::change::Change;
use common::ids::{DeliveryId, EndpointId, NoticeId, UserId};
use common::rows::Unreadable;
use common::store::{Attributes, Row, StoreError, n, s};
use common::timestamp::Timestamp;

/// A row of a shard of the wake-up index. The index may be out of date, so it may not be due any more.
#[derive(Clone, Debug)]
pub enum Due {
    /// The drain of an account.
    Drain(UserId, WakeUp),
    /// A notice that may not have been sent.
    Notice(NoticeId, WakeUp),
    Unreadable(UnreadableWakeUp),
}

/// A delivery that waits for the drain of its account.
#[derive(Clone, Debug)]
pub struct Waiting {
    pub id: DeliveryId,
    /// From then on the drain makes its attempt.
    pub at: Timestamp,
    pub wake_up: WakeUp,
}

/// An entry of the wake-up index.
#[derive(Clone, Debug)]
pub struct WakeUp {
    /// The table key of its row.
    key: Row,
    pub(super) at: AttributeValue,
}

/// The wake-up of a row that this release cannot read.
#[derive(Clone, Debug)]
pub struct UnreadableWakeUp {
    pub wake_up: WakeUp,
    pub unreadable: Unreadable,
}

impl WakeUp {
    /// Reads an entry. Every entry has a wake-up, because it is a key of the index.
    pub(super) fn from_entry(entry: &Row) -> Option<Self> {
        Some(Self { key: table::key_of(entry), at: entry.get(WAKE_AT)?.clone() })
    }

    /// Returns when its row is to be looked at.
    pub fn time(&self) -> Option<Timestamp> {
        self.at.as_n().ok()?.parse().ok().map(Timestamp::from_millis)
    }

    /// Begins a change of the row that is refused if the wake-up was moved.
    fn change(&self, update: &str) -> Change {
        table::change(self.key.clone()).update(update).when("#wake_at = :seen").value(":seen", self.at.clone())
    }

    /// Says why the row cannot be read.
    pub fn unreadable(self, error: StoreError) -> UnreadableWakeUp {
        UnreadableWakeUp { unreadable: Unreadable::new(&self.key, error), wake_up: self }
    }
}

impl WebhookStore {
    /// Returns a page of one shard's entries whose wake-up comes by this time, earliest first, and where the next page
    /// begins.
    pub async fn due(
        &self,
        shard: u32,
        by: Timestamp,
        from: Option<StartKey>,
    ) -> Result<(Vec<Due>, Option<StartKey>), StoreError> {
        let query = self
            .wake_ups(table::wake_partition(shard))
            .key_condition_expression("#shard = :shard AND #wake_at <= :by")
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_values(":by", n(by.millis()))
            .limit(MAX_PAGE_ROWS)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let due = |entry: &Row| {
            let (pk, wake_up) = (Attributes(entry).text(PK).unwrap_or_default(), WakeUp::from_entry(entry)?);
            Some(match (table::account_of_drain(pk), table::notice_of(pk)) {
                (Some(account), _) => Due::Drain(account, wake_up),
                (None, Some(notice)) => Due::Notice(notice, wake_up),
                (None, None) => Due::Unreadable(wake_up.unreadable(StoreError::corrupt(PK))),
            })
        };
        Ok((found.items().iter().filter_map(due).collect(), found.last_evaluated_key))
    }

    /// Returns a page of an endpoint's deliveries in the order of their wake-ups, those that are still to come included:
    /// retries, or first attempts of a round. Returns where the next page begins as well.
    pub async fn waiting(
        &self,
        endpoint: EndpointId,
        is_retry: bool,
        from: Option<StartKey>,
    ) -> Result<(Vec<Waiting>, Option<StartKey>), StoreError> {
        let query = self.wake_ups(table::waiting(endpoint, is_retry)).key_condition_expression("#shard = :shard");
        let found = query.limit(MAX_PAGE_ROWS).set_exclusive_start_key(from).send().await?;
        let waiting = found.items().iter().filter_map(|entry| {
            let id = Attributes(entry).text(PK).and_then(table::delivery_of)?;
            let wake_up = WakeUp::from_entry(entry)?;
            Some(Waiting { id, at: wake_up.time()?, wake_up })
        });
        Ok((waiting.collect(), found.last_evaluated_key))
    }

    /// Counts the deliveries of an endpoint whose first attempt of a round waits, and stops counting at `most`.
    pub async fn count_waiting(&self, endpoint: EndpointId, now: Timestamp, most: u64) -> Result<u64, StoreError> {
        let (mut count, mut from) = (0, None);
        loop {
            let query = self
                .wake_ups(table::waiting(endpoint, false))
                .key_condition_expression("#shard = :shard AND #wake_at <= :by")
                .expression_attribute_names("#wake_at", WAKE_AT)
                .expression_attribute_values(":by", n(now.millis()))
                .select(Select::Count)
                .set_exclusive_start_key(from);
            let found = query.send().await?;
            count += u64::from(found.count.unsigned_abs());
            from = found.last_evaluated_key;
            if from.is_none() || count >= most {
                return Ok(count);
            }
        }
    }

    fn wake_ups(&self, partition: String) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .index_name(WAKE_INDEX)
            .expression_attribute_names("#shard", WAKE_SHARD)
            .expression_attribute_values(":shard", s(partition))
    }

    /// Moves the wake-up of a row that cannot be read, so that the row is not in the way of others. Nothing else of the
    /// row changes. Returns whether the wake-up was still there.
    pub async fn set_aside(&self, wake_up: &WakeUp, until: Timestamp) -> Result<bool, StoreError> {
        self.change(&wake_up.change("SET #wake_at = :to").value(":to", n(until.millis()))).await
    }

    /// Takes back the claim of a delivery that turned out to be unreadable, if it has this lease. It counts as no attempt.
    pub async fn unclaim(&self, wake_up: &WakeUp, lease: Token) -> Result<(), StoreError> {
        let change = wake_up.change("SET #claims = #claims - :one REMOVE #lease_id, #lease_until").value(":one", n(1));
        self.change(&change.when("#lease_id = :lease").value(":lease", s(lease.to_string()))).await.map(drop)
    }
}
