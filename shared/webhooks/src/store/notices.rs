//! Notices for owners, and the notes in their endpoints: that the owner is warned of failures, that these are over, and
//! that the endpoint is full.

use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};

use super::endpoints::{ENABLED, warning_value};
use super::settle::DisableOutcome;
use super::table::{NOTICE, PK, TTL, WAKE_AT, WAKE_SHARD};
use super::{WebhookStore, table};
use crate::WARNING_ATTEMPT;
use crate::delivery::{Delivery, Status, Transition};
use crate::endpoint::{Warning, WebhookEndpoint};
use crate::notice::{DisabledNotice, EndpointNotice, FailingNotice, FullNotice, RecoveredNotice};
use common::change::Change;
use common::ids::{DeliveryId, NoticeId};
use common::store::{Attributes, Row, StoreError, get_row, n, s};
use common::timestamp::{DAY_MILLIS, Timestamp};

/// How many pages of the oldest pending deliveries are read to find out whether an endpoint still fails.
const OLDEST_PAGES: u32 = 3;
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

    /// Records a failed attempt, notes that the owner is warned, and stores the warning. The latest warning must still be
    /// the one with which the endpoint was read.
    pub async fn warn(
        &self,
        transition: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &FailingNotice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let first = Warning { epoch: endpoint.epoch, number: 0, at: notice.failing_at, is_over: false };
        let change = in_same_epoch(endpoint);
        let change = match endpoint.current_warning() {
            None => change.when("attribute_not_exists(#e.#warning) OR #e.#warning.#epoch <> :epoch"),
            Some(seen) => {
                let is_same = "#e.#warning.#epoch = :epoch AND #e.#warning.#at = :at";
                change.when(is_same).when("attribute_exists(#e.#warning.#is_over)").value(":at", n(seen.at.millis()))
            }
        };
        let next = endpoint.current_warning().and_then(|seen| seen.next(notice.failing_at)).unwrap_or(first);
        let change = change.update("SET #e.#warning = :warning").value(":warning", warning_value(next));
        let stored = EndpointNotice::Failing(notice.clone());
        let others = vec![change.part(&self.table)?, self.new_notice(&stored, wake_at)?];
        self.both((notice.delivery_id, endpoint.id), transition, others).await
    }

    /// Returns whether a delivery to an endpoint, other than this one, is pending and has failed in this epoch for as long
    /// as one that warns. Such deliveries are among the oldest, so only those are read. If more than that are pending,
    /// the answer is yes as well.
    pub async fn is_failing(&self, endpoint: &WebhookEndpoint, except: DeliveryId) -> Result<bool, StoreError> {
        let mut from = None;
        for _ in 0..OLDEST_PAGES {
            let page = self.deliveries_with(endpoint.id, Status::Pending, None, from).await?;
            let fails = |delivery: &Delivery| {
                let progress = &delivery.progress;
                delivery.id != except
                    && progress.failed_attempts >= WARNING_ATTEMPT
                    && progress.epoch == Some(endpoint.epoch)
            };
            if page.deliveries.iter().any(fails) {
                return Ok(true);
            }
            from = page.next;
            if from.is_none() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Notes that the warning of this epoch is over, and stores the notice of that. Returns whether the warning was
    /// there and not over.
    pub async fn end_warning(
        &self,
        endpoint: &WebhookEndpoint,
        notice: &RecoveredNotice,
        wake_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let change = in_same_epoch(endpoint)
            .update("SET #e.#warning.#is_over = :true")
            .when("#e.#warning.#epoch = :epoch AND attribute_not_exists(#e.#warning.#is_over)")
            .value(":true", AttributeValue::Bool(true));
        let stored = EndpointNotice::Recovered(notice.clone());
        let writes = vec![change.part(&self.table)?, self.new_notice(&stored, wake_at)?];
        Ok(self.transact(writes, None).await?.is_ok())
    }

    /// Notes that an endpoint is full, and stores a notice of it unless its owner was told within the last day. Returns
    /// whether a notice was stored.
    pub async fn mark_full(
        &self,
        endpoint: &WebhookEndpoint,
        notice: &FullNotice,
        wake_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let change = table::endpoint_change(endpoint.account_id, endpoint.id)
            .when("attribute_not_exists(#e.#full_since)")
            .value(":now", n(notice.full_at.millis()));
        if endpoint.full_told_at.is_some_and(|at| at.plus_millis(DAY_MILLIS) > notice.full_at) {
            return self.change(&change.update("SET #e.#full_since = :now")).await.map(|_| false);
        }
        let change = change.update("SET #e.#full_since = :now, #e.#full_told_at = :now");
        let stored = EndpointNotice::Full(notice.clone());
        let writes = vec![change.part(&self.table)?, self.new_notice(&stored, wake_at)?];
        Ok(self.transact(writes, None).await?.is_ok())
    }

    /// Notes that an endpoint is no longer full.
    pub async fn mark_not_full(&self, endpoint: &WebhookEndpoint) -> Result<bool, StoreError> {
        let change = table::endpoint_change(endpoint.account_id, endpoint.id).update("REMOVE #e.#full_since");
        self.change(&change.when("attribute_exists(#e.#full_since)")).await
    }
}

/// Begins a change of an endpoint, `#e`, that is refused unless the endpoint is on in the same epoch.
fn in_same_epoch(endpoint: &WebhookEndpoint) -> Change {
    table::endpoint_change(endpoint.account_id, endpoint.id)
        .when("#e.#status = :on AND #e.#epoch = :epoch")
        .value(":on", s(ENABLED))
        .value(":epoch", n(endpoint.epoch))
}
