//! Notes in an endpoint that its owner is warned of failures, and that they are over. Each note is stored together with
//! its notice, if the endpoint is on in the epoch in which it was read.

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};

use super::account_change::AccountChange;
use super::endpoint_row::{ENABLED, warning_value};
use super::settle::DisableOutcome;
use super::table::{EPOCH, FULL_SINCE, FULL_TOLD_AT, IS_OVER, STATUS, WARNED_AT, WARNING};
use super::{WebhookStore, table};
use crate::WARNING_ATTEMPT;
use crate::delivery::{Delivery, Status, Transition};
use crate::endpoint::{Warning, WebhookEndpoint};
use crate::notice::{EndpointNotice, FailingNotice, FullNotice, RecoveredNotice};
use platform::store::{StoreError, n, s};
use types::ids::DeliveryId;
use types::timestamp::{DAY_MILLIS, Timestamp};

/// How many pages of the oldest pending deliveries are read to find out whether an endpoint still fails.
const OLDEST_PAGES: u32 = 3;

impl WebhookStore {
    /// Records a failed attempt, notes that the owner is warned, and stores the warning. The latest warning must still be
    /// the one with which the endpoint was read.
    pub async fn warn(
        &self,
        step: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &FailingNotice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let first = Warning { epoch: endpoint.epoch, number: 0, at: notice.failing_at, is_over: false };
        let update = match endpoint.current_warning() {
            None => self.in_same_epoch(endpoint, "(attribute_not_exists(#e.#warning) OR #e.#warning.#epoch <> :epoch)"),
            Some(seen) => {
                let is_over =
                    "#e.#warning.#epoch = :epoch AND #e.#warning.#at = :at AND attribute_exists(#e.#warning.#over)";
                self.in_same_epoch(endpoint, is_over)
                    .expression_attribute_names("#at", WARNED_AT)
                    .expression_attribute_names("#over", IS_OVER)
                    .expression_attribute_values(":at", n(seen.at.millis()))
            }
        };
        let next = endpoint.current_warning().and_then(|seen| seen.next(notice.failing_at)).unwrap_or(first);
        let update = update
            .update_expression("SET #e.#warning = :warning")
            .expression_attribute_values(":warning", warning_value(next));
        let stored = EndpointNotice::Failing(notice.clone());
        self.both((notice.delivery_id, endpoint.id), step, self.with_notice(update.build()?, &stored, wake_at)?).await
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
        let is_open = "#e.#warning.#epoch = :epoch AND attribute_not_exists(#e.#warning.#over)";
        let update = self
            .in_same_epoch(endpoint, is_open)
            .update_expression("SET #e.#warning.#over = :true")
            .expression_attribute_names("#over", IS_OVER)
            .expression_attribute_values(":true", AttributeValue::Bool(true));
        let stored = EndpointNotice::Recovered(notice.clone());
        let writes = self.with_notice(update.build()?, &stored, wake_at)?;
        Ok(self.all(writes).await? == DisableOutcome::Done)
    }

    /// Notes that an endpoint is full, and stores a notice of it unless its owner was told within the last day. Returns
    /// whether a notice was stored.
    pub async fn mark_full(
        &self,
        endpoint: &WebhookEndpoint,
        notice: &FullNotice,
        wake_at: Timestamp,
    ) -> Result<bool, StoreError> {
        let is_told = endpoint.full_told_at.is_some_and(|at| at.plus_millis(DAY_MILLIS) > notice.full_at);
        let (update, told) = if is_told {
            ("SET #e.#full = :now", None)
        } else {
            ("SET #e.#full = :now, #e.#told = :now", Some(EndpointNotice::Full(notice.clone())))
        };
        let mut change = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(endpoint.account_id)))
            .update_expression(update)
            .condition_expression("attribute_exists(#e) AND attribute_not_exists(#e.#full)")
            .expression_attribute_names("#e", table::endpoint_attribute(endpoint.id))
            .expression_attribute_names("#full", FULL_SINCE)
            .expression_attribute_values(":now", n(notice.full_at.millis()));
        let Some(stored) = told else {
            let write = TransactWriteItem::builder().update(change.build()?).build();
            return self.all(vec![write]).await.map(|_| false);
        };
        change = change.expression_attribute_names("#told", FULL_TOLD_AT);
        let writes = self.with_notice(change.build()?, &stored, wake_at)?;
        Ok(self.all(writes).await? == DisableOutcome::Done)
    }

    /// Notes that an endpoint is no longer full.
    pub async fn mark_not_full(&self, endpoint: &WebhookEndpoint) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(endpoint.id)
            .update("REMOVE #e.#full")
            .when("attribute_exists(#e.#full)")
            .named("#full", FULL_SINCE);
        self.change_account(endpoint.account_id, change).await
    }

    /// Begins an update of an endpoint, `#e`, that is refused unless the endpoint is on in the same epoch, and this condition
    /// holds.
    fn in_same_epoch(&self, endpoint: &WebhookEndpoint, condition: &str) -> UpdateBuilder {
        Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(endpoint.account_id)))
            .condition_expression(format!("#e.#status = :on AND #e.#epoch = :epoch AND {condition}"))
            .expression_attribute_names("#e", table::endpoint_attribute(endpoint.id))
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#epoch", EPOCH)
            .expression_attribute_names("#warning", WARNING)
            .expression_attribute_values(":on", s(ENABLED))
            .expression_attribute_values(":epoch", n(endpoint.epoch))
    }

    /// Returns the write of an endpoint and the write of its notice.
    fn with_notice(
        &self,
        update: Update,
        notice: &EndpointNotice,
        wake_at: Timestamp,
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let put = self.new_notice(notice, wake_at)?;
        Ok(vec![TransactWriteItem::builder().update(update).build(), TransactWriteItem::builder().put(put).build()])
    }
}
