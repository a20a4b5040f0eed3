//! Writes notices, reads those that were not sent yet, and marks them once they are sent.

use aws_sdk_dynamodb::types::Put;

use super::table::{NOTICE, PK, TTL, WAKE_AT, WAKE_SHARD};
use super::{WebhookStore, table};
use crate::endpoint::Notice;
use crate::notice::EndpointNotice;
use platform::store::{Attributes, Row, StoreError, get_row, n, s};
use types::ids::NoticeId;
use types::timestamp::{DAY_MILLIS, Timestamp};

/// How long a notice is kept after the event that it is about, so that an operator can see it: 35 days.
const NOTICE_TTL_MILLIS: i64 = 35 * DAY_MILLIS;

impl EndpointNotice {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::NOTICE_FORMAT.of_row(row)?;
        let notice = Attributes(row).text(NOTICE).and_then(|text| serde_json::from_str(text).ok());
        notice.ok_or_else(|| StoreError::corrupt(NOTICE))
    }
}

impl Notice {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        match EndpointNotice::from_row(row)? {
            EndpointNotice::Disabled(notice) => Ok(notice),
            EndpointNotice::Failing(_) | EndpointNotice::Recovered(_) | EndpointNotice::Full(_) => {
                Err(StoreError::corrupt(NOTICE))
            }
        }
    }

    /// Returns whether its row must still be there.
    pub(super) fn is_kept(&self, now: Timestamp) -> bool {
        kept_until(self.disabled_at) > now
    }
}

fn kept_until(at: Timestamp) -> Timestamp {
    at.plus_millis(NOTICE_TTL_MILLIS)
}

impl WebhookStore {
    /// Returns the write of a notice that a sweep sends from `wake_at` on.
    pub(super) fn new_notice(&self, notice: &EndpointNotice, wake_at: Timestamp) -> Result<Put, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(table::notice(notice.id())))
            .item(NOTICE, s(serde_json::to_string(notice)?))
            .item(WAKE_SHARD, s(table::wake_shard(notice.id().uuid())))
            .item(WAKE_AT, n(wake_at.millis()))
            .item(TTL, n(kept_until(notice.at()).seconds()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK);
        Ok(put.build()?)
    }

    /// Returns a notice, unless it is marked as sent. After a crash, a notice that was sent may not be marked.
    pub async fn unsent_notice(&self, id: NoticeId) -> Result<Option<EndpointNotice>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::notice(id)).await? else { return Ok(None) };
        if !row.contains_key(WAKE_AT) {
            return Ok(None);
        }
        EndpointNotice::from_row(&row).map(Some)
    }

    /// Marks a notice as sent, by removing its wake-up.
    pub(crate) async fn notice_sent(&self, id: NoticeId) -> Result<(), StoreError> {
        let update = self.client.update_item().table_name(&self.table).set_key(Some(table::notice(id)));
        let update = update.update_expression("REMOVE #wake").expression_attribute_names("#wake", WAKE_AT);
        let update = update.condition_expression("attribute_exists(#pk)").expression_attribute_names("#pk", PK);
        update.send().await?;
        Ok(())
    }
}
