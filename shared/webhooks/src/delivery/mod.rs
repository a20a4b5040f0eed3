//! A delivery: one event on its way to one endpoint.
//!
//! The rules of its life are pure functions. The store turns them into conditional writes, and a model checker
//! (`shared/webhooks/tests/transitions.rs`) plays them against each other.

mod message;
mod steps;

use serde::{Deserialize, Serialize};

use common::closed_enum;
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, EventId, UserId};
use common::resources::WEBHOOK_TIMEOUT;
use common::timestamp::{DAY_MILLIS, Timestamp};

pub use super::schedule::overdue_at;
pub use common::ids::Token;
pub use message::{Carried, Dispatch, Lane};
pub use steps::{
    AfterFailure, MAX_CLAIMS, StepRefusal, after_failure, claim, claim_due, claim_watched, end,
    end_for_removed_endpoint, expire, hold, refusal, release, resend, resend_by_owner, succeed, wait, watch,
};

/// The wake-up of a round that owners and operators have begun: it has come, whatever the clock of their machine shows.
/// Each round has its own, so that a drain tells it from that of the round before.
pub fn due_now(round: u32) -> Timestamp {
    Timestamp::from_millis(i64::from(round))
}

/// Returns whether a wake-up is one of those.
pub fn is_due_now(wake_at: Timestamp) -> bool {
    wake_at <= due_now(MAX_ROUNDS)
}

/// How long a delivery is kept: 35 days, as promised (specification 6.6.5), and two more. A pending one is kept until it
/// has ended.
pub(crate) const KEPT_FOR_MILLIS: i64 = 37 * DAY_MILLIS;

/// The most attempts that a delivery's row keeps (specification 2.13.1). Of older ones it keeps only the number.
pub const MAX_KEPT_ATTEMPTS: usize = 20;
/// The most rounds of attempts that a delivery can have (specification 6.10.4).
pub const MAX_ROUNDS: u32 = 100;
/// The most rounds of attempts that owners can begin of a delivery on a UTC day (specification 6.10.4).
pub const MAX_OWNER_ROUNDS_A_DAY: u32 = 10;

/// How long a claim keeps others from claiming the same attempt: the function's time-out, and a minute by which clocks may
/// differ.
pub const LEASE_SECONDS: i64 = WEBHOOK_TIMEOUT.as_secs().cast_signed() + 60;

/// One event on its way to one endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Derived from event and endpoint, so it is the same on every attempt.
    pub id: DeliveryId,
    pub endpoint_id: EndpointId,
    /// The account that the endpoint belongs to.
    pub account_id: UserId,
    pub event: EventKind,
    /// The event's own id, which its deliveries to other endpoints share. `None` if a release made it that did not know it.
    pub event_id: Option<EventId>,
    /// Whether it is a test by the owner. A test has one attempt, and its failure switches nothing off.
    pub is_test: bool,
    /// When the event was fanned out.
    pub created_at: Timestamp,
    /// The body, sent byte for byte on every attempt.
    pub body: String,
    pub progress: Progress,
}

/// How far a delivery has come. Nothing else of a delivery ever changes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Progress {
    pub status: Status,
    /// Why it failed, if it has.
    pub failure: Option<Failure>,
    /// The number of the current round of attempts, from 1. Each resend begins a new round.
    pub round: u32,
    /// How many failed attempts of this round are recorded.
    pub failed_attempts: u32,
    /// What a message must carry to call for the next attempt: the delivery's id at first, then the id of the lease under
    /// which the failure before was recorded. A resend draws another one.
    pub token: Token,
    /// The latest claim of the next attempt, which may have run out.
    pub lease: Option<Lease>,
    /// How often the next attempt has been claimed.
    pub claims: u32,
    /// When the next attempt is due.
    pub due: Timestamp,
    /// From then on the drain of its account makes the next attempt, unless a message calls for it before. Only a
    /// pending delivery has a wake-up. It may lack one while the message that carries it is in the queue.
    pub wake_at: Option<Timestamp>,
    /// The epoch of its endpoint when the first failure of this round was recorded.
    pub epoch: Option<u64>,
    /// The latest recorded attempts of all rounds, in the order in which they were recorded. There are at most twenty.
    pub attempts: Vec<Attempt>,
    /// How many attempts were recorded before these.
    pub dropped_attempts: usize,
    /// The rounds that owners began on the latest day on which they began any.
    pub owner_rounds: Option<OwnerRounds>,
}

