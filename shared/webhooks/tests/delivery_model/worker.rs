//! A worker that has received a message, and what it does next.

use common::resources::WEBHOOK_TIMEOUT;
use common::timestamp::Timestamp;
use webhooks::delivery::{
    AfterFailure, Attempt, Dispatch, Effect, Progress, StepRefusal, Token, after_failure, refusal,
};
use webhooks::{Schedule, Wait};

use crate::run::Run;
use crate::time::{Millis, SECOND};
use crate::world::{EndpointSwitch, Kind, QueuedMessage};

/// The function's time-out.
const TIMEOUT: Millis = WEBHOOK_TIMEOUT.as_secs().cast_signed() * SECOND;
/// A postponed message comes back after this many seconds.
const AWAY_SECONDS: u32 = 10;
/// How much later than its process a write can end that the process has sent.
const LATE: Millis = 5 * SECOND;

/// A worker that has received a message.
#[expect(clippy::struct_excessive_bools, reason = "each says something else of the worker")]
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
    /// Whether the endpoint seems to be prompt.
    pub(crate) is_prompt: bool,
    /// If a run of the drain makes the attempt, the run's token.
    pub(crate) run: Option<Token>,
    /// Whether that run still has the drain.
    pub(crate) has_drain: bool,
    /// The epoch of the endpoint when the POST began.
    pub(crate) epoch: Option<u64>,
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
    /// A message that carries its delivery has come again: the drain is called for the time when it must make the
    /// attempt, if no message does.
    CallStored,
    /// The delivery is stored, unless it is already.
    Store,
    /// A delivery that was stored already gets a wake-up.
    Watch,
    /// A delivery is stored as claimed, unless it is stored already.
    Create,
    /// A delivery was stored already: the drain is called before the claim.
    CallClaimed,
    Claim,
    /// A delivery is stored as it waits for the drain, unless it is stored already.
    WaitNew,
    Wait,
    /// The drain is called at once.
    CallNow,
    /// The message is sent that calls it.
    Send(Token),
    /// The POST is sent, and its answer is still to come.
    Post,
    Succeed,
    /// The message for the next attempt is sent.
    SendRetry(Failed),
    /// The drain is called for the time when it must make the next attempt.
    CallRetry(Failed),
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
    Failed,
}

/// What follows a step.
pub(crate) enum Then {
    Go(Phase),
    /// The account is read.
    Read,
    /// The message is acknowledged.
    Done,
    /// A copy is sent with this delay in seconds, and the message is acknowledged.
    Postpone(u32),
}

impl Phase {
    /// The token of a drain's message that is still to be sent.
    pub(crate) const fn sends(&self) -> Option<Token> {
        if let Self::Send(token) = self { Some(*token) } else { None }
    }
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
            is_prompt: false,
            run: None,
            has_drain: false,
            epoch: None,
            lease,
            phase: Phase::CallStored,
            is_applied: false,
            is_late: false,
            is_overtaken: false,
        }
    }

    /// Returns the worker after it has read its account.
    pub(crate) fn after_reading(self, endpoint: Option<EndpointSwitch>) -> Self {
        let phase = match endpoint {
            None => Phase::End,
            Some(EndpointSwitch { is_on: false, .. }) if self.is_new() => Phase::HoldNew,
            Some(EndpointSwitch { is_on: false, .. }) => Phase::Hold,
            Some(EndpointSwitch { is_on: true, .. }) => match (self.is_prompt, self.is_new()) {
                (true, true) => Phase::Create,
                (true, false) => Phase::Claim,
                (false, true) => Phase::WaitNew,
                (false, false) => Phase::Wait,
            },
        };
        Self { seen: endpoint, phase, is_applied: false, ..self }
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
        self.is_new() || self.must_store() && matches!(self.phase, Phase::CallStored | Phase::Store | Phase::Watch)
    }

    /// When its time-out ends it. The late record of a failure has a little more time. Any other late write has as much as
    /// it likes.
    pub(crate) const fn until(&self) -> Option<Millis> {
        match self.phase {
            _ if !self.is_late => Some(self.received_at + TIMEOUT),
            Phase::Fail(_) => Some(self.received_at + TIMEOUT + LATE),
            _ => None,
        }
    }

    /// Whether both handle the same delivery.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        self.dispatch.delivery_id == other.dispatch.delivery_id
    }

    /// What its clock showed when it received the message.
    pub(crate) fn clock(&self) -> Timestamp {
        self.clock_at(self.received_at)
    }

    pub(crate) fn clock_at(&self, at: Millis) -> Timestamp {
        Timestamp::from_millis(at + self.skew)
    }

    pub(crate) fn after_failure(&self, failed: Failed) -> AfterFailure {
        let now = self.clock_at(failed.at);
        let attempt = Attempt::lost(now);
        let epoch = self.seen.map_or(0, |endpoint| endpoint.epoch);
        after_failure(&self.dispatch, self.lease, attempt, epoch, false, Schedule::default(), now)
    }

    /// Returns the next step after a failure.
    pub(crate) fn failed(&self, failed: Failed) -> Phase {
        match self.after_failure(failed) {
            AfterFailure::Again(Wait::Delayed { .. }, _) => Phase::SendRetry(failed),
            AfterFailure::Again(Wait::Parked { .. }, _) => self.recording(failed),
            AfterFailure::GiveUp(_) => Phase::GiveUp(failed),
        }
    }

    /// Returns the step after the message for the next attempt was sent, or instead of it. A run need not call the
    /// drain while it has it: then it does not let it sleep for long.
    pub(crate) const fn recording(&self, failed: Failed) -> Phase {
        if self.has_drain { Phase::Fail(failed) } else { Phase::CallRetry(failed) }
    }

    /// Returns what follows once a carried delivery is stored. If the message has not come before, it was stored because
    /// the attempt cannot wait.
    pub(crate) const fn after_storing(&self) -> Then {
        if self.must_store() { Then::Read } else { Then::Done }
    }

    /// Returns what follows a step whose outcome the worker does not learn. A sweep sends the message that calls the drain.
    pub(crate) const fn unanswered(&self) -> Then {
        match self.phase {
            Phase::Send(_) => Then::Done,
            _ => Then::Postpone(AWAY_SECONDS),
        }
    }

    /// Returns when the drain must make the attempt after a failure.
    pub(crate) fn next_wake_up(&self, failed: Failed) -> Option<Timestamp> {
        let AfterFailure::Again(_, step) = self.after_failure(failed) else { return None };
        step.then.iter().find_map(|effect| if let Effect::WakeAt(at) = effect { *at } else { None })
    }

    /// Whether it makes an attempt of this run.
    pub(crate) fn is_of(&self, run: &Run) -> bool {
        self.run == Some(run.seen.token)
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
