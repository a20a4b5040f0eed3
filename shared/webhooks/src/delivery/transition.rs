//! A conditional write as data: the store sends it to DynamoDB, the model applies it to a value.

use super::{Attempt, Failure, Lease, Progress, Status, Token};
use types::timestamp::Timestamp;

/// A change of a delivery's progress that is made if all its conditions hold, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// All of them must hold.
    pub when: Vec<Condition>,
    /// Each of them is made.
    pub then: Vec<Change>,
}

/// What must be so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The status.
    Status(Status),
    /// The round.
    Round(u32),
    /// The number of recorded failures.
    Recorded(u32),
    /// What the next message must carry.
    Token(Token),
    /// Who makes an attempt, whether or not the time is up.
    LeaseOf(Token),
    /// Nobody makes an attempt, at this time.
    NoLease(Timestamp),
    /// When sweep looks next.
    WakeAt(Timestamp),
}

/// What becomes different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The status.
    Status(Status),
    /// Why it failed, or that it did not.
    Failure(Option<Failure>),
    /// The round.
    Round(u32),
    /// The number of recorded failures.
    Recorded(u32),
    /// What the next message must carry.
    Token(Token),
    /// Who makes an attempt; nobody.
    Lease(Option<Lease>),
    /// How often the attempt was claimed.
    Claims(u32),
    /// It is claimed once more.
    Claimed,
    /// When the next attempt is due.
    Due(Timestamp),
    /// When sweep looks next; never.
    WakeAt(Option<Timestamp>),
    /// How often sweep sent the message again.
    Resent(u32),
    /// One more attempt is on record.
    Attempt(Attempt),
}

impl Transition {
    /// What the progress becomes; `None` if a condition does not hold.
    pub fn apply(&self, progress: &Progress) -> Option<Progress> {
        if !self.when.iter().all(|condition| condition.holds(progress)) {
            return None;
        }
        let mut changed = progress.clone();
        self.then.iter().for_each(|change| change.make(&mut changed));
        Some(changed)
    }
}

impl Condition {
    pub(super) fn holds(self, progress: &Progress) -> bool {
        match self {
            Self::Status(status) => progress.status == status,
            Self::Round(round) => progress.round == round,
            Self::Recorded(recorded) => progress.recorded == recorded,
            Self::Token(token) => progress.token == token,
            Self::LeaseOf(id) => progress.lease.is_some_and(|lease| lease.id == id),
            Self::NoLease(now) => !progress.is_leased(now),
            Self::WakeAt(at) => progress.wake_at == Some(at),
        }
    }
}

impl Change {
    fn make(&self, progress: &mut Progress) {
        match self {
            Self::Status(status) => progress.status = *status,
            Self::Failure(failure) => progress.failure = *failure,
            Self::Round(round) => progress.round = *round,
            Self::Recorded(recorded) => progress.recorded = *recorded,
            Self::Token(token) => progress.token = *token,
            Self::Lease(lease) => progress.lease = *lease,
            Self::Claims(claims) => progress.claims = *claims,
            Self::Claimed => progress.claims += 1,
            Self::Due(due) => progress.due = *due,
            Self::WakeAt(at) => progress.wake_at = *at,
            Self::Resent(resent) => progress.resent = *resent,
            Self::Attempt(attempt) => progress.attempts.push(attempt.clone()),
        }
    }
}
