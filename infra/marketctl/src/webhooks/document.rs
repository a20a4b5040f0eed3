//! What is shown of endpoints and deliveries. Sealed secrets are left out.

use std::collections::BTreeSet;

use secrets::EndpointSecret;
use serde::Serialize;
use types::event::EventKind;
use types::ids::{DeliveryId, EndpointId};
use types::timestamp::Timestamp;
use webhooks::delivery::{Attempt, Delivery, Failure, Status};
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};

/// An endpoint without its secrets.
#[derive(Serialize)]
pub(super) struct EndpointDocument<'a> {
    pub(super) id: EndpointId,
    pub(super) url: &'a str,
    pub(super) events: &'a BTreeSet<EventKind>,
    pub(super) status: &'static str,
    pub(super) disabled_reason: Option<DisabledReason>,
    pub(super) created_at: Timestamp,
}

/// An endpoint with its newest secret, which is shown only once.
#[derive(Serialize)]
pub(super) struct EndpointWithSecret<'a> {
    #[serde(flatten)]
    pub(super) endpoint: EndpointDocument<'a>,
    pub(super) secret: String,
}

/// An endpoint that has been removed.
#[derive(Serialize)]
pub(super) struct RemovedEndpoint {
    pub(super) id: EndpointId,
    /// The number of its deliveries that were pending or held, and have ended with it.
    pub(super) ended_deliveries: u64,
}

/// A delivery that is on its way.
#[derive(Serialize)]
pub(super) struct SentDelivery {
    pub(super) delivery_id: DeliveryId,
}

/// A delivery as a row of a list.
#[derive(Serialize)]
pub(super) struct DeliveryRow {
    pub(super) id: DeliveryId,
    pub(super) endpoint_id: EndpointId,
    pub(super) event: EventKind,
    pub(super) status: Status,
    /// The number of recorded attempts, over all rounds, also of those that are not kept.
    pub(super) attempts: usize,
    pub(super) created_at: Timestamp,
    pub(super) next_attempt_at: Option<Timestamp>,
    pub(super) test: bool,
}

/// A delivery with its attempts.
#[derive(Serialize)]
pub(super) struct DeliveryDocument<'a> {
    pub(super) id: DeliveryId,
    pub(super) endpoint_id: EndpointId,
    pub(super) event: EventKind,
    pub(super) status: Status,
    pub(super) failure: Option<Failure>,
    /// The latest attempts, over all rounds.
    pub(super) attempts: &'a [Attempt],
    /// How many older attempts are not kept.
    pub(super) attempts_dropped: usize,
    pub(super) next_attempt_at: Option<Timestamp>,
    pub(super) created_at: Timestamp,
    pub(super) round: u32,
    pub(super) test: bool,
    pub(super) body: &'a str,
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
    pub(super) fn new(endpoint: &'a WebhookEndpoint, secret: &EndpointSecret) -> Self {
        Self { endpoint: endpoint.into(), secret: secret.reveal() }
    }
}

impl From<&Delivery> for DeliveryRow {
    fn from(delivery: &Delivery) -> Self {
        Self {
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            event: delivery.event,
            status: delivery.progress.status,
            attempts: delivery.progress.recorded_attempts(),
            created_at: delivery.created_at,
            next_attempt_at: next_attempt_at(delivery),
            test: delivery.is_test,
        }
    }
}

impl<'a> From<&'a Delivery> for DeliveryDocument<'a> {
    fn from(delivery: &'a Delivery) -> Self {
        Self {
            id: delivery.id,
            endpoint_id: delivery.endpoint_id,
            event: delivery.event,
            status: delivery.progress.status,
            failure: delivery.progress.failure,
            attempts: &delivery.progress.attempts,
            attempts_dropped: delivery.progress.dropped_attempts,
            next_attempt_at: next_attempt_at(delivery),
            created_at: delivery.created_at,
            round: delivery.progress.round,
            test: delivery.is_test,
            body: &delivery.body,
        }
    }
}

fn next_attempt_at(delivery: &Delivery) -> Option<Timestamp> {
    (delivery.progress.status == Status::Pending).then_some(delivery.progress.due)
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
