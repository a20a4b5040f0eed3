//! The steps of a worker: for a message that carries its delivery, up to its POST, and from its answer on. They are as in
//! `functions/webhook/src/received.rs`, `attempt.rs` and `settle.rs` there.

use uuid::Uuid;

use crate::invariants::Broken;
use crate::time::DELAYS;
use crate::worker::{Failed, Phase, Then, Worker};
use crate::world::{EndpointSwitch, World};
use common::event::EventKind;
use common::timestamp::Timestamp;
use webhooks::delivery::{
    AfterFailure, Attempt, Carried, Delivery, Dispatch, MAX_CLAIMS, Progress, Status, StepRefusal, Token, Transition,
    claim, claim_watched, end, hold, overdue_at, refusal, succeed, wait, watch,
};
use webhooks::{ATTEMPTS, Schedule, Wait};

/// Returns the delivery that a first message carries.
pub(crate) fn carried(dispatch: &Dispatch) -> Carried {
    let (id, whose) = (dispatch.delivery_id, (dispatch.account_id, dispatch.endpoint_id));
    let created_at = Timestamp::from_millis(0);
    Carried::new(id, whose, EventKind::ListingSold, created_at, "{}".to_owned()).expect("the body is JSON")
}

impl World {
    /// Calls the drain for a delivery whose message has come again, before the delivery is stored.
    fn call_stored(&mut self, worker: &Worker) -> Then {
        self.call_overdue(worker);
        Then::Go(Phase::Store)
    }

    /// Calls the drain before the claim of a delivery that was stored already.
    fn call_claimed(&mut self, worker: &Worker) -> Then {
        self.call_overdue(worker);
        Then::Go(Phase::Claim)
    }

    /// Calls the drain for the time when it must make the attempt, if no message does.
    fn call_overdue(&mut self, worker: &Worker) {
        let (token, by) = (self.free_token(), overdue_at(Schedule::default(), worker.clock()));
        self.call_drain_by(token, by, worker.clock_at(self.now));
    }

    /// Stores a delivery whose message has come again. Only then does the worker read the endpoint.
    pub(crate) fn store(&mut self, worker: &Worker) -> Then {
        let stored = carried(&worker.dispatch).stored(overdue_at(Schedule::default(), worker.clock()));
        match self.put_delivery(stored) {
            Some(found) if found.is_unwatched() => Then::Go(Phase::Watch),
            _ => worker.after_storing(),
        }
    }

    /// Gives a delivery that was stored already a wake-up, if it lacks one.
    fn watch(&mut self, worker: &Worker) -> Then {
        let found = self.progress_of(&worker.dispatch);
        if let Some(step) = watch(found, overdue_at(Schedule::default(), worker.clock())) {
            self.write_for(worker, &step);
        }
        worker.after_storing()
    }

    /// Stores a delivery as it waits for the drain. If it is stored already, it waits as any other.
    fn wait_new(&mut self, worker: &Worker) -> Then {
        let waiting = carried(&worker.dispatch).stored(worker.clock());
        Then::Go(if self.put_delivery(waiting).is_none() { Phase::CallNow } else { Phase::Wait })
    }

    /// Stores a delivery as claimed. If it is stored already, it is claimed as any other.
    fn create(&mut self, worker: &Worker) -> Then {
        let claimed = carried(&worker.dispatch).claimed(worker.lease, worker.clock());
        match self.put_delivery(claimed) {
            Some(found) if found.lease.is_none_or(|held| held.id != worker.lease) => Then::Go(Phase::CallClaimed),
            _ => Then::Go(Phase::Post),
        }
    }

    /// Stores a delivery as held, in one transaction with a check that the endpoint has not changed. If it is stored
    /// already, it is held as any other.
    fn hold_new(&mut self, worker: &Worker) -> Then {
        if self.is_stored(&worker.dispatch) {
            return Then::Go(Phase::Hold);
        }
        if self.endpoint != worker.seen {
            return Then::Postpone(1);
        }
        self.put_delivery(carried(&worker.dispatch).held(worker.clock()));
        self.check(self.endpoint.is_some_and(|endpoint| !endpoint.is_on), Broken::HeldWhileOn);
        Then::Done
    }

    /// Writes a new delivery, unless it is stored already. Returns what is stored already.
    fn put_delivery(&mut self, new: Delivery) -> Option<Progress> {
        let index = Self::index_of(&Dispatch::next_of(&new));
        if self.deliveries[index].progress.is_none() {
            let shown = self.deliveries[index].entry();
            self.deliveries[index].progress = Some(new.progress);
            self.note_index(index, shown);
            return None;
        }
        self.deliveries[index].progress.clone()
    }