/// How many rounds of a delivery owners began on a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OwnerRounds {
    /// The UTC day, counted from the Unix epoch.
    pub day: i64,
    pub count: u32,
}

/// The right to make the next attempt. Only one worker has it at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lease {
    /// Tells the holder from all others.
    pub id: Token,
    /// Until then, inclusive, nobody else may claim the attempt.
    pub until: Timestamp,
}

closed_enum! {
    /// Where a delivery stands (specification 3.5.1).
    pub enum Status {
        /// Another attempt will be made.
        Pending = "pending",
        /// The endpoint acknowledged it.
        Delivered = "delivered",
        /// No further attempt will be made, unless the delivery is resent.
        Failed = "failed",
        /// The endpoint was off. Once it is on again, the delivery can be resent by hand.
        Held = "held",
    }
}

closed_enum! {
    /// Why a delivery failed.
    pub enum Failure {
        /// No attempt of the round was acknowledged.
        Unacknowledged = "unacknowledged",
        EndpointRemoved = "endpoint_removed",
        /// It waited for its next attempt until it was no longer kept.
        Expired = "expired",
    }
}

/// A recorded attempt, as the endpoint's owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// When the attempt was sent.
    pub at: Timestamp,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// The milliseconds from the beginning of the attempt to the answer's headers, or to the failure.
    pub latency_ms: u32,
    /// What went wrong, if anything.
    pub error: Option<String>,
    /// The first part of the answer's body, at most 1 KB, if the attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<String>,
}

impl Delivery {
    /// Returns until when it is kept. A delivery that is still pending then ends as expired.
    pub fn kept_until(&self) -> Timestamp {
        self.created_at.plus_millis(KEPT_FOR_MILLIS)
    }

    /// Returns whether the attempt under way is the very first for its event. Retries, repeated claims, resends and
    /// tests do not count.
    pub fn is_first_attempt(&self) -> bool {
        !self.is_test && self.progress.round == 1 && self.progress.failed_attempts == 0 && self.progress.claims <= 1
    }
}

impl Progress {
    /// Returns the progress of a new delivery, whose first attempt is due at once.
    ///
    /// The first token is the delivery's own id, so that a repeated fan-out sends the same message again.
    pub fn new(id: DeliveryId, status: Status, now: Timestamp, wake_at: Timestamp) -> Self {
        Self {
            status,
            failure: None,
            round: 1,
            failed_attempts: 0,
            token: id.uuid().into(),
            lease: None,
            claims: 0,
            due: now,
            wake_at: (status == Status::Pending).then_some(wake_at),
            epoch: None,
            attempts: Vec::new(),
            dropped_attempts: 0,
            owner_rounds: None,
        }
    }

    /// Returns how many attempts were ever recorded, over all rounds.
    pub fn recorded_attempts(&self) -> usize {
        self.dropped_attempts + self.attempts.len()
    }

    /// Returns whether it is pending without a wake-up. Then only the message that carries it calls for its attempt.
    pub fn is_unwatched(&self) -> bool {
        self.status == Status::Pending && self.wake_at.is_none()
    }

    /// Returns whether somebody may be making an attempt at this time.
    pub fn is_leased(&self, now: Timestamp) -> bool {
        self.lease.is_some_and(|lease| lease.until >= now)
    }
}

