//! What owners and operators are shown of endpoints and deliveries, by `marketctl --json` and by the account function.
//! Sealed secrets are left out.

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

/// An endpoint that has been removed.
#[derive(Serialize)]
pub struct RemovedEndpoint {
    pub id: EndpointId,
    /// The number of its deliveries that were pending or held, and have ended with it.
    pub ended_deliveries: u64,
}

/// A delivery that is on its way.
#[derive(Serialize)]
pub struct SentDelivery {
    pub delivery_id: DeliveryId,
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
