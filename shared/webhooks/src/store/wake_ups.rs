//! Finds by the wake-up index what a sweep must look at, and sets rows aside that cannot be read.

use aws_sdk_dynamodb::types::AttributeValue;

use super::delivery_row::from_row;
use super::listing::MAX_PAGE_ROWS;
use super::table::{PK, SET_ASIDE, WAKE_AT, WAKE_INDEX, WAKE_SHARD, Wake};
use super::{CONFLICT_ATTEMPTS, StartKey, WebhookStore, table};
use crate::delivery::Delivery;
use platform::batch_get::get_rows;
use platform::rows::{Rows, Unreadable};
use platform::store::{Attributes, Row, StoreError, n, retry_conflicts, s, updated};
use types::ids::NoticeId;
use types::timestamp::Timestamp;

/// A page of what a sweep must look at.
#[derive(Clone, Debug)]
pub struct DuePage {
    /// In no particular order. The index may be out of date, so some of them may not be due any more.
    pub deliveries: Vec<Delivery>,
    /// Notices that may not have been sent.
    pub notices: Vec<(NoticeId, WakeUp)>,
    pub unreadable: Vec<UnreadableWakeUp>,
    pub next: Option<StartKey>,
}

/// An entry of the wake-up index.
#[derive(Clone, Debug)]
pub struct WakeUp {
    /// The table key of its row.
    key: Row,
    at: AttributeValue,
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

    /// Says why the row cannot be read.
    pub fn unreadable(self, error: StoreError) -> UnreadableWakeUp {
        UnreadableWakeUp { unreadable: Unreadable::new(&self.key, error), wake_up: self }
    }
}

impl DuePage {
    /// Returns the last wake-up of the page if there are further pages.
    pub fn last_wake_up(&self) -> Option<Timestamp> {
        Attributes(self.next.as_ref()?).number(WAKE_AT).map(Timestamp::from_millis)
    }
}

impl WebhookStore {
    /// Returns a page of one shard's entries whose wake-up has come, and lies at `begin` or later. The earliest come in
    /// the first page.
    pub async fn due(
        &self,
        shard: u32,
        begin: Timestamp,
        now: Timestamp,
        from: Option<StartKey>,
    ) -> Result<DuePage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(WAKE_INDEX)
            .key_condition_expression("#shard = :shard AND #wake_at BETWEEN :begin AND :now")
            .expression_attribute_names("#shard", WAKE_SHARD)
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_values(":shard", s(table::wake_partition(shard)))
            .expression_attribute_values(":begin", n(begin.millis()))
            .expression_attribute_values(":now", n(now.millis()))
            .limit(MAX_PAGE_ROWS)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let (mut deliveries, mut notices, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        for entry in found.items.unwrap_or_default() {
            let Some(wake_up) = WakeUp::from_entry(&entry) else { continue };
            match Attributes(&entry).text(PK).and_then(table::wake) {
                Some(Wake::Delivery) => deliveries.push(wake_up),
                Some(Wake::Notice(id)) => notices.push((id, wake_up)),
                None => unreadable.push(wake_up.unreadable(StoreError::corrupt(PK))),
            }
        }
        let read = self.deliveries_of_wake_ups(&deliveries).await?;
        unreadable.extend(read.unreadable);
        Ok(DuePage { deliveries: read.readable, notices, unreadable, next: found.last_evaluated_key })
    }

    /// Reads the deliveries of at most 100 entries. Entries without a row are left out.
    async fn deliveries_of_wake_ups(
        &self,
        wake_ups: &[WakeUp],
    ) -> Result<Rows<Delivery, UnreadableWakeUp>, StoreError> {
        let keys = wake_ups.iter().map(|wake_up| wake_up.key.clone()).collect();
        let mut read = Rows::default();
        for row in get_rows(&self.client, &self.table, keys).await? {
            match from_row(&row) {
                Ok(delivery) => read.readable.push(delivery),
                Err(error) => {
                    let key = table::key_of(&row);
                    let wake_up = wake_ups.iter().find(|wake_up| wake_up.key == key);
                    read.unreadable.extend(wake_up.map(|wake_up| wake_up.clone().unreadable(error)));
                }
            }
        }
        Ok(read)
    }

    /// Moves the wake-up of a row that cannot be read, so that the row is not in the way of others. Nothing else of the
    /// row changes, except the mark by which a repair knows that its wake-up was moved. Returns whether the wake-up was
    /// still there.
    ///
    /// For a release that can read the row, the later wake-up is as good as the earlier one, only later: a retry whose
    /// message was still to be sent is either called for before it is due, or counts as overdue.
    pub async fn set_aside(&self, wake_up: &WakeUp, until: Timestamp) -> Result<bool, StoreError> {
        self.move_wake_up(wake_up, "SET #wake_at = :to, #aside = :to", until).await
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
