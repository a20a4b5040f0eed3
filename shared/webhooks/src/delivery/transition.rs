//! A conditional write as data: the store sends it to DynamoDB, and the model checker applies it to a value.

use super::{Attempt, Failure, Lease, Progress, Status, Token};
use common::timestamp::Timestamp;

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
        }
    }
}
