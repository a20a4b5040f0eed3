//! Shows an endpoint's deliveries, sends test events, and resends deliveries.

use uuid::Uuid;

use super::{WebhookAdmin, WebhookAdminError};
use types::event::EventKind;
use types::ids::{DeliveryId, EndpointId, EventId, UserId};
use types::timestamp::DAY_MILLIS;
use webhooks::delivery::{Delivery, MAX_ROUNDS, Progress, Status, Token, resend};
use webhooks::store::{DeliveryPage, StartKey, StepOutcome};
use webhooks::{body, delivery_id};

/// How long after its fan-out a delivery can be resent: 35 days (specification 6.6.5).
pub(super) const RESENDABLE_FOR_MILLIS: i64 = 35 * DAY_MILLIS;

impl WebhookAdmin {
    /// Returns a page of an endpoint's deliveries, newest first, and those that cannot be read. The endpoint may have
    /// been removed.
    pub async fn deliveries(&self, id: EndpointId, from: Option<StartKey>) -> Result<DeliveryPage, WebhookAdminError> {
        self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        Ok(self.store.deliveries_of(id, from).await?)
    }

    /// Returns a delivery with its attempts.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Delivery, WebhookAdminError> {
        self.store.delivery(id).await?.ok_or(WebhookAdminError::UnknownDelivery(id))
    }

    /// Sends sample data of an event to an endpoint, by default of the first event that it selected. A test has one
    /// attempt, and its failure never switches the endpoint off (specification 6.14).
    pub async fn test(&self, id: EndpointId, event: Option<EventKind>) -> Result<DeliveryId, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        if !endpoint.is_on() {
            return Err(WebhookAdminError::Disabled(id));
        }
        let event = event.or_else(|| endpoint.events.first().copied()).unwrap_or(EventKind::ALL[0]);
        let now = self.clock.now();
        let delivery_id = delivery_id(EventId::from(Uuid::new_v4()), id);
        let delivery = Delivery {
            id: delivery_id,
            endpoint_id: id,
            account_id: endpoint.account_id,
            event,
            is_test: true,
            created_at: now,
            body: body(delivery_id, event, now, &event.sample_data().to_string()),
            progress: Progress::new(delivery_id, Status::Pending, now, now),
        };
        self.store.call_drain_by(endpoint.account_id, now, now).await?;
        self.store.put_delivery(&delivery).await?;
        self.call(&delivery).await
    }

    /// Begins a new round of attempts, whatever the delivery's status (specification 6.10.4). The endpoint must be on,
    /// no attempt may be under way, and the delivery must have had fewer than [`MAX_ROUNDS`] rounds.
    pub async fn resend(&self, id: DeliveryId) -> Result<DeliveryId, WebhookAdminError> {
        let seen = self.delivery(id).await?;
        self.require_on(seen.account_id, seen.endpoint_id).await?;
        let now = self.clock.now();
        self.store.call_drain_by(seen.account_id, now, now).await?;
        self.begin_round(&seen).await?;
        self.call(&seen).await
    }

    /// Refuses to go on unless the endpoint is there and on.
    pub(super) async fn require_on(&self, account: UserId, id: EndpointId) -> Result<(), WebhookAdminError> {
        let endpoint = self.store.endpoint(account, id).await?.ok_or(WebhookAdminError::Removed(id))?;
        if endpoint.is_on() { Ok(()) } else { Err(WebhookAdminError::Disabled(id)) }
    }

    /// Writes that a new round begins, if the delivery's status, round and attempts are still as they were seen. The
    /// drain of the account is still to be called.
    pub(super) async fn begin_round(&self, seen: &Delivery) -> Result<(), WebhookAdminError> {
        let (id, now, token) = (seen.id, self.clock.now(), Token::random());
        if seen.created_at.plus_millis(RESENDABLE_FOR_MILLIS) <= now {
            return Err(WebhookAdminError::UnknownDelivery(id));
        }
        if seen.progress.round >= MAX_ROUNDS {
            return Err(WebhookAdminError::TooManyRounds(id));
        }
        match self.store.step(id, seen.endpoint_id, &resend(&seen.progress, token, now)).await? {
            StepOutcome::Changed(_) => Ok(()),
            // The answer to an earlier try of the same write was lost.
            StepOutcome::Refused(Some(found)) if found.progress.token == token => Ok(()),
            StepOutcome::Refused(Some(found)) if found.progress.is_leased(now) => Err(WebhookAdminError::Busy(id)),
            StepOutcome::Refused(Some(_)) => Err(WebhookAdminError::Changed),
            StepOutcome::Refused(None) => Err(WebhookAdminError::UnknownDelivery(id)),
        }
    }

    /// Calls the drain that makes the attempt. The drain was called before the delivery was written, so it finds the
    /// delivery within minutes even if this fails.
    async fn call(&self, delivery: &Delivery) -> Result<DeliveryId, WebhookAdminError> {
        let called = self.drains.call(delivery.account_id, self.clock.now()).await;
        called.map(|()| delivery.id).map_err(|error| WebhookAdminError::Late(delivery.id, error))
    }
}
