//! A delivery: one event on its way to one endpoint. The rules of its life are pure: the store turns them
//! into conditional writes, and a model plays them against each other.

mod attempt;
mod dispatch;
mod steps;
mod sweep;
mod transition;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use attempt::Attempt;
pub use dispatch::{Dispatch, Lane};
pub use steps::{
    AfterFailure, CLAIMS, LEASE_SECONDS, Refusal, after_failure, cease, claim, end, hold, refusal, resend, succeed,
};
pub use sweep::{Resending, overdue_at, sweep};
pub use transition::{Change, Condition, Transition};

use types::event::EventKind;
use types::ids::{DeliveryId, EndpointId, UserId};
use types::scope::{UnknownName, one_of};
use types::timestamp::Timestamp;

/// One event on its way to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The same on every attempt.
    pub id: DeliveryId,
    /// Where it goes.
    pub endpoint_id: EndpointId,
    /// Whose endpoint that is.
    pub account_id: UserId,
    /// What happened.
    pub event: EventKind,
    /// Whether it was made to try the endpoint out: one attempt, and no switch-off.
    pub is_test: bool,
    /// When the event was fanned out.
    pub created_at: Timestamp,
    /// What is sent, byte for byte, on every attempt.
    pub body: String,
    /// How far it has come.
    pub progress: Progress,
}

/// How far a delivery has come: all of it that ever changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    /// Where it stands.
    pub status: Status,
    /// Why it failed, if it did.
    pub failure: Option<Failure>,
    /// From 1; grows with each resend.
    pub round: u32,
    /// Failed attempts of the round that are recorded.
    pub recorded: u32,
    /// What the next message must carry.
    pub token: Token,
    /// Who is making an attempt.
    pub lease: Option<Lease>,
    /// How often the next attempt was claimed.
    pub claims: u32,
    /// When the next attempt is due.
    pub due: Timestamp,
    /// When `sweep` must look at it next; always there while it is pending.
    pub wake_at: Option<Timestamp>,
    /// How often `sweep` sent the next attempt's message again.
    pub resent: u32,
    /// Every recorded attempt, oldest first.
    pub attempts: Vec<Attempt>,
}

/// Names a message, and the lease of whoever handles it; no two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub Uuid);

/// The right to make the next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// Whose it is.
    pub id: Token,
    /// From then on somebody else may take it.
    pub until: Timestamp,
}

/// Where a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// An attempt is to come.
    Pending,
    /// The endpoint acknowledged it.
    Delivered,
    /// No attempt will be made.
    Failed,
    /// The endpoint was off; it can be sent again once the endpoint is on.
    Held,
}

/// Why a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No attempt was acknowledged.
    Unacknowledged,
    /// Its endpoint was removed.
    EndpointRemoved,
}

impl Status {
    /// Every status.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Delivered, Self::Failed, Self::Held];

    /// The name in the table and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Held => "held",
        }
    }
}

impl FromStr for Status {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
    }
}

impl Failure {
    const ALL: [Self; 2] = [Self::Unacknowledged, Self::EndpointRemoved];

    /// The name in the table and on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unacknowledged => "unacknowledged",
            Self::EndpointRemoved => "endpoint_removed",
        }
    }
}

impl FromStr for Failure {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        one_of(&Self::ALL, Self::as_str, text)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Token {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        text.parse().map(Self)
    }
}

impl Token {
    /// A new one.
    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }
}

impl Delivery {
    /// Whether the attempt under way is its very first, neither a retry nor of a resend.
    pub fn is_first_attempt(&self) -> bool {
        !self.is_test && self.progress.round == 1 && self.progress.recorded == 0 && self.progress.claims <= 1
    }
}

impl Progress {
    /// A new delivery's: its first attempt is due at once.
    ///
    /// The token of the first message is the delivery's own id, so that a fan-out that is repeated sends
    /// the same message.
    pub fn new(id: DeliveryId, status: Status, now: Timestamp, wake_at: Timestamp) -> Self {
        Self {
            status,
            failure: None,
            round: 1,
            recorded: 0,
            token: Token(id.uuid()),
            lease: None,
            claims: 0,
            due: now,
            wake_at: (status == Status::Pending).then_some(wake_at),
            resent: 0,
            attempts: Vec::new(),
        }
    }

    /// Whether somebody is making an attempt.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|lease| lease.until >= now)
    }
}
