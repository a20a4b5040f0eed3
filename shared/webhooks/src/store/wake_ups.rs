//! Finds by the wake-up index what a sweep and the drains must look at, and sets rows aside that cannot be read.

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, Select};

use super::listing::MAX_PAGE_ROWS;
use super::table::{CLAIMS, LEASE_ID, LEASE_UNTIL, PK, SET_ASIDE, WAKE_AT, WAKE_INDEX, WAKE_SHARD, Wake};
use super::{CONFLICT_ATTEMPTS, StartKey, WebhookStore, table};
use platform::rows::Unreadable;
use platform::store::{Attributes, Row, StoreError, n, retry_conflicts, s, updated};
use types::ids::{DeliveryId, EndpointId, NoticeId, UserId};
use types::timestamp::Timestamp;

/// A page of what a sweep must look at. The index may be out of date, so some of it may not be due any more.
#[derive(Clone, Debug, Default)]
pub struct DuePage {
    /// Drains to call.
    pub drains: Vec<(UserId, WakeUp)>,
    /// Notices that may not have been sent.
    pub notices: Vec<(NoticeId, WakeUp)>,
    pub unreadable: Vec<UnreadableWakeUp>,
    pub next: Option<StartKey>,
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

    /// Says why the row cannot be read.
    pub fn unreadable(self, error: StoreError) -> UnreadableWakeUp {
        UnreadableWakeUp { unreadable: Unreadable::new(&self.key, error), wake_up: self }
    }
}

impl WebhookStore {
    /// Returns a page of one shard's entries whose wake-up comes by this time, earliest first.
    pub async fn due(&self, shard: u32, by: Timestamp, from: Option<StartKey>) -> Result<DuePage, StoreError> {
        let query = self
            .wake_ups(table::wake_partition(shard))
            .key_condition_expression("#shard = :shard AND #wake_at <= :by")
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_values(":by", n(by.millis()))
            .limit(MAX_PAGE_ROWS)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let mut page = DuePage { next: found.last_evaluated_key, ..DuePage::default() };
        for entry in found.items.unwrap_or_default() {
            let Some(wake_up) = WakeUp::from_entry(&entry) else { continue };
            match Attributes(&entry).text(PK).and_then(table::wake) {
                Some(Wake::Drain(account)) => page.drains.push((account, wake_up)),
                Some(Wake::Notice(id)) => page.notices.push((id, wake_up)),
                None => page.unreadable.push(wake_up.unreadable(StoreError::corrupt(PK))),
            }
        }
        Ok(page)
    }

    /// Returns the first deliveries of an endpoint in the order of their wake-ups, those that are still to come included:
    /// retries, or first attempts of a round.
    pub async fn waiting(&self, endpoint: EndpointId, is_retry: bool, limit: i32) -> Result<Vec<Waiting>, StoreError> {
        let query = self.wake_ups(table::waiting(endpoint, is_retry)).key_condition_expression("#shard = :shard");
        let entries = query.limit(limit).send().await?.items.unwrap_or_default();
        let waiting = entries.iter().filter_map(|entry| {
            let id = Attributes(entry).text(PK).and_then(table::delivery_of)?;
            let wake_up = WakeUp::from_entry(entry)?;
            Some(Waiting { id, at: wake_up.time()?, wake_up })
        });
        Ok(waiting.collect())
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
    /// row changes, except the mark by which a repair knows that its wake-up was moved. Returns whether the wake-up was
    /// still there.
    pub async fn set_aside(&self, wake_up: &WakeUp, until: Timestamp) -> Result<bool, StoreError> {
        self.move_wake_up(wake_up, "SET #wake_at = :to, #aside = :to", until).await
    }

    /// Takes back the claim of a delivery that turned out to be unreadable. It counts as no attempt.
    pub async fn unclaim(&self, wake_up: &WakeUp) -> Result<(), StoreError> {
        let update = self
            .client
            .update_item()
            .table_name(&self.table)
            .set_key(Some(wake_up.key.clone()))
            .update_expression("SET #claims = #claims - :one REMOVE #lease, #until")
            .condition_expression("#wake_at = :seen")
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_names("#claims", CLAIMS)
            .expression_attribute_names("#lease", LEASE_ID)
            .expression_attribute_names("#until", LEASE_UNTIL)
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":seen", wake_up.at.clone());
        updated(update.send().await).map(drop)
    }

    /// Changes the wake-up of a row, and the mark that it is set aside, if the wake-up is still there.
    pub(super) async fn move_wake_up(&self, wake_up: &WakeUp, change: &str, to: Timestamp) -> Result<bool, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let update = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(wake_up.key.clone()))
                .update_expression(change)
                .condition_expression("#wake_at = :seen")
                .expression_attribute_names("#wake_at", WAKE_AT)
                .expression_attribute_names("#aside", SET_ASIDE)
                .expression_attribute_values(":to", n(to.millis()))
                .expression_attribute_values(":seen", wake_up.at.clone());
            updated(update.send().await)
        })
        .await
    }
}
