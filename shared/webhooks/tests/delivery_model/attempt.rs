//! The steps of a worker up to its POST, as in `functions/webhook/src/attempt.rs`.

use webhooks::delivery::{AfterFailure, MAX_CLAIMS, StepRefusal, claim, claim_watched, refusal};
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
            Phase::Claim | Phase::Leave | Phase::Hold | Phase::End if !is_stored => Then::Done,
            Phase::Store => self.store(worker),
            Phase::Watch => self.watch(worker),
            Phase::Create => self.create(worker),
            Phase::Claim => self.claim(worker),
            Phase::TakePlace => self.take_place(worker),
            Phase::Reserve => self.reserve(worker),
            Phase::CallAgain => self.call_again(worker),
            Phase::LeaveNew => self.leave_new(worker),
            Phase::Leave => self.leave(worker),
            Phase::LeavePlace => self.leave_place(worker),
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

    /// Checks the invariants that must hold when a worker begins its POST.
    pub(crate) fn check_post(&mut self, worker: &Worker) {
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
