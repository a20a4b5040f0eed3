//! What owners and operators are shown of endpoints and deliveries, by `marketctl --json` and by the account function.
//! Sealed secrets are left out.

use std::collections::BTreeSet;

use common::closed_enum;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, UserId};
use common::timestamp::Timestamp;
use serde::Serialize;
use webhooks::delivery::{Attempt, Delivery, Failure, Progress, Status};
use webhooks::endpoint::{DisabledReason, Switch, WebhookEndpoint};
use webhooks::secrets::EndpointSecret;

use crate::webhooks::{EndpointHealth, Recovery, Removal};

/// An endpoint without its secrets.
#[derive(Serialize)]
pub struct EndpointDocument<'a> {
    pub id: EndpointId,
    pub url: &'a str,
    pub events: &'a BTreeSet<EventKind>,
    pub status: &'static str,
    pub disabled_reason: Option<DisabledReason>,
    pub disabled_at: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When the next secret will sign `X-Service-Signature` by itself, if there is one.
    pub next_secret_active_at: Option<Timestamp>,
    /// Until when a secret is valid that has, or will have, a successor.
    pub old_secret_valid_until: Option<Timestamp>,
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
    /// `None` if it cannot be found out at present.
    pub health: Option<EndpointHealth>,
}

/// An endpoint as an operator is shown it, who may see those of all users.
#[derive(Serialize)]
pub struct EndpointOfUser<T> {
    pub user_id: UserId,
    pub endpoint_id: EndpointId,
    #[serde(flatten)]
    pub endpoint: T,
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
    /// Their owner has sent them again as often as is possible on a day.
    pub too_many_rounds_today: u64,
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

/// A delivery as an operator is shown it, who may see those of all users.
#[derive(Serialize)]
pub struct DeliveryOfUser<T> {
    pub user_id: UserId,
    pub delivery_id: DeliveryId,
    #[serde(flatten)]
    pub delivery: T,
}

impl<T> EndpointOfUser<T> {
    pub const fn new(of: &WebhookEndpoint, endpoint: T) -> Self {
        Self { user_id: of.account_id, endpoint_id: of.id, endpoint }
    }
}

impl<T> DeliveryOfUser<T> {
    pub const fn new(of: &Delivery, delivery: T) -> Self {
        Self { user_id: of.account_id, delivery_id: of.id, delivery }
    }
}

impl<'a> EndpointDocument<'a> {
    /// Returns the document as it is shown at this time.
    pub fn new(endpoint: &'a WebhookEndpoint, now: Timestamp) -> Self {
        let (status, disabled_reason) = match endpoint.switch {
            Switch::On => ("enabled", None),
            Switch::Off(reason) => ("disabled", Some(reason)),
        };
        let WebhookEndpoint { id, url, events, created_at, disabled_at, .. } = endpoint;
        let (next_secret_active_at, old_secret_valid_until) = endpoint.secrets.changes(now);
        Self {
            id: *id,
            url,
            events,
            status,
            disabled_reason,
            disabled_at: *disabled_at,
            created_at: *created_at,
            next_secret_active_at,
            old_secret_valid_until,
        }
    }
}

impl<'a> EndpointWithSecret<'a> {
    pub fn new(endpoint: &'a WebhookEndpoint, secret: &EndpointSecret, now: Timestamp) -> Self {
        Self { endpoint: EndpointDocument::new(endpoint, now), secret: secret.reveal() }
    }
}

impl RemovedEndpoint {
    pub const fn new(id: EndpointId, removal: &Removal) -> Self {
        Self { id, ended_deliveries: removal.ended, unfinished: removal.is_unfinished }
    }
}

impl SentDeliveries {
    pub fn new(recovery: &Recovery) -> Self {
        let Recovery { sent, changed, too_many_rounds, too_many_rounds_today, expired, left, .. } = *recovery;
        Self { sent, skipped: SkippedDeliveries { changed, too_many_rounds, too_many_rounds_today, expired }, left }
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
mod tests {
    use serde_json::{Value, json};
    use webhooks::delivery::{Lease, Token};

    use super::*;

    const ID: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    const EPOCH: &str = "1970-01-01T00:00:00.000Z";

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn delivery(status: Status) -> Delivery {
        let id = ID.parse().unwrap();
        let attempt = |at, status, error: Option<&str>, response: Option<&str>| Attempt {
            at,
            status,
            latency_ms: 12,
            error: error.map(str::to_owned),
            response: response.map(str::to_owned),
        };
        let attempts = vec![
            attempt(at(0), Some(500), Some("answered 500"), Some("oops")),
            attempt(at(30_000), None, Some("timed out"), None),
        ];
        let failure = (status == Status::Failed).then_some(Failure::Unacknowledged);
        let new = Progress::new(id, status, at(0), at(0));
        let progress = Progress { attempts, dropped_attempts: 8, failure, due: at(330_000), ..new };
        Delivery {
            id,
            endpoint_id: ID.parse().unwrap(),
            account_id: ID.parse().unwrap(),
            event: EventKind::ListingSold,
            event_id: None,
            is_test: false,
            created_at: at(0),
            body: "{\"a\": 1}".to_owned(),
            progress,
        }
    }

    #[test]
    fn a_delivery_in_a_list_counts_its_attempts() {
        let row = |status| serde_json::to_value(DeliveryRow::new(&delivery(status), at(0))).unwrap();
        let expected = json!({
            "id": ID, "endpoint_id": ID, "event": "listing.sold", "status": "pending", "attempts": 10,
            "created_at": EPOCH, "next_attempt_at": "1970-01-01T00:05:30.000Z", "waits_for": "retry",
            "test": false,
        });
        assert_eq!(row(Status::Pending), expected);
        for status in [Status::Delivered, Status::Failed, Status::Held] {
            assert_eq!(
                (&row(status)["status"], &row(status)["next_attempt_at"]),
                (&json!(status.as_str()), &Value::Null)
            );
            assert_eq!(row(status)["waits_for"], Value::Null, "{status}");
        }
    }

    #[test]
    fn a_delivery_is_shown_with_its_attempts_and_its_body_as_it_is_sent() {
        let shown = serde_json::to_value(DeliveryDocument::new(&delivery(Status::Failed), at(0))).unwrap();
        let expected = json!({
            "id": ID, "endpoint_id": ID, "event": "listing.sold", "status": "failed", "failure": "unacknowledged",
            "attempts": [
                {"at": EPOCH, "status": 500, "latency_ms": 12, "error": "answered 500", "response": "oops"},
                {"at": "1970-01-01T00:00:30.000Z", "status": null, "latency_ms": 12, "error": "timed out"},
            ],
            "attempts_dropped": 8, "next_attempt_at": null, "waits_for": null, "created_at": EPOCH, "round": 1,
            "test": false, "body": "{\"a\": 1}",
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_pending_delivery_says_what_it_waits_for() {
        let pending = delivery(Status::Pending);
        let waits_for = |delivery: &Delivery, now| {
            let [row, whole] = [
                serde_json::to_value(DeliveryRow::new(delivery, now)).unwrap(),
                serde_json::to_value(DeliveryDocument::new(delivery, now)).unwrap(),
            ];
            assert_eq!(row["waits_for"], whole["waits_for"]);
            row["waits_for"].as_str().unwrap().to_owned()
        };
        assert_eq!([329_999, 330_000].map(|now| waits_for(&pending, at(now))), ["retry", "turn"]);
        let lease = Some(Lease { id: Token::random(), until: at(400_000) });
        let claimed = Delivery { progress: Progress { lease, ..pending.progress.clone() }, ..pending };
        // A lease that has run out is that of an attempt without a result.
        assert_eq!([330_000, 400_000, 400_001].map(|now| waits_for(&claimed, at(now))), ["attempt", "attempt", "turn"]);
    }
}
