//! The steps of a worker up to its POST, as in `functions/webhook/src/attempt.rs`.

use webhooks::delivery::{AfterFailure, MAX_CLAIMS, StepRefusal, claim, claim_watched, refusal, wait};
use webhooks::{Schedule, Wait};

use crate::invariants::Broken;
use crate::time::DELAYS;
use crate::worker::{Failed, Phase, Then, Worker};
use crate::world::World;

impl World {
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
}
