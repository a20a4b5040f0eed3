//! The steps for a message that carries its delivery, as in `functions/webhook/src/received.rs` and beside it.

use common::event::EventKind;
use common::timestamp::Timestamp;
use webhooks::Schedule;
use webhooks::delivery::{Carried, Delivery, Dispatch, Progress, overdue_at, watch};

use crate::invariants::Broken;
use crate::worker::{Phase, Then, Worker};
use crate::world::World;

/// Returns the delivery that a first message carries.
pub(crate) fn carried(dispatch: &Dispatch) -> Carried {
    let (id, whose) = (dispatch.delivery_id, (dispatch.account_id, dispatch.endpoint_id));
    let created_at = Timestamp::from_millis(0);
    Carried::new(id, whose, EventKind::ListingSold, created_at, "{}".to_owned()).expect("the body is JSON")
}

impl World {
    /// Calls the drain for a delivery whose message has come again, before the delivery is stored.
    pub(crate) fn call_stored(&mut self, worker: &Worker) -> Then {
        self.call_overdue(worker);
        Then::Go(Phase::Store)
    }

    /// Calls the drain before the claim of a delivery that was stored already.
    pub(crate) fn call_claimed(&mut self, worker: &Worker) -> Then {
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
            Some(found) if watch(&found, Schedule::default(), worker.clock()).is_some() => Then::Go(Phase::Watch),
            _ => worker.after_storing(),
        }
    }

    /// Gives a delivery that was stored already a wake-up, if it lacks one.
    pub(crate) fn watch(&mut self, worker: &Worker) -> Then {
        let found = self.progress_of(&worker.dispatch);
        if let Some(step) = watch(found, Schedule::default(), worker.clock()) {
            self.write_for(worker, &step);
        }
        worker.after_storing()
    }

    /// Stores a delivery as it waits for the drain. If it is stored already, it waits as any other.
    pub(crate) fn wait_new(&mut self, worker: &Worker) -> Then {
        let waiting = carried(&worker.dispatch).stored(worker.clock());
        Then::Go(if self.put_delivery(waiting).is_none() { Phase::CallNow } else { Phase::Wait })
    }

    /// Stores a delivery as claimed. If it is stored already, it is claimed as any other.
    pub(crate) fn create(&mut self, worker: &Worker) -> Then {
        let claimed = carried(&worker.dispatch).claimed(worker.lease, worker.clock());
        match self.put_delivery(claimed) {
            Some(found) if found.lease.is_none_or(|held| held.id != worker.lease) => Then::Go(Phase::CallClaimed),
            _ => Then::Go(Phase::Post),
        }
    }

    /// Stores a delivery as held, in one transaction with a check that the endpoint has not changed. If it is stored
    /// already, it is held as any other.
    pub(crate) fn hold_new(&mut self, worker: &Worker) -> Then {
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
    pub(crate) fn put_delivery(&mut self, new: Delivery) -> Option<Progress> {
        let index = Self::index_of(&Dispatch::next_of(&new));
        if self.deliveries[index].progress.is_none() {
            let shown = self.deliveries[index].entry();
            self.deliveries[index].progress = Some(new.progress);
            self.note_index(index, shown);
            return None;
        }
        self.deliveries[index].progress.clone()
    }
}
