//! Makes the steps of a delivery that depend on its endpoint. Each is one transaction that also checks or changes the
//! endpoint.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};

use super::deliveries::{step, to_row};
use super::endpoints::{DISABLED, ENABLED};
use super::table::PK;
use super::{WebhookStore, table};
use crate::delivery::{Delivery, Transition};
use crate::endpoint::{DisabledReason, WebhookEndpoint};
use crate::notice::{DisabledNotice, EndpointNotice};
use common::change::Change;
use common::ids::{DeliveryId, EndpointId, UserId};
use common::store::{StoreError, n, s};
use common::timestamp::Timestamp;

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

/// A delivery that is to be held.
pub enum Hold {
    /// It is not stored yet.
    New(Delivery),
    /// It is stored, and this step holds it.
    Stored(DeliveryId, Transition),
}

impl WebhookStore {
    /// Holds up to 99 deliveries of an account, all or none, if their endpoints are still off and have not been on since they were
    /// read. Without this check, a delivery could be held just after its endpoint was switched on, and then stay held for
    /// ever. A new delivery is stored as held unless it is stored already: so an endpoint that was removed has no held
    /// deliveries, however late a message comes.
    ///
    /// Deliveries that are held one by one are in each other's way, because each transaction reads the account's row.
    pub async fn hold_all(
        &self,
        account: UserId,
        held: &[(Hold, &WebhookEndpoint)],
    ) -> Result<DisableOutcome, StoreError> {
        let mut writes = Vec::with_capacity(held.len() + 1);
        for (hold, endpoint) in held {
            writes.push(match hold {
                Hold::New(delivery) => self.new_delivery(delivery)?,
                Hold::Stored(id, transition) => step(*id, endpoint.id, transition)?.part(&self.table)?,
            });
        }
        let endpoints: BTreeMap<EndpointId, &WebhookEndpoint> =
            held.iter().map(|(_, endpoint)| (endpoint.id, *endpoint)).collect();
        writes.push(self.still_off(account, endpoints.into_values())?);
        Ok(match self.transact(writes, None).await? {
            Ok(()) => DisableOutcome::Done,
            Err(cancelled) if (0..held.len()).any(|number| cancelled.failed(number)) => DisableOutcome::DeliveryMoved,
            Err(_) => DisableOutcome::EndpointMoved,
        })
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
        let mut check = table::change(table::account(account)).value(":status", s(DISABLED));
        for (number, endpoint) in endpoints.into_iter().enumerate() {
            check = check
                .when(&format!("#e{number}.#status = :status AND #e{number}.#epoch = :epoch{number}"))
                .name(format!("#e{number}"), table::endpoint_attribute(endpoint.id))
                .value(format!(":epoch{number}"), n(endpoint.epoch));
        }
        check.part(&self.table)
    }

    /// Ends a delivery whose last attempt failed, switches its endpoint off, and stores the notice for its owner.
    /// The endpoint must be on in the epoch in which it was read.
    pub async fn switch_off(
        &self,
        transition: &Transition,
        endpoint: &WebhookEndpoint,
        notice: &DisabledNotice,
        wake_at: Timestamp,
    ) -> Result<DisableOutcome, StoreError> {
        let stored = EndpointNotice::Disabled(notice.clone());
        let others = vec![off(endpoint, notice).part(&self.table)?, self.new_notice(&stored, wake_at)?];
        self.both((notice.delivery_id, endpoint.id), transition, others).await
    }

    /// Makes a delivery's step and other writes, all or none.
    pub(super) async fn both(
        &self,
        (id, endpoint): (DeliveryId, EndpointId),
        transition: &Transition,
        others: Vec<TransactWriteItem>,
    ) -> Result<DisableOutcome, StoreError> {
        let mut writes = vec![step(id, endpoint, transition)?.part(&self.table)?];
        writes.extend(others);
        self.all(writes).await
    }

    /// Makes all writes or none. The first one is that of the delivery.
    pub(super) async fn all(&self, writes: Vec<TransactWriteItem>) -> Result<DisableOutcome, StoreError> {
        Ok(match self.transact(writes, None).await? {
            Ok(()) => DisableOutcome::Done,
            Err(cancelled) if cancelled.failed(0) => DisableOutcome::DeliveryMoved,
            Err(_) => DisableOutcome::EndpointMoved,
        })
    }
}

/// Returns the write that switches an endpoint off, if it is on in the same epoch. The endpoint remembers what its notice
/// says, so that a repair can put a notice back that a restore does not have.
pub(super) fn off(endpoint: &WebhookEndpoint, notice: &DisabledNotice) -> Change {
    let remembered = "#e.#disabled_at = :at, #e.#disabled_by = :by, #e.#notice_id = :notice";
    table::endpoint_change(endpoint.account_id, endpoint.id)
        .update(format!("SET #e.#status = :off, #e.#reason = :reason, {remembered}"))
        .when("#e.#status = :on AND #e.#epoch = :epoch")
        .value(":on", s(ENABLED))
        .value(":off", s(DISABLED))
        .value(":reason", s(DisabledReason::DeliveriesFailed.as_str()))
        .value(":epoch", n(endpoint.epoch))
        .value(":at", n(notice.disabled_at.millis()))
        .value(":by", s(notice.delivery_id.to_string()))
        .value(":notice", s(notice.about.notice_id.to_string()))
}
