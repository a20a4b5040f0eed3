//! Makes the steps of a delivery that depend on its endpoint. Each is one transaction that also checks or changes the
//! endpoint.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{ConditionCheck, Put, TransactWriteItem, Update};

use super::delivery_row::to_row;
use super::endpoint_row::{DISABLED, ENABLED};
use super::expression::Expression;
use super::table::{DISABLED_AT, DISABLED_BY, EPOCH, NOTICE_ID, PK, REASON, STATUS};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::delivery::{Delivery, Transition};
use crate::endpoint::{DisabledReason, Notice, WebhookEndpoint};
use crate::notice::EndpointNotice;
use platform::store::{StoreError, n, retry_conflicts, s};
use platform::transaction;
use types::ids::{DeliveryId, EndpointId, UserId};
use types::timestamp::Timestamp;

/// What became of a step that depends on the endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisableOutcome {
    /// The whole transaction was made.
    Done,
    /// The endpoint has changed since it was read. Nothing was written.
    EndpointMoved,
    /// The delivery has moved on. Nothing was written.
    DeliveryMoved,
}

impl WebhookStore {
    /// Holds a delivery if its endpoint is still off and has not been on since it was read. Without this check,
    /// a delivery could be held just after its endpoint was switched on, and then stay held for ever.
    pub async fn hold(
        &self,
        id: DeliveryId,
        step: &Transition,
        endpoint: &WebhookEndpoint,
    ) -> Result<DisableOutcome, StoreError> {
        self.both((id, endpoint.id), step, vec![self.still_off(endpoint.account_id, [endpoint])?]).await
    }

    /// Stores a delivery as held, with the same check, unless it is stored already. So an endpoint that was removed has
    /// no held deliveries, however late a message comes.
    pub async fn hold_new(
        &self,
        delivery: &Delivery,
        endpoint: &WebhookEndpoint,
    ) -> Result<DisableOutcome, StoreError> {
        let off = self.still_off(endpoint.account_id, [endpoint])?;
        self.all(vec![self.new_delivery(delivery)?, off]).await
    }

    /// Stores new deliveries of an account as held, all or none, with the same check of each endpoint. Transactions of
    /// their own would be in each other's way, because each reads the account's row. Returns whether they were stored.
    pub async fn hold_all_new(
        &self,
        account: UserId,
        held: &[(Delivery, &WebhookEndpoint)],
    ) -> Result<bool, StoreError> {
        let mut writes = Vec::with_capacity(held.len() + 1);
        for (delivery, _) in held {
            writes.push(self.new_delivery(delivery)?);
        }
        let endpoints: BTreeMap<EndpointId, &WebhookEndpoint> =
            held.iter().map(|(_, endpoint)| (endpoint.id, *endpoint)).collect();
        writes.push(self.still_off(account, endpoints.into_values())?);
        Ok(self.all(writes).await? == DisableOutcome::Done)
    }

    fn new_delivery(&self, delivery: &Delivery) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_row(delivery)?))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK)
            .build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Returns the check that endpoints of an account are off, and have not been on since they were read.
    fn still_off<'a>(
        &self,
        account: UserId,
        endpoints: impl IntoIterator<Item = &'a WebhookEndpoint>,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(account)))
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#epoch", EPOCH)
            .expression_attribute_values(":status", s(DISABLED));
        let mut conditions = Vec::new();
        for (number, endpoint) in endpoints.into_iter().enumerate() {
            conditions.push(format!("#e{number}.#status = :status AND #e{number}.#epoch = :epoch{number}"));
            check = check
                .expression_attribute_names(format!("#e{number}"), table::endpoint_attribute(endpoint.id))
                .expression_attribute_values(format!(":epoch{number}"), n(endpoint.epoch));
        }
        let check = check.condition_expression(conditions.join(" AND ")).build()?;
        Ok(TransactWriteItem::builder().condition_check(check).build())
    }

    /// Ends a delivery whose last attempt failed, switches its endpoint off, and stores the notice for its owner.
    /// The endpoint must be on in the epoch in which it was read.
    pub async fn switch_off(
        &self,
        step: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &Notice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let stored = EndpointNotice::Disabled(notice.clone());
        let (off, put) = (self.off(endpoint, notice)?, self.new_notice(&stored, wake_at)?);
        let others =
            vec![TransactWriteItem::builder().update(off).build(), TransactWriteItem::builder().put(put).build()];
        self.both((notice.delivery_id, endpoint.id), step, others).await
    }

    /// Returns the write that switches an endpoint off, if it is on in the same epoch. The endpoint
    /// remembers what its notice says, so that a repair can put a notice back that a restore does not have.
    pub(super) fn off(&self, endpoint: &WebhookEndpoint, notice: &Notice) -> Result<Update, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(endpoint.account_id)))
            .update_expression(
                "SET #e.#status = :off, #e.#reason = :reason, #e.#at = :at, #e.#by = :by, #e.#notice = :notice",
            )
            .condition_expression("#e.#status = :on AND #e.#epoch = :epoch")
            .expression_attribute_names("#e", table::endpoint_attribute(endpoint.id))
            .expression_attribute_names("#status", STATUS)
            .expression_attribute_names("#reason", REASON)
            .expression_attribute_names("#epoch", EPOCH)
            .expression_attribute_names("#at", DISABLED_AT)
            .expression_attribute_names("#by", DISABLED_BY)
            .expression_attribute_names("#notice", NOTICE_ID)
            .expression_attribute_values(":on", s(ENABLED))
            .expression_attribute_values(":off", s(DISABLED))
            .expression_attribute_values(":reason", s(DisabledReason::DeliveriesFailed.as_str()))
            .expression_attribute_values(":epoch", n(endpoint.epoch))
            .expression_attribute_values(":at", n(notice.disabled_at.millis()))
            .expression_attribute_values(":by", s(notice.delivery_id.to_string()))
            .expression_attribute_values(":notice", s(notice.notice_id.to_string()));
        Ok(update.build()?)
    }

    /// Makes a delivery's step and other writes, all or none.
    pub(super) async fn both(
        &self,
        (id, endpoint): (DeliveryId, EndpointId),
        step: &Transition,
        others: Vec<TransactWriteItem>,
    ) -> Result<DisableOutcome, StoreError> {
        let expression = Expression::new(step, endpoint)?;
        let delivery = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::delivery(id)))
            .update_expression(expression.update())
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names))
            .set_expression_attribute_values(Some(expression.values).filter(|values| !values.is_empty()))
            .build()?;
        let mut writes = vec![TransactWriteItem::builder().update(delivery).build()];
        writes.extend(others);
        self.all(writes).await
    }

    /// Makes all writes or none. The first one is that of the delivery.
    pub(super) async fn all(&self, writes: Vec<TransactWriteItem>) -> Result<DisableOutcome, StoreError> {
        let sent = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.clone()));
            transaction::send(request).await
        });
        Ok(match sent.await? {
            Ok(()) => DisableOutcome::Done,
            Err(cancelled) if cancelled.failed(0) => DisableOutcome::DeliveryMoved,
            Err(_) => DisableOutcome::EndpointMoved,
        })
    }
}
