//! How the steps of a worker can go wrong.

use common::resources::Queue;

use crate::time::{Millis, SECOND};
use crate::worker::{Failed, Phase, Response, Then, Worker};
use crate::world::{QueuedMessage, World};

/// The ways in which a worker's step can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Luck {
    Good,
    /// The worker dies, before or after it makes the step.
    Crash {
        is_made: bool,
    },
    /// The step is made twice.
    Repeat,
    /// The worker does not learn whether the step was made, and postpones the message.
    Away {
        is_made: bool,
    },
    /// The worker dies, and the step takes effect later.
    Late,
}

/// Every kind of luck.
pub(crate) const LUCK: [Luck; 7] = [
    Luck::Good,
    Luck::Crash { is_made: false },
    Luck::Crash { is_made: true },
    Luck::Repeat,
    Luck::Away { is_made: false },
    Luck::Away { is_made: true },
    Luck::Late,
];

/// A received message that is not acknowledged comes back after this time.
const VISIBILITY: Millis = Queue::WebhooksRetry.visibility_seconds().cast_signed() * SECOND;

impl World {
    /// The endpoint responds.
    pub(crate) fn answer(&mut self, index: usize, response: Response) {
        let worker = self.workers.remove(index);
        let failed = Failed { at: self.now, is_lost: false };
        let phase = match response {
            Response::Acknowledged => Phase::Succeed,
            Response::Failed => worker.failed(failed),
        };
        self.go_on(Worker { phase, ..worker });
    }

    /// Makes a worker's next step with this luck. Returns `None` if the step cannot go that way.
    pub(crate) fn work(&mut self, index: usize, luck: Luck) -> Option<()> {
        let worker = self.workers.remove(index);
        let can_be = match luck {
            Luck::Good => worker.phase != Phase::Post,
            Luck::Crash { is_made: false } => !worker.is_late,
            Luck::Crash { is_made: true } | Luck::Repeat | Luck::Away { .. } | Luck::Late => {
                !worker.is_late && worker.phase != Phase::Post
            }
        };
        if !can_be {
            return None;
        }
        match luck {
            Luck::Good => {
                let then = self.step(&worker);
                self.follow(&worker, then);
            }
            Luck::Crash { is_made } => {
                self.step_if(is_made, &worker);
                self.come_back(&worker);
            }
            Luck::Repeat => {
                self.step(&worker);
                self.go_on(Worker { is_applied: true, ..worker });
            }
            Luck::Away { is_made } => {
                self.step_if(is_made, &worker);
                self.follow(&worker, worker.unanswered());
            }
            Luck::Late => {
                self.come_back(&worker);
                self.go_on(Worker { is_late: true, ..worker });
            }
        }
        Some(())
    }

    fn step_if(&mut self, is_made: bool, worker: &Worker) {
        if is_made {
            self.step(worker);
        }
    }

    fn follow(&mut self, worker: &Worker, then: Then) {
        match then {
            _ if worker.is_late => {}
            // A run looks again.
            Then::Done => {}
            Then::Postpone(_) if worker.run.is_some() => self.doubt(worker),
            Then::Read => self.go_on(self.read(worker.clone())),
            Then::Postpone(seconds) => self.postpone(worker, seconds),
            Then::Go(Phase::Post) => self.begin_post(worker),
            Then::Go(phase) => self.go_on(Worker { phase, is_applied: false, ..worker.clone() }),
        }
    }

    /// A worker reads its account.
    pub(crate) fn read(&self, worker: Worker) -> Worker {
        worker.after_reading(self.endpoint)
    }

    pub(crate) fn go_on(&mut self, worker: Worker) {
        self.workers.push(worker);
        self.workers.sort_unstable();
    }

    /// Makes the worker's message visible again once its visibility time-out is over. If it belongs to a run, the whole
    /// run dies.
    fn come_back(&mut self, worker: &Worker) {
        if let Some(run) = worker.run {
            self.end_with(run);
            return;
        }
        let Worker { dispatch, kind, receives, .. } = *worker;
        self.put(QueuedMessage { visible_at: worker.received_at + VISIBILITY, dispatch, kind, receives });
    }
}
