//! One attempt, in the steps of `functions/webhook`.

use platform::resources::WEBHOOK_TIMEOUT;
use types::timestamp::Timestamp;
use uuid::Uuid;
use webhooks::delivery::{
    AfterFailure, Attempt, Dispatch, MAX_CLAIMS, Progress, Status, StepRefusal, Token, Transition, after_failure,
    claim, end, hold, refusal, succeed,
};
use webhooks::{ATTEMPTS, Schedule, Wait};

use crate::invariants::Broken;
use crate::time::{DELAYS, Millis, SECOND};
use crate::world::{EndpointSwitch, World};

/// The function's time-out.
const TIMEOUT: Millis = WEBHOOK_TIMEOUT.as_secs().cast_signed() * SECOND;

/// A worker that has received a message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Worker {
    pub(crate) dispatch: Dispatch,
    pub(crate) received_at: Millis,
    pub(crate) skew: Millis,
    /// The endpoint as it was when the message was received.
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
    Claim,
    /// The POST is sent, and its answer is still to come.
    Post,
    Succeed,
    /// The message for the next attempt is sent.
    Call(Failed),
    Fail(Failed),
    /// The delivery fails and the endpoint is switched off.
    GiveUp(Failed),
    Hold,
    End,
}

/// A failure that is not recorded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Failed {
    at: Millis,
    /// The attempt's result is unknown.
    is_lost: bool,
}

/// What follows a step.
pub(crate) enum Then {
    Go(Phase),
    /// The message is acknowledged.
    Done,
    /// A copy is sent with this delay in seconds, and the message is acknowledged.
    Postpone(u32),
}

impl Worker {
    pub(crate) fn new(
        dispatch: Dispatch,
        skew: Millis,
        lease: Token,
        now: Millis,
        seen: Option<EndpointSwitch>,
    ) -> Self {
        let phase = match seen {
            None => Phase::End,
            Some(EndpointSwitch { is_on: false, .. }) => Phase::Hold,
            Some(EndpointSwitch { is_on: true, .. }) => Phase::Claim,
        };
        Self {
            dispatch,
            received_at: now,
            skew,
            seen,
            lease,
            phase,
            is_applied: false,
            is_late: false,
            is_overtaken: false,
        }
    }

    /// When its time-out ends it.
    pub(crate) fn until(&self) -> Millis {
        self.received_at + TIMEOUT
    }

    /// Whether both handle the same delivery.
    fn is_beside(&self, other: &Self) -> bool {
        self.dispatch.delivery_id == other.dispatch.delivery_id
    }

    /// What its clock showed when it read the endpoint.
    fn clock(&self) -> Timestamp {
        self.clock_at(self.received_at)
    }

    fn clock_at(&self, at: Millis) -> Timestamp {
        Timestamp::from_millis(at + self.skew)
    }

    fn after_failure(&self, failed: Failed) -> AfterFailure {
        let now = self.clock_at(failed.at);
        let attempt = Attempt::lost(now);
        after_failure(&self.dispatch, self.lease, attempt, false, Schedule::default(), now)
    }

    fn failed(&self, failed: Failed) -> Phase {
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

    fn refused(&self, found: &Progress, token: Token, now: Millis) -> Then {
        match refusal(Some(found), &self.dispatch, token, self.clock()) {
            StepRefusal::Leased(until) => {
                let millis = until.millis().saturating_sub(self.clock_at(now).millis()).max(0);
                Then::Postpone(u32::try_from(millis / SECOND + 1).unwrap_or(u32::MAX))
            }
            StepRefusal::Ours | StepRefusal::Void => Then::Done,
        }
    }
}

impl World {
    /// Makes a worker's step. Returns what follows if the worker gets the answer.
    pub(crate) fn step(&mut self, worker: &Worker) -> Then {
        match worker.phase {
            Phase::Claim => self.claim(worker),
            Phase::Post => Then::Done,
            Phase::Succeed => self.succeed(worker),
            Phase::Call(failed) => {
                if let AfterFailure::Again(Wait::Delayed { seconds }, _) = worker.after_failure(failed) {
                    self.send(worker.dispatch.after(worker.lease), seconds);
                }
                Then::Go(Phase::Fail(failed))
            }
            Phase::Fail(failed) => self.fail(worker, failed),
            Phase::GiveUp(failed) => self.give_up(worker, failed),
            Phase::Hold => self.hold(worker),
            Phase::End => self.end(worker),
        }
    }

    fn claim(&mut self, worker: &Worker) -> Then {
        let (applied, found) = self.write_for(worker, &claim(&worker.dispatch, worker.lease, worker.clock()));
        if !applied && refusal(Some(&found), &worker.dispatch, worker.lease, worker.clock()) != StepRefusal::Ours {
            return worker.refused(&found, worker.lease, self.now);
        }
        let claims = if applied { found.claims + 1 } else { found.claims };
        if claims > MAX_CLAIMS {
            return Then::Go(worker.failed(Failed { at: self.now, is_lost: true }));
        }
        Then::Go(Phase::Post)
    }

