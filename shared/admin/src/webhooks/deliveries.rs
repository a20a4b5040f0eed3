//! Shows an endpoint's deliveries, sends test events, and resends deliveries.

use uuid::Uuid;

use super::{WebhookAdmin, WebhookAdminError};
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, EventId, UserId};
use common::timestamp::{DAY_MILLIS, Timestamp};
use webhooks::delivery::{Delivery, MAX_ROUNDS, Progress, Status, Token, due_now, resend, resend_by_owner};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{DeliveryCursor, DeliveryFilter, DeliveryList, Span, StepOutcome};
use webhooks::{delivery_id, test_body};

/// How long after its fan-out a delivery can be resent: 35 days (specification 6.6.5).
pub(super) const RESENDABLE_FOR_MILLIS: i64 = 35 * DAY_MILLIS;

/// Which of an endpoint's deliveries are listed. What is `None` leaves out none.
#[derive(Clone, Copy, Debug, Default)]
pub struct WantedDeliveries {
    pub status: Option<Status>,
    pub event: Option<EventKind>,
    /// Only deliveries that were created at this time or later.
    pub since: Option<Timestamp>,
    /// Only deliveries that were created before this time.
    pub until: Option<Timestamp>,
}

/// Who sends deliveries again. Only what owners send is bounded (specification 6.10.4, 6.11.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResentBy {
    Operator,
    Owner,
}

impl WebhookAdmin {
    /// Returns a page of an endpoint's deliveries, newest first, and those that cannot be read. The page has at most
    /// `limit` deliveries. The endpoint may have been removed.
    pub async fn deliveries(
        &self,
        id: EndpointId,
        wanted: &WantedDeliveries,
        from: Option<DeliveryCursor>,
        limit: usize,
    ) -> Result<DeliveryList, WebhookAdminError> {
        self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        self.list_deliveries(id, wanted, from, limit).await
    }

    /// Does the same for an endpoint that is or was there.
    pub(crate) async fn list_deliveries(
        &self,
        id: EndpointId,
        wanted: &WantedDeliveries,
        from: Option<DeliveryCursor>,
        limit: usize,
    ) -> Result<DeliveryList, WebhookAdminError> {
        let WantedDeliveries { status, event, since, until } = *wanted;
        let is_any_time = since.is_none() && until.is_none();
        let span = if is_any_time { None } else { Some(span(since, until)?) };
        let filter = DeliveryFilter { status, event, span };
        Ok(self.store.list_deliveries(id, &filter, from, limit).await?)
    }

    /// Returns a delivery with its attempts.
    pub async fn delivery(&self, id: DeliveryId) -> Result<Delivery, WebhookAdminError> {
        self.store.delivery(id).await?.ok_or(WebhookAdminError::UnknownDelivery(id))
    }

