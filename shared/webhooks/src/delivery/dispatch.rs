//! The message that calls for an attempt.

use serde::{Deserialize, Serialize};

use super::{Delivery, Token};
use types::closed_enum;
use types::ids::{DeliveryId, EndpointId, UserId};

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

    /// Returns whether it calls for a retry and not for the first attempt of a round.
    pub const fn is_retry(&self) -> bool {
        self.attempt > 1
    }
}
