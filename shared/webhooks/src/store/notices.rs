//! Writes notices, reads those that were not sent yet, and marks them once they are sent.

use aws_sdk_dynamodb::types::Put;

use super::table::{NOTICE, PK, TTL, WAKE_AT, WAKE_SHARD};
use super::{WebhookStore, table};
use crate::endpoint::Notice;
use platform::store::{Attributes, Row, StoreError, get_row, n, s};
use types::ids::NoticeId;
use types::timestamp::{DAY_MILLIS, Timestamp};

/// How long a notice is kept after the switch-off, so that an operator can see it: 35 days.
const NOTICE_TTL_MILLIS: i64 = 35 * DAY_MILLIS;

impl Notice {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::NOTICE_FORMAT.of_row(row)?;
        let notice = Attributes(row).text(NOTICE).and_then(|text| serde_json::from_str(text).ok());
        notice.ok_or_else(|| StoreError::corrupt(NOTICE))
    }

    fn kept_until(&self) -> Timestamp {
        self.disabled_at.plus_millis(NOTICE_TTL_MILLIS)
    }

    /// Returns whether its row must still be there.
    pub(super) fn is_kept(&self, now: Timestamp) -> bool {
        self.kept_until() > now
    }
}

impl WebhookStore {
    /// Returns the write of a notice that a sweep sends from `wake_at` on.
    pub(super) fn new_notice(&self, notice: &Notice, wake_at: Timestamp) -> Result<Put, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(table::notice(notice.notice_id)))
            .item(NOTICE, s(serde_json::to_string(notice)?))
            .item(WAKE_SHARD, s(table::wake_shard(notice.notice_id.uuid())))
            .item(WAKE_AT, n(wake_at.millis()))
            .item(TTL, n(notice.kept_until().seconds()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK);
        Ok(put.build()?)
    }

    /// Returns a notice, unless it is marked as sent. After a crash, a notice that was sent may not be marked.
    pub async fn unsent_notice(&self, id: NoticeId) -> Result<Option<Notice>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::notice(id)).await? else { return Ok(None) };
        if !row.contains_key(WAKE_AT) {
            return Ok(None);
        }
        Notice::from_row(&row).map(Some)
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
