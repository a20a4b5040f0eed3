//! The steps that record attempts, and those for an endpoint that is off or was removed, as in
//! `functions/webhook/src/settle.rs`.

use uuid::Uuid;
use webhooks::delivery::{AfterFailure, Attempt, Progress, Status, Token, Transition, end, hold, succeed};
use webhooks::{ATTEMPTS, Wait};

use crate::invariants::Broken;
use crate::worker::{Failed, Phase, Then, Worker};
use crate::world::{EndpointSwitch, World};

impl World {
    pub(crate) fn succeed(&mut self, worker: &Worker) -> Then {
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

    pub(crate) fn fail(&mut self, worker: &Worker, failed: Failed) -> Then {
        let (AfterFailure::Again(_, step) | AfterFailure::GiveUp(step)) = worker.after_failure(failed);
        let (applied, found) = self.write_for(worker, &step);
        self.check_result(worker, applied, &found);
        if applied {
            self.note_failure(worker, failed);
        }
        if !applied || matches!(worker.after_failure(failed), AfterFailure::Again(..)) {
            self.doubt(worker);
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
    pub(crate) fn give_up(&mut self, worker: &Worker, failed: Failed) -> Then {
        let (AfterFailure::Again(_, step) | AfterFailure::GiveUp(step)) = worker.after_failure(failed);
        let found = self.progress_of(&worker.dispatch).clone();
        if step.apply(&found).is_none() {
            self.check_result(worker, false, &found);
            self.doubt(worker);
            return Then::Done;
        }
        let epoch = worker.seen.map(|endpoint| endpoint.epoch);
        let is_same = |endpoint: EndpointSwitch| Some(endpoint.epoch) == epoch && found.epoch == epoch;
        let is_open = self.endpoint.is_some_and(|endpoint| endpoint.is_on && is_same(endpoint));
        let Some(endpoint) = self.endpoint.filter(|endpoint| is_open && !self.notices.contains(&endpoint.epoch)) else {
            return Then::Go(Phase::Fail(failed));
        };
        self.write_for(worker, &step);
        self.note_failure(worker, failed);
        let has_failed = self.progress_of(&worker.dispatch).failed_attempts == ATTEMPTS;
        let since = self.deliveries[Self::index_of(&worker.dispatch)].epoch;
        self.check(has_failed && endpoint.is_on && since == Some(endpoint.epoch), Broken::SwitchedOff);
        self.endpoint = Some(EndpointSwitch { is_on: false, ..endpoint });
        self.notices.push(endpoint.epoch);
        Then::Done
    }

    /// Notes when an attempt failed, and the oldest epoch in which one of the round was sent.
    fn note_failure(&mut self, worker: &Worker, failed: Failed) {
        let epoch = worker.epoch.or(worker.seen.map(|endpoint| endpoint.epoch));
        let delivery = &mut self.deliveries[Self::index_of(&worker.dispatch)];
        delivery.failed_at = Some(failed.at);
        delivery.epoch = delivery.epoch.into_iter().chain(epoch).min();
    }

    /// Holds the delivery in one transaction with a check that the endpoint has not changed.
    pub(crate) fn hold(&mut self, worker: &Worker) -> Then {
        let step = hold(&worker.dispatch, worker.clock());
        let found = self.progress_of(&worker.dispatch).clone();
        if step.apply(&found).is_none() {
            return worker.refused(&found, Token::from(Uuid::nil()), self.now);
        }
        if self.endpoint != worker.seen {
            return Then::Postpone(1);
        }
        self.write_for(worker, &step);
        self.check(self.endpoint.is_some_and(|endpoint| !endpoint.is_on), Broken::HeldWhileOn);
        Then::Done
    }

    pub(crate) fn end(&mut self, worker: &Worker) -> Then {
        let (applied, found) = self.write_for(worker, &end(&worker.dispatch, worker.clock()));
        if !applied {
            return worker.refused(&found, Token::from(Uuid::nil()), self.now);
        }
        self.check(self.endpoint.is_none(), Broken::EndedWhileThere);
        Then::Done
    }

    pub(crate) fn write_for(&mut self, worker: &Worker, step: &Transition) -> (bool, Progress) {
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
