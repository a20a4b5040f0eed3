//! What owners and operators are shown of endpoints and deliveries, by `marketctl --json` and by the account function.
//! Sealed secrets are left out.

use std::collections::BTreeSet;

use super::{EndpointHealth, Recovery, Removal};
use common::closed_enum;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId};
use common::timestamp::Timestamp;
use serde::Serialize;
use webhooks::delivery::{Attempt, Delivery, Failure, Progress, Status};
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};
use webhooks::secrets::EndpointSecret;

/// An endpoint without its secrets.
#[derive(Serialize)]
pub struct EndpointDocument<'a> {
    pub id: EndpointId,
    pub url: &'a str,
    pub events: &'a BTreeSet<EventKind>,
    pub status: &'static str,
    pub disabled_reason: Option<DisabledReason>,
    pub created_at: Timestamp,
}

/// An endpoint with its newest secret, which is shown only once.
#[derive(Serialize)]
pub struct EndpointWithSecret<'a> {
    #[serde(flatten)]
    pub endpoint: EndpointDocument<'a>,
    pub secret: String,
}

/// An endpoint with its state.
#[derive(Serialize)]
pub struct EndpointWithHealth<'a> {
    #[serde(flatten)]
    pub endpoint: EndpointDocument<'a>,
    pub health: EndpointHealth,
}

/// An endpoint that has been removed.
#[derive(Serialize)]
pub struct RemovedEndpoint {
    pub id: EndpointId,
    /// The number of its deliveries that were pending or held, and have ended with it.
    pub ended_deliveries: u64,
    /// Whether there are more. They end by themselves.
    pub unfinished: bool,
}

/// A delivery that is on its way.
#[derive(Serialize)]
pub struct SentDelivery {
    pub delivery_id: DeliveryId,
}

/// What a recovery did.
#[derive(Debug, Default, Serialize)]
pub struct SentDeliveries {
    /// How many deliveries begin a new round.
    pub sent: u64,
    pub skipped: SkippedDeliveries,
    /// About how many are left, at most 100,000. If there are any, the same command sends more.
    pub left: u64,
}

/// The deliveries that a recovery did not send again.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct SkippedDeliveries {
    /// Somebody else has sent them again meanwhile, for example.
    pub changed: u64,
    pub too_many_rounds: u64,
    /// They are no longer kept.
    pub expired: u64,
}

closed_enum! {
    /// Why no attempt of a pending delivery has been made yet.
    pub enum WaitsFor {
        /// The attempt is being made.
        Attempt = "attempt",
        /// The attempt is due. It waits until it is its turn, because the endpoint is slow or new, or has more to do than
        /// is done at once.
        Turn = "turn",
        /// The attempt is not due before `next_attempt_at`.
        Retry = "retry",
    }
}

/// A delivery as a row of a list.
#[derive(Serialize)]
pub struct DeliveryRow {
    pub id: DeliveryId,
    pub endpoint_id: EndpointId,
    pub event: EventKind,
    pub status: Status,
    /// The number of recorded attempts, over all rounds, also of those that are not kept.
    pub attempts: usize,
    pub created_at: Timestamp,
    pub next_attempt_at: Option<Timestamp>,
    pub waits_for: Option<WaitsFor>,
    pub test: bool,
}

/// A delivery with its attempts.
#[derive(Serialize)]
pub struct DeliveryDocument<'a> {
    pub id: DeliveryId,
    pub endpoint_id: EndpointId,
    pub event: EventKind,
    pub status: Status,
    pub failure: Option<Failure>,
    /// The latest attempts, over all rounds.
    pub attempts: &'a [Attempt],
    /// How many older attempts are not kept.
    pub attempts_dropped: usize,
    pub next_attempt_at: Option<Timestamp>,
    pub waits_for: Option<WaitsFor>,
    pub created_at: Timestamp,
    pub round: u32,
    pub test: bool,
    pub body: &'a str,
}

impl<'a> From<&'a WebhookEndpoint> for EndpointDocument<'a> {
    fn from(endpoint: &'a WebhookEndpoint) -> Self {
        let (status, disabled_reason) = match endpoint.switch {
            Switch::On => ("enabled", None),
            Switch::Off(reason) => ("disabled", Some(reason)),
        };
        let WebhookEndpoint { id, url, events, created_at, .. } = endpoint;
        Self { id: *id, url, events, status, disabled_reason, created_at: *created_at }
    }
}

impl<'a> EndpointWithSecret<'a> {
    pub fn new(endpoint: &'a WebhookEndpoint, secret: &EndpointSecret) -> Self {
        Self { endpoint: endpoint.into(), secret: secret.reveal() }
    }
}

impl RemovedEndpoint {
    pub const fn new(id: EndpointId, removal: &Removal) -> Self {
        Self { id, ended_deliveries: removal.ended, unfinished: removal.is_unfinished }
    }
}

impl SentDeliveries {
    pub fn new(recovery: &Recovery) -> Self {
        let Recovery { sent, changed, too_many_rounds, expired, left, .. } = *recovery;
        Self { sent, skipped: SkippedDeliveries { changed, too_many_rounds, expired }, left }
    }
}

impl DeliveryRow {
    /// Returns the row as it is shown at this time.
    pub fn new(delivery: &Delivery, now: Timestamp) -> Self {
        Self {
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            event: delivery.event,
            status: delivery.progress.status,
            attempts: delivery.progress.recorded_attempts(),
            created_at: delivery.created_at,
            next_attempt_at: next_attempt_at(delivery),
            waits_for: WaitsFor::of(&delivery.progress, now),
            test: delivery.is_test,
        }
    }
}

impl<'a> DeliveryDocument<'a> {
    /// Returns the document as it is shown at this time.
    pub fn new(delivery: &'a Delivery, now: Timestamp) -> Self {
        Self {
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            event: delivery.event,
            status: delivery.progress.status,
            failure: delivery.progress.failure,
            attempts: &delivery.progress.attempts,
            attempts_dropped: delivery.progress.dropped_attempts,
            next_attempt_at: next_attempt_at(delivery),
            waits_for: WaitsFor::of(&delivery.progress, now),
            created_at: delivery.created_at,
            round: delivery.progress.round,
            test: delivery.is_test,
            body: &delivery.body,
        }
    }
}

impl WaitsFor {
    fn of(progress: &Progress, now: Timestamp) -> Option<Self> {
        let waits_for = match progress.due <= now {
            _ if progress.is_leased(now) => Self::Attempt,
            true => Self::Turn,
            false => Self::Retry,
        };
        (progress.status == Status::Pending).then_some(waits_for)
    }
}

fn next_attempt_at(delivery: &Delivery) -> Option<Timestamp> {
    (delivery.progress.status == Status::Pending).then_some(delivery.progress.due)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