    /// Makes a worker's step. Returns what follows if the worker gets the answer.
    pub(crate) fn step(&mut self, worker: &Worker) -> Then {
        let is_stored = self.is_stored(&worker.dispatch);
        match worker.phase {
            // There is nothing to change, so the message is void. It may have come before the delivery was stored.
            Phase::Claim | Phase::Wait | Phase::Hold | Phase::End if !is_stored => Then::Done,
            Phase::Store => self.store(worker),
            Phase::Watch => self.watch(worker),
            Phase::Create => self.create(worker),
            Phase::Claim => self.claim(worker),
            Phase::CallStored => self.call_stored(worker),
            Phase::CallClaimed => self.call_claimed(worker),
            Phase::WaitNew => self.wait_new(worker),
            Phase::Wait => self.wait(worker),
            Phase::CallNow => {
                let token = self.free_token();
                let must_send = self.call_drain(token, worker.clock_at(self.now));
                if must_send { Then::Go(Phase::Send(token)) } else { Then::Done }
            }
            Phase::Send(token) => {
                self.send_call(token);
                Then::Done
            }
            Phase::Post => Then::Done,
            Phase::Succeed => self.succeed(worker),
            Phase::SendRetry(failed) => {
                if let AfterFailure::Again(Wait::Delayed { seconds }, _) = worker.after_failure(failed) {
                    self.send(worker.dispatch.after(worker.lease), seconds);
                }
                Then::Go(worker.recording(failed))
            }
            Phase::CallRetry(failed) => self.call_retry(worker, failed),
            Phase::Fail(failed) => self.fail(worker, failed),
            Phase::GiveUp(failed) => self.give_up(worker, failed),
            Phase::HoldNew => self.hold_new(worker),
            Phase::Hold => self.hold(worker),
            Phase::End => self.end(worker),
        }
    }

    fn claim(&mut self, worker: &Worker) -> Then {
        let step = if worker.carries() {
            claim_watched(&worker.dispatch, worker.lease, Schedule::default(), worker.clock())
        } else {
            claim(&worker.dispatch, worker.lease, worker.clock())
        };
        let (applied, found) = self.write_for(worker, &step);
        if !applied && refusal(Some(&found), &worker.dispatch, worker.lease, worker.clock()) != StepRefusal::Ours {
            return worker.refused(&found, worker.lease, self.now);
        }
        let claims = if applied { found.claims + 1 } else { found.claims };
        if claims > MAX_CLAIMS {
            return Then::Go(worker.failed(Failed { at: self.now, is_lost: true }));
        }
        Then::Go(Phase::Post)
    }

    /// Lets the attempt of a stored delivery wait for the drain. If the delivery has moved on, or somebody is making the
    /// attempt, there is nothing to write. But before the message goes that carries it, it gets a wake-up.
    fn wait(&mut self, worker: &Worker) -> Then {
        let (applied, _) = self.write_for(worker, &wait(&worker.dispatch, worker.clock()));
        if applied {
            Then::Go(Phase::CallNow)
        } else if worker.carries() {
            Then::Go(Phase::CallStored)
        } else {
            Then::Done
        }
    }

    /// Calls the drain for a retry, before the failure is recorded.
    fn call_retry(&mut self, worker: &Worker, failed: Failed) -> Then {
        if let Some(by) = worker.next_wake_up(failed) {
            let token = self.free_token();
            self.call_drain_by(token, by, worker.clock_at(self.now));
        }
        Then::Go(Phase::Fail(failed))
    }

    /// A worker begins its POST.
    pub(crate) fn begin_post(&mut self, worker: &Worker) {
        self.check_post(worker);
        let epoch = self.endpoint.map(|endpoint| endpoint.epoch);
        self.go_on(Worker { phase: Phase::Post, epoch, is_applied: false, ..worker.clone() });
    }

    /// Checks the invariants that must hold when a worker begins its POST.
    fn check_post(&mut self, worker: &Worker) {
        let index = Self::index_of(&worker.dispatch);
        let is_sending = |other: &Worker| other.phase == Phase::Post && !other.is_overtaken && other.is_beside(worker);
        let is_alone = !self.workers.iter().any(is_sending);
        self.check(is_alone, Broken::TwoAtOnce);
        self.check(worker.seen.is_some_and(|endpoint| endpoint.is_on), Broken::SentToOff);
        let recorded = self.progress_of(&worker.dispatch).failed_attempts;
        let delivery = &mut self.deliveries[index];
        delivery.posts += 1;
        let (posts, failed_at) = (delivery.posts, delivery.failed_at);
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
    fn give_up(&mut self, worker: &Worker, failed: Failed) -> Then {
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
