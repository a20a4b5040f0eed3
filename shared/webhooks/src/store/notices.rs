//! Notices for owners, and the note in an endpoint that its owner was warned.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};

use super::endpoint_steps::DisableOutcome;
use super::endpoints::{ENABLED, warning_value};
use super::table::{NOTICE, PK, TTL, WAKE_AT, WAKE_SHARD};
use super::{WebhookStore, table};
use crate::delivery::Transition;
use crate::endpoint::{Warning, WebhookEndpoint};
use crate::notice::{DisabledNotice, EndpointNotice, FailingNotice};
use common::ids::NoticeId;
use common::store::{Attributes, Row, StoreError, get_row, n, s};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// How long a notice is kept after the event that it is about, so that an operator can see it: 35 days.
const NOTICE_TTL_MILLIS: i64 = 35 * DAY_MILLIS;

impl EndpointNotice {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::NOTICE_FORMAT.of_row(row)?;
        let notice = Attributes(row).text(NOTICE).and_then(|text| serde_json::from_str(text).ok());
        notice.ok_or_else(|| StoreError::corrupt(NOTICE))
    }
}

impl DisabledNotice {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        match EndpointNotice::from_row(row)? {
            EndpointNotice::Disabled(notice) => Ok(notice),
            EndpointNotice::Failing(_) => Err(StoreError::corrupt(NOTICE)),
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
    pub(super) fn new_notice(
        &self,
        notice: &EndpointNotice,
        wake_at: Timestamp,
    ) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(table::notice(notice.about().notice_id)))
            .item(NOTICE, s(serde_json::to_string(notice)?))
            .item(WAKE_SHARD, s(table::wake_shard(notice.about().notice_id.uuid())))
            .item(WAKE_AT, n(wake_at.millis()))
            .item(TTL, n(kept_until(notice.at()).seconds()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK);
        Ok(TransactWriteItem::builder().put(put.build()?).build())
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
        let sent = table::change(table::notice(id)).update("REMOVE #wake_at").when("attribute_exists(#pk)");
        self.change(&sent).await.map(drop)
    }

    /// Records a failed attempt, notes that the owner is warned, and stores the warning. The endpoint must be on in the epoch
    /// in which it was read, and its owner must not have been warned in it within a day.
    pub async fn warn(
        &self,
        transition: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &FailingNotice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let warning = Warning { epoch: endpoint.epoch, at: notice.failing_at };
        let change = table::endpoint_change(endpoint.account_id, endpoint.id)
            .update("SET #e.#warning = :warning")
            .when("#e.#status = :on AND #e.#epoch = :epoch")
            .when("attribute_not_exists(#e.#warning) OR #e.#warning.#epoch <> :epoch OR #e.#warning.#at <= :day_ago")
            .value(":warning", warning_value(warning))
            .value(":on", s(ENABLED))
            .value(":epoch", n(endpoint.epoch))
            .value(":day_ago", n(notice.failing_at.plus_millis(-DAY_MILLIS).millis()));
        let stored = EndpointNotice::Failing(notice.clone());
        let others = vec![change.part(&self.table)?, self.new_notice(&stored, wake_at)?];
        self.both((notice.delivery_id, endpoint.id), transition, others).await
    }
}