    /// Sends sample data of an event to an endpoint, by default of the first event that it selected. A test has one
    /// attempt, and its failure never switches the endpoint off. The endpoint may be off (specification 6.14).
    pub async fn test(&self, id: EndpointId, event: Option<EventKind>) -> Result<DeliveryId, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.count_trial(endpoint.account_id, Some(id)).await?;
        let event = event.or_else(|| endpoint.events.first().copied()).unwrap_or(EventKind::ALL[0]);
        let now = self.clock.now();
        let event_id = EventId::from(Uuid::new_v4());
        let delivery_id = delivery_id(event_id, id);
        let delivery = Delivery {
            id: delivery_id,
            endpoint_id: id,
            account_id: endpoint.account_id,
            event,
            event_id: Some(event_id),
            is_test: true,
            created_at: now,
            body: test_body(delivery_id, event, now),
            progress: Progress::new(delivery_id, Status::Pending, now, due_now(1)),
        };
        self.store.wake_drain_by(endpoint.account_id, now, now).await?;
        self.store.put_delivery(&delivery).await?;
        self.call(&delivery).await
    }

    /// Refuses to go on if the account, or the endpoint, had too many trials in this minute.
    pub(super) async fn count_trial(
        &self,
        account: UserId,
        endpoint: Option<EndpointId>,
    ) -> Result<(), WebhookAdminError> {
        let now = self.clock.now();
        if self.store.count_trial(account, endpoint, now).await? {
            return Ok(());
        }
        // If it was removed meanwhile, that is said when it is tried again.
        let seconds = 60 - u32::try_from(now.seconds().rem_euclid(60)).unwrap_or_default();
        Err(WebhookAdminError::TooManyTrials { seconds })
    }

    /// Begins a new round of attempts, whatever the delivery's status (specification 6.10.4). The endpoint must be on,
    /// no attempt may be under way, and the delivery must have had fewer than [`MAX_ROUNDS`] rounds.
    pub async fn resend(&self, id: DeliveryId) -> Result<DeliveryId, WebhookAdminError> {
        self.resend_by(id, ResentBy::Operator).await
    }

    pub(crate) async fn resend_by(&self, id: DeliveryId, by: ResentBy) -> Result<DeliveryId, WebhookAdminError> {
        let seen = self.delivery(id).await?;
        let endpoint = self.require_on(seen.account_id, seen.endpoint_id).await?;
        // A test is what proves a host.
        if !seen.is_test && endpoint.needs_proof(seen.created_at) {
            return Err(WebhookAdminError::Unproven(endpoint.id));
        }
        if by == ResentBy::Owner {
            self.count_trial(seen.account_id, seen.is_test.then_some(seen.endpoint_id)).await?;
        }
        let now = self.clock.now();
        self.store.wake_drain_by(seen.account_id, now, now).await?;
        self.begin_round(&seen, by).await?;
        self.call(&seen).await
    }

    /// Returns the endpoint. Refuses to go on unless it is there and on.
    pub(super) async fn require_on(
        &self,
        account: UserId,
        id: EndpointId,
    ) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.store.endpoint(account, id).await?.ok_or(WebhookAdminError::Removed(id))?;
        if endpoint.is_on() { Ok(endpoint) } else { Err(WebhookAdminError::Disabled(id)) }
    }

    /// Writes that a new round begins, if the delivery's status, round and attempts are still as they were seen. The
    /// drain of the account is still to be called.
    pub(super) async fn begin_round(&self, seen: &Delivery, by: ResentBy) -> Result<(), WebhookAdminError> {
        let (id, now, token) = (seen.id, self.clock.now(), Token::random());
        if seen.created_at.plus_millis(RESENDABLE_FOR_MILLIS) <= now {
            return Err(WebhookAdminError::UnknownDelivery(id));
        }
        if seen.progress.round >= MAX_ROUNDS {
            return Err(WebhookAdminError::TooManyRounds(id));
        }
        let step = match by {
            ResentBy::Operator => Some(resend(&seen.progress, token, now)),
            ResentBy::Owner => resend_by_owner(&seen.progress, token, now),
        };
        let Some(step) = step else {
            let left = DAY_MILLIS - now.millis().rem_euclid(DAY_MILLIS);
            let seconds = u32::try_from((left + 999).div_euclid(1_000)).unwrap_or(u32::MAX);
            return Err(WebhookAdminError::TooManyRoundsToday { id, seconds });
        };
        match self.store.step(id, seen.endpoint_id, &step).await? {
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
        let called = self.drains.wake(delivery.account_id, self.clock.now()).await;
        called.map(|()| delivery.id).map_err(|error| WebhookAdminError::Late(delivery.id, error))
    }
}

/// Returns the span of what was created at `since` or later, and before `until`.
pub(super) fn span(since: Option<Timestamp>, until: Option<Timestamp>) -> Result<Span, WebhookAdminError> {
    if since.zip(until).is_some_and(|(since, until)| since >= until) {
        return Err(WebhookAdminError::Invalid { field: "since", reason: "must be before until".to_owned() });
    }
    let [first, last] = [i64::MIN, i64::MAX].map(Timestamp::from_millis);
    Ok(Span { first: since.unwrap_or(first), last: until.map_or(last, |until| until.plus_millis(-1)) })
}
