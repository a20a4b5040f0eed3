//! Notes in an endpoint that its owner is warned of failures, and that they are over. Each note is stored together with
//! its notice, if the endpoint is on in the epoch in which it was read.

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{AttributeValue, TransactWriteItem, Update};

use super::endpoint_row::{ENABLED, warning_value};
use super::settle::DisableOutcome;
use super::table::{EPOCH, IS_OVER, STATUS, WARNING};
use super::{WebhookStore, table};
use crate::delivery::Transition;
use crate::endpoint::{Warning, WebhookEndpoint};
use crate::notice::{EndpointNotice, FailingNotice, RecoveredNotice};
use platform::store::{StoreError, n, s};
use types::timestamp::Timestamp;

impl WebhookStore {
    /// Records a failed attempt, notes that the owner is warned, and stores the warning. There must have been none in
    /// this epoch.
    pub async fn warn(
        &self,
        step: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &FailingNotice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let warning = Warning { epoch: endpoint.epoch, at: notice.failing_at, is_over: false };
        let is_first = "(attribute_not_exists(#e.#warning) OR #e.#warning.#epoch <> :epoch)";
        let update = self
            .in_same_epoch(endpoint, is_first)
            .update_expression("SET #e.#warning = :warning")
            .expression_attribute_values(":warning", warning_value(warning));
        let stored = EndpointNotice::Failing(notice.clone());
        self.both((notice.delivery_id, endpoint.id), step, self.with_notice(update.build()?, &stored, wake_at)?).await
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