    /// Checks the invariants that must hold when a worker begins its POST.
    pub(crate) fn check_post(&mut self, worker: &Worker) {
        let index = Self::index_of(&worker.dispatch);
        let is_sending = |other: &Worker| other.phase == Phase::Post && !other.is_overtaken && other.is_beside(worker);
        let is_alone = !self.workers.iter().any(is_sending);
        self.check(is_alone, Broken::TwoAtOnce);
        self.check(worker.seen.is_some_and(|endpoint| endpoint.is_on), Broken::SentToOff);
        let delivery = &mut self.deliveries[index];
        delivery.posts += 1;
        let (posts, failed_at, recorded) = (delivery.posts, delivery.failed_at, delivery.progress.failed_attempts);
        self.check(posts <= MAX_CLAIMS, Broken::SentTooOften);
        if let Some(failed_at) = failed_at {
            self.check(self.now >= failed_at + DELAYS[recorded as usize - 1], Broken::Early);
        }
    }

    fn succeed(&mut self, worker: &Worker) -> Then {
        let attempt = Attempt { status: Some(200), error: None, ..Attempt::lost(worker.clock()) };
        let (applied, found) = self.write_for(worker, &succeed(&worker.dispatch, attempt));
        let is_open = found.status == Status::Pending && found.round == worker.dispatch.round;
        self.check(applied || !is_open, Broken::AcknowledgementIgnored);
        self.check_result(worker, applied, &found);
        if applied {
            self.workers.iter_mut().for_each(|other| other.is_overtaken |= other.is_beside(worker));
        }
        Then::Done
    }

    fn fail(&mut self, worker: &Worker, failed: Failed) -> Then {
        let (AfterFailure::Again(_, step) | AfterFailure::GiveUp(step)) = worker.after_failure(failed);
        let (applied, found) = self.write_for(worker, &step);
        self.check_result(worker, applied, &found);
        if applied {
            self.deliveries[Self::index_of(&worker.dispatch)].failed_at = Some(failed.at);
        }
        if let AfterFailure::Again(Wait::Delayed { .. }, _) = worker.after_failure(failed) {
            let next = self.progress_of(&worker.dispatch).token;
            let is_called = !applied || worker.is_late || self.is_called(next);
            self.check(is_called, Broken::Uncalled);
        }
        Then::Done
    }

    /// Fails the delivery and switches the endpoint off in one transaction. If the endpoint has moved on, only the
    /// delivery fails.
    fn give_up(&mut self, worker: &Worker, failed: Failed) -> Then {
        let (AfterFailure::Again(_, step) | AfterFailure::GiveUp(step)) = worker.after_failure(failed);
        let found = self.progress_of(&worker.dispatch).clone();
        if step.apply(&found).is_none() {
            self.check_result(worker, false, &found);
            return Then::Done;
        }
        let epoch = worker.seen.map(|endpoint| endpoint.epoch);
        let is_open = self.endpoint.is_some_and(|endpoint| endpoint.is_on && Some(endpoint.epoch) == epoch);
        let Some(endpoint) = self.endpoint.filter(|endpoint| is_open && !self.notices.contains(&endpoint.epoch)) else {
            return Then::Go(Phase::Fail(failed));
        };
        self.write_for(worker, &step);
        let has_failed = self.progress_of(&worker.dispatch).failed_attempts == ATTEMPTS;
        self.check(has_failed && endpoint.is_on && Some(endpoint.epoch) == epoch, Broken::SwitchedOff);
        self.endpoint = Some(EndpointSwitch { is_on: false, ..endpoint });
        self.notices.push(endpoint.epoch);
        Then::Done
    }

    /// Holds the delivery in one transaction with a check that the endpoint has not changed.
    fn hold(&mut self, worker: &Worker) -> Then {
        let step = hold(&worker.dispatch, worker.clock());
        let found = self.progress_of(&worker.dispatch).clone();
        if step.apply(&found).is_none() {
            return worker.refused(&found, Token(Uuid::nil()), self.now);
        }
        if self.endpoint != worker.seen {
            return Then::Postpone(1);
        }
        self.write_for(worker, &step);
        self.check(self.endpoint.is_some_and(|endpoint| !endpoint.is_on), Broken::HeldWhileOn);
        Then::Done
    }

    fn end(&mut self, worker: &Worker) -> Then {
        let (applied, found) = self.write_for(worker, &end(&worker.dispatch, worker.clock()));
        if !applied {
            return worker.refused(&found, Token(Uuid::nil()), self.now);
        }
        self.check(self.endpoint.is_none(), Broken::EndedWhileThere);
        Then::Done
    }

    fn write_for(&mut self, worker: &Worker, step: &Transition) -> (bool, Progress) {
        let (applied, found) = self.write(Self::index_of(&worker.dispatch), step);
        self.check(!applied || found.round == worker.dispatch.round, Broken::OlderRound);
        (applied, found)
    }

    /// A worker that holds its lease finds the delivery as it left it, or acknowledged by an earlier attempt.
    fn check_result(&mut self, worker: &Worker, applied: bool, found: &Progress) {
        let is_acknowledged = found.status == Status::Delivered || worker.is_overtaken;
        self.check(applied || is_acknowledged || worker.is_late || worker.is_applied, Broken::ResultLost);
    }
}