impl Attempt {
    /// Returns an attempt that was claimed and never recorded, for example because of a crash (specification 6.7.5).
    /// Its outcome is unknown.
    pub fn lost(at: Timestamp) -> Self {
        Self { at, status: None, latency_ms: 0, error: Some("no result".to_owned()), response: None }
    }

    /// Says what went wrong, unless it was acknowledged.
    pub fn what_went_wrong(&self) -> Option<String> {
        let answered = || self.status.map(|status| format!("answered {status}"));
        if self.is_acknowledged() { None } else { self.error.clone().or_else(answered) }
    }

    /// Returns whether the endpoint acknowledged it. Any 2xx status is an acknowledgement (specification 6.7.1).
    pub fn is_acknowledged(&self) -> bool {
        self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// A change of a delivery's progress. It is made as a whole if all its conditions hold, and otherwise not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    pub when: Vec<Condition>,
    pub then: Vec<Effect>,
}

/// One condition of a transition. Where nothing else is said, the field of that name must have this value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Status(Status),
    Round(u32),
    FailedAttempts(u32),
    Token(Token),
    /// There is a lease with this id, even if its time is up.
    LeaseOf(Token),
    /// There is no lease, or its time is up at this moment.
    NoLease(Timestamp),
    WakeAt(Timestamp),
    NoWakeUp,
}

/// One change that a transition makes. Where nothing else is said, it sets the field of that name; `None` removes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    Status(Status),
    Failure(Option<Failure>),
    Round(u32),
    FailedAttempts(u32),
    Token(Token),
    Lease(Option<Lease>),
    Claims(u32),
    /// Adds one to the number of claims.
    Claimed,
    Due(Timestamp),
    WakeAt(Option<Timestamp>),
    Epoch(u64),
    /// Adds an attempt to the record.
    Attempt(Attempt),
    Attempts(Vec<Attempt>),
    DroppedAttempts(usize),
    OwnerRounds(OwnerRounds),
}

impl Transition {
    /// Returns the changed progress, or `None` if a condition does not hold.
    pub fn apply(&self, progress: &Progress) -> Option<Progress> {
        if !self.when.iter().all(|condition| condition.holds(progress)) {
            return None;
        }
        let mut changed = progress.clone();
        self.then.iter().for_each(|effect| effect.make(&mut changed));
        Some(changed)
    }
}

impl Condition {
    pub(super) fn holds(self, progress: &Progress) -> bool {
        match self {
            Self::Status(status) => progress.status == status,
            Self::Round(round) => progress.round == round,
            Self::FailedAttempts(failed) => progress.failed_attempts == failed,
            Self::Token(token) => progress.token == token,
            Self::LeaseOf(id) => progress.lease.is_some_and(|lease| lease.id == id),
            Self::NoLease(now) => !progress.is_leased(now),
            Self::WakeAt(at) => progress.wake_at == Some(at),
            Self::NoWakeUp => progress.wake_at.is_none(),
        }
    }
}

impl Effect {
    fn make(&self, progress: &mut Progress) {
        match self {
            Self::Status(status) => progress.status = *status,
            Self::Failure(failure) => progress.failure = *failure,
            Self::Round(round) => progress.round = *round,
            Self::FailedAttempts(failed) => progress.failed_attempts = *failed,
            Self::Token(token) => progress.token = *token,
            Self::Lease(lease) => progress.lease = *lease,
            Self::Claims(claims) => progress.claims = *claims,
            Self::Claimed => progress.claims += 1,
            Self::Due(due) => progress.due = *due,
            Self::WakeAt(at) => progress.wake_at = *at,
            Self::Epoch(epoch) => progress.epoch = Some(*epoch),
            Self::Attempt(attempt) => progress.attempts.push(attempt.clone()),
            Self::Attempts(attempts) => progress.attempts.clone_from(attempts),
            Self::DroppedAttempts(dropped) => progress.dropped_attempts = *dropped,
            Self::OwnerRounds(rounds) => progress.owner_rounds = Some(*rounds),
        }
    }
}
