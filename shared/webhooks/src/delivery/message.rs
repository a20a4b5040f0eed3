//! The messages of the delivery queues: one calls for an attempt, and the first one carries its delivery, which has no row
//! yet.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Delivery, LEASE_SECONDS, Lease, Progress, Status, Token};
use common::closed_enum;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, EventId, UserId};
use common::timestamp::Timestamp;

/// A message of the delivery queues. It calls for one attempt of one delivery, and it is void once the delivery
/// has moved on.
///
/// Members that it does not know are ignored: a release that was rolled back may have left messages with more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Dispatch {
    pub delivery_id: DeliveryId,
    /// The account that the endpoint belongs to.
    pub account_id: UserId,
    pub endpoint_id: EndpointId,
    /// The round that the attempt belongs to.
    pub round: u32,
    /// The attempt's number in its round, from 1.
    pub attempt: u32,
    /// Must equal the delivery's token. Otherwise the message is void.
    pub token: Token,
}

closed_enum! {
    /// A delivery queue. Each has workers of its own, so that what is slow does not hold up what is fast.
    pub enum Lane {
        /// First attempts.
        First = "first",
        /// Retries, and first attempts that the first lane does not take.
        Retry = "retry",
        /// Drains of accounts ([`crate::drain`]).
        Slow = "slow",
    }
}

impl Dispatch {
    /// Returns the message for a delivery's next attempt.
    pub const fn next_of(delivery: &Delivery) -> Self {
        let progress = &delivery.progress;
        Self {
            delivery_id: delivery.id,
            account_id: delivery.account_id,
            endpoint_id: delivery.endpoint_id,
            round: progress.round,
            attempt: progress.failed_attempts + 1,
            token: progress.token,
        }
    }

    /// Returns the message for the attempt after this one. It is void until the failure of this one is recorded
    /// under `lease`.
    #[must_use]
    pub const fn after(self, lease: Token) -> Self {
        Self { attempt: self.attempt + 1, token: lease, ..self }
    }
}

/// A new delivery in its first message. Its row is made when somebody begins its first attempt, or when it has to wait
/// for that. Until then the queue is the only place where it is.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Carried {
    pub delivery_id: DeliveryId,
    /// The account that the endpoint belongs to.
    pub account_id: UserId,
    pub endpoint_id: EndpointId,
    pub event: EventKind,
    /// Absent from messages of a release that did not know it.
    #[serde(default)]
    pub event_id: Option<EventId>,
    /// When the event was fanned out.
    pub created_at: Timestamp,
    body: Box<RawValue>,
}

impl Carried {
    /// Takes the body that every attempt sends, which is one JSON object.
    pub fn new(
        delivery_id: DeliveryId,
        (account_id, endpoint_id): (UserId, EndpointId),
        (event_id, event): (EventId, EventKind),
        created_at: Timestamp,
        body: String,
    ) -> Result<Self, serde_json::Error> {
        let body = RawValue::from_string(body)?;
        Ok(Self { delivery_id, account_id, endpoint_id, event, event_id: Some(event_id), created_at, body })
    }

    /// Returns the call for the first attempt. Its token is the delivery's id, so that a repeated fan-out calls for the
    /// same attempt.
    pub fn dispatch(&self) -> Dispatch {
        Dispatch {
            delivery_id: self.delivery_id,
            account_id: self.account_id,
            endpoint_id: self.endpoint_id,
            round: 1,
            attempt: 1,
            token: self.delivery_id.uuid().into(),
        }
    }

    /// Returns the delivery as the holder of a lease begins its first attempt.
    ///
    /// It has no wake-up: until its message is acknowledged, the queue delivers the message again. Whoever receives it
    /// again sets the wake-up ([`super::watch`]).
    pub fn claimed(&self, lease: Token, now: Timestamp) -> Delivery {
        let lease = Lease { id: lease, until: now.plus_millis(LEASE_SECONDS * 1_000) };
        let new = Progress::new(self.delivery_id, Status::Pending, now, now);
        self.with(Progress { lease: Some(lease), claims: 1, wake_at: None, ..new })
    }

    /// Returns the delivery as it is stored before its first attempt: because it waits for the drain of its account, or
    /// because its message has come more than once or cannot be handled. From `wake_at` on the drain makes the attempt,
    /// unless a message has called for it before.
    pub fn stored(&self, wake_at: Timestamp) -> Delivery {
        self.with(Progress::new(self.delivery_id, Status::Pending, self.created_at, wake_at))
    }

    /// Returns the delivery as it is held because its endpoint is off.
    pub fn held(&self, now: Timestamp) -> Delivery {
        self.with(Progress::new(self.delivery_id, Status::Held, now, now))
    }

    fn with(&self, progress: Progress) -> Delivery {
        Delivery {
            id: self.delivery_id,
            endpoint_id: self.endpoint_id,
            account_id: self.account_id,
            event: self.event,
            event_id: self.event_id,
            is_test: false,
            created_at: self.created_at,
            body: self.body.get().to_owned(),
            progress,
        }
    }
}
