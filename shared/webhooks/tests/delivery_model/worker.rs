//! A worker that has received a message, and what it does next.

use platform::resources::WEBHOOK_TIMEOUT;
use types::timestamp::Timestamp;
use webhooks::delivery::{AfterFailure, Attempt, Dispatch, Progress, StepRefusal, Token, after_failure, refusal};
use webhooks::{Schedule, Wait};

use crate::places::{Taken, Turn};
use crate::time::{Millis, SECOND};
use crate::world::{EndpointSwitch, Kind, QueuedMessage};

/// The function's time-out.
const TIMEOUT: Millis = WEBHOOK_TIMEOUT.as_secs().cast_signed() * SECOND;
/// A postponed message comes back after this many seconds.
const AWAY_SECONDS: u32 = 10;

/// A worker that has received a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Worker {
    pub(crate) dispatch: Dispatch,
    pub(crate) kind: Kind,
    /// How often its message counts as received, this time included.
    pub(crate) receives: u32,
    pub(crate) received_at: Millis,
    pub(crate) skew: Millis,
    /// The endpoint as it was when the worker read it.
    pub(crate) seen: Option<EndpointSwitch>,
    /// If its attempt needs a place, what it knows of the places.
    pub(crate) turn: Option<Turn>,
    pub(crate) lease: Token,
    pub(crate) phase: Phase,
    /// The worker's write took effect, but the answer was lost.
    pub(crate) is_applied: bool,
    /// The worker has died, and its write is still on the way.
    pub(crate) is_late: bool,
    /// An earlier attempt was acknowledged late while this one was being made, so this one no longer counts.
    pub(crate) is_overtaken: bool,
}

/// A worker's next step.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Phase {
    /// A message that carries its delivery has come again: the delivery is stored, unless it is already.
    Store,
    /// A delivery that was stored already gets a wake-up.
    Watch,
    /// A delivery is stored as claimed, unless it is stored already.
    Create,
    Claim,
    /// A place is taken for the attempt.
    TakePlace,
    /// The places are kept for retries, because this one found none.
    Reserve,
    /// The message that brings an attempt back is sent, before the attempt leaves.
    CallAgain,
    /// A delivery is stored as it waits for a place, unless it is stored already.
    LeaveNew,
    Leave,
    /// What became of the message is done; only the place is still to be left.
    LeavePlace,
    /// The POST is sent, and its answer is still to come.
    Post,
    Succeed,
    /// The message for the next attempt is sent.
    Call(Failed),
    Fail(Failed),
    /// The delivery fails and the endpoint is switched off.
    GiveUp(Failed),
    /// A delivery is stored as held, unless it is stored already.
    HoldNew,
    Hold,
    End,
}

/// A failure that is not recorded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Failed {
    pub(crate) at: Millis,
    /// The attempt's result is unknown.
    pub(crate) is_lost: bool,
}

/// How an endpoint responds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Acknowledged,
    /// With a failure, but promptly.
    Refused,
    /// Not at all, until the attempt's time is up.
    Hung,
}

/// What follows a step.
pub(crate) enum Then {
    Go(Phase),
    /// The account is read.
    Read,
    /// The worker has this place.
    Take(Taken),
    /// The message stays in the queue.
    Keep,
    /// The message is acknowledged.
    Done,
    /// A copy is sent with this delay in seconds, and the message is acknowledged.
    Postpone(u32),
}

impl Worker {
    /// Returns a worker that has just received a message.
    pub(crate) const fn new(message: QueuedMessage, skew: Millis, lease: Token, now: Millis) -> Self {
        let QueuedMessage { dispatch, kind, receives, .. } = message;
        Self {
            dispatch,
            kind,
            receives,
            received_at: now,
            skew,
            seen: None,
            turn: None,
            lease,
            phase: Phase::Store,
            is_applied: false,
            is_late: false,
            is_overtaken: false,
        }
    }

    /// Returns the worker after it has read its account.
    pub(crate) fn after_reading(self, endpoint: Option<EndpointSwitch>, turn: Option<Turn>) -> Self {
        let phase = match endpoint {
            None => Phase::End,
            Some(EndpointSwitch { is_on: false, .. }) if self.is_new() => Phase::HoldNew,
            Some(EndpointSwitch { is_on: false, .. }) => Phase::Hold,
            Some(EndpointSwitch { is_on: true, .. }) if turn.is_some() => Phase::TakePlace,
            Some(EndpointSwitch { is_on: true, .. }) => self.first_phase(),
        };
        Self { seen: endpoint, turn, phase, is_applied: false, ..self }
    }

    /// Returns the first step of its attempt.
    pub(crate) const fn first_phase(&self) -> Phase {
        if self.is_new() { Phase::Create } else { Phase::Claim }
    }

    /// Whether its message carries the delivery and has not come before.
    const fn is_new(&self) -> bool {
        matches!(self.kind, Kind::First) && self.receives == 1
    }

    /// Whether its message carries the delivery and has come before. Then it stores the delivery first of all.
    pub(crate) const fn must_store(&self) -> bool {
        matches!(self.kind, Kind::First) && self.receives > 1
    }

    /// Whether it takes its message for one that carries the delivery. Once it has stored the delivery, it does not,
    /// and sends copies that carry nothing.
    pub(crate) const fn carries(&self) -> bool {
        self.is_new() || self.must_store() && matches!(self.phase, Phase::Store | Phase::Watch)
    }

    /// When its time-out ends it.
    pub(crate) fn until(&self) -> Millis {
        self.received_at + TIMEOUT
    }

    /// Whether both handle the same delivery.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.dispatch.delivery_id == other.dispatch.delivery_id
    }

    /// What its clock showed when it received the message.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock_at(self.received_at)
    }

    fn clock_at(&self, at: Millis) -> Timestamp {
        Timestamp::from_millis(at + self.skew)
    }

    pub(crate) fn after_failure(&self, failed: Failed) -> AfterFailure {
        let now = self.clock_at(failed.at);
        let attempt = Attempt::lost(now);
        after_failure(&self.dispatch, self.lease, attempt, false, Schedule::default(), now)
    }

    pub(crate) fn failed(&self, failed: Failed) -> Phase {
        match self.after_failure(failed) {
            AfterFailure::Again(Wait::Delayed { .. }, _) => Phase::Call(failed),
            AfterFailure::Again(Wait::Parked { .. }, _) => Phase::Fail(failed),
            AfterFailure::GiveUp(_) => Phase::GiveUp(failed),
        }
    }

    /// Returns the next step after a response, or after a time-out.
    pub(crate) fn answered(&self, response: Response, now: Millis) -> Phase {
        match response {
            Response::Acknowledged => Phase::Succeed,
            Response::Refused | Response::Hung => self.failed(Failed { at: now, is_lost: false }),
        }
    }

    /// Returns what follows a step whose outcome the worker does not learn.
    pub(crate) fn unanswered(&self) -> Then {
        match self.phase {
            Phase::Reserve => Then::Go(self.leaving()),
            Phase::CallAgain => Then::Keep,
            Phase::LeavePlace => Then::Done,
            _ => Then::Postpone(AWAY_SECONDS),
        }
    }

    pub(crate) fn refused(&self, found: &Progress, token: Token, now: Millis) -> Then {
        match refusal(Some(found), &self.dispatch, token, self.clock()) {
            StepRefusal::Leased(until) => {
                let millis = until.millis().saturating_sub(self.clock_at(now).millis()).max(0);
                Then::Postpone(u32::try_from(millis / SECOND + 1).unwrap_or(u32::MAX))
            }
            StepRefusal::Ours | StepRefusal::Void => Then::Done,
        }
    }
}
