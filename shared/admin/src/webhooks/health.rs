//! What an owner is shown of the state of an endpoint.

use super::{WebhookAdmin, WebhookAdminError};
use common::ids::EndpointId;
use common::timestamp::Timestamp;
use serde::Serialize;
use webhooks::Schedule;
use webhooks::delivery::{Attempt, Delivery, Status, at_once};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{DeliveryFilter, MAX_PAGE_ROWS};

/// How many waiting deliveries are counted.
const MAX_COUNTED: u64 = 100_000;
/// How many pages of an index are looked through, each of [`MAX_PAGE_ROWS`] deliveries.
const PAGES: usize = 3;

/// The state of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EndpointHealth {
    /// How many deliveries wait for their turn to be sent for the first time in their round. At most 100,000 are counted.
    pub waiting: u64,
    /// Since when the first of them has waited.
    pub oldest_waiting_at: Option<Timestamp>,
    /// When the latest attempt was acknowledged, of those of the newest 300 deliveries.
    pub last_success_at: Option<Timestamp>,
    /// When the latest attempt failed, of those of the newest 300 deliveries.
    pub last_failure_at: Option<Timestamp>,
    /// Whether it is not known to respond promptly. Then its deliveries wait for their turn.
    pub slow: bool,
    /// When the first attempt of the delivery failed that decides `switch_off_at`.
    pub failing_since: Option<Timestamp>,
    /// When the endpoint is switched off if all further attempts fail. It is the earliest time at which a round ends, of
    /// the 300 oldest pending deliveries.
    pub switch_off_at: Option<Timestamp>,
    /// Whether its owner was warned of failures, and no attempt was acknowledged since then.
    pub warned: bool,
}

/// The deliveries and counts from which the state is computed.
struct Findings {
    waiting: u64,
    oldest_waiting_at: Option<Timestamp>,
    newest: Vec<Delivery>,
    oldest_pending: Vec<Delivery>,
}

impl WebhookAdmin {
    /// Returns an endpoint and its state.
    pub async fn endpoint(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointHealth), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let now = self.clock.now();
        let waiting = self.store.waiting(id, false, MAX_PAGE_ROWS).await?;
        let oldest_pending = self.oldest_pending(id).await?;
        // What owners and operators have sent bears no time in the index.
        let first = waiting.iter().map(|waiting| waiting.at).find(|at| *at > at_once());
        let sent = oldest_pending.iter().map(|delivery| &delivery.progress);
        let sent = sent.filter(|progress| progress.wake_at == Some(at_once())).map(|progress| progress.due);
        let rows = PAGES * MAX_PAGE_ROWS.unsigned_abs() as usize;
        let newest = self.store.list_deliveries(id, &DeliveryFilter::default(), None, rows).await?;
        let findings = Findings {
            waiting: self.store.count_waiting(id, now, MAX_COUNTED).await?.min(MAX_COUNTED),
            oldest_waiting_at: first.into_iter().chain(sent).min().filter(|at| *at <= now),
            newest: newest.deliveries,
            oldest_pending,
        };
        let health = EndpointHealth::of(&endpoint, &findings, self.drains.schedule(), now);
        Ok((endpoint, health))
    }

    async fn oldest_pending(&self, id: EndpointId) -> Result<Vec<Delivery>, WebhookAdminError> {
        let (mut found, mut from) = (Vec::new(), None);
        for _ in 0..PAGES {
            let page = self.store.deliveries_with(id, Status::Pending, None, from).await?;
            found.extend(page.deliveries);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

impl EndpointHealth {
    fn of(endpoint: &WebhookEndpoint, found: &Findings, schedule: Schedule, now: Timestamp) -> Self {
        let attempts = || found.newest.iter().flat_map(|delivery| &delivery.progress.attempts);
        let latest = |is_success| {
            attempts().filter(|attempt| attempt.is_acknowledged() == is_success).map(|attempt| attempt.at).max()
        };
        let pending = found.oldest_pending.iter().filter(|delivery| may_switch_off(delivery, endpoint));
        let deciding = pending.min_by_key(|delivery| round_ends_at(delivery, schedule, now));
        Self {
            waiting: found.waiting,
            oldest_waiting_at: found.oldest_waiting_at,
            last_success_at: latest(true),
            last_failure_at: latest(false),
            slow: !endpoint.is_prompt,
            failing_since: deciding.and_then(|delivery| Some(first_of_round(delivery)?.at)),
            switch_off_at: deciding.map(|delivery| round_ends_at(delivery, schedule, now)),
            warned: endpoint.current_warning().is_some_and(|warning| !warning.is_over),
        }
    }
}

/// Returns whether the endpoint is switched off if all further attempts of a delivery fail.
fn may_switch_off(delivery: &Delivery, endpoint: &WebhookEndpoint) -> bool {
    let progress = &delivery.progress;
    endpoint.is_on()
        && !delivery.is_test
        && progress.status == Status::Pending
        && progress.failed_attempts > 0
        && progress.epoch == Some(endpoint.epoch)
}

/// Returns when the last attempt of a delivery's round is made at the earliest.
fn round_ends_at(delivery: &Delivery, schedule: Schedule, now: Timestamp) -> Timestamp {
    schedule.last_due(delivery.progress.failed_attempts + 1, delivery.progress.due.max(now))
}

fn first_of_round(delivery: &Delivery) -> Option<&Attempt> {
    let attempts = &delivery.progress.attempts;
    attempts.get(attempts.len().saturating_sub(delivery.progress.failed_attempts as usize))
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
