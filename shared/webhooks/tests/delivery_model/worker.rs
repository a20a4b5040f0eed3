//! A worker that has received a message, and what it does next.

use platform::resources::WEBHOOK_TIMEOUT;
use types::timestamp::Timestamp;
use webhooks::delivery::{AfterFailure, Attempt, Dispatch, Progress, StepRefusal, Token, after_failure, refusal};
use webhooks::{Schedule, Wait};

use crate::time::{Millis, SECOND};
use crate::world::{EndpointSwitch, Kind, QueuedMessage};

/// The function's time-out.
const TIMEOUT: Millis = WEBHOOK_TIMEOUT.as_secs().cast_signed() * SECOND;

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
    /// The delivery was stored already, and gets a wake-up.
    Watch,
    /// A delivery is stored as claimed, unless it is stored already.
    Create,
    Claim,
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

/// What follows a step.
pub(crate) enum Then {
    Go(Phase),
    /// The endpoint is read.
    Read,
    /// The message is acknowledged.
    Done,
    /// A copy is sent with this delay in seconds, and the message is acknowledged.
    Postpone(u32),
}

impl Worker {
    /// Returns a worker that has just received a message. It reads the endpoint, unless it has to store the delivery
    /// before that.
    pub(crate) fn new(
        message: QueuedMessage,
        skew: Millis,
        lease: Token,
        now: Millis,
        endpoint: Option<EndpointSwitch>,
    ) -> Self {
        let QueuedMessage { dispatch, kind, receives, .. } = message;
        let worker = Self {
            dispatch,
            kind,
            receives,
            received_at: now,
            skew,
            seen: None,
            lease,
            phase: Phase::Store,
            is_applied: false,
            is_late: false,
            is_overtaken: false,
        };
        if kind == Kind::First && receives > 1 { worker } else { worker.after_reading(endpoint) }
    }

    /// Returns the worker after it has read the endpoint.
    pub(crate) fn after_reading(self, endpoint: Option<EndpointSwitch>) -> Self {
        let is_new = self.kind == Kind::First && self.receives == 1;
        let phase = match (endpoint, is_new) {
            (None, _) => Phase::End,
            (Some(EndpointSwitch { is_on: false, .. }), true) => Phase::HoldNew,
            (Some(EndpointSwitch { is_on: false, .. }), false) => Phase::Hold,
            (Some(EndpointSwitch { is_on: true, .. }), true) => Phase::Create,
            (Some(EndpointSwitch { is_on: true, .. }), false) => Phase::Claim,
        };
        Self { seen: endpoint, phase, is_applied: false, ..self }
    }

    /// Whether it takes its message for one that carries the delivery. Once it has stored the delivery, it does not,
    /// and sends copies that carry nothing.
    pub(crate) const fn carries(&self) -> bool {
        matches!(self.kind, Kind::First) && (self.receives == 1 || matches!(self.phase, Phase::Store | Phase::Watch))
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

    /// Returns the next step after an acknowledgement, or after a failure or a time-out.
    pub(crate) fn answered(&self, is_acknowledged: bool, now: Millis) -> Phase {
        if is_acknowledged { Phase::Succeed } else { self.failed(Failed { at: now, is_lost: false }) }
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
