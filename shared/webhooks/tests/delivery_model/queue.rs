//! A queue that delivers each message at least once, unless the model loses one.

use common::queues::MAX_DELAY_SECONDS;
use webhooks::delivery::{Dispatch, Token};

use crate::bounds::Bounds;
use crate::invariants::Broken;
use crate::operator::Operator;
use crate::time::{Millis, SECOND};
use crate::worker::Worker;
use crate::world::{Kind, QueuedMessage, World};

impl World {
    /// Sends a message for a delivery that is stored.
    pub(crate) fn send(&mut self, dispatch: Dispatch, delay_seconds: u32) {
        self.send_new(dispatch, Kind::Attempt, delay_seconds);
    }

    /// Sends a copy of a worker's message.
    pub(crate) fn postpone(&mut self, worker: &Worker, delay_seconds: u32) {
        let kind = if worker.carries() { Kind::First } else { Kind::Attempt };
        self.send_new(worker.dispatch, kind, delay_seconds);
    }

    fn send_new(&mut self, dispatch: Dispatch, kind: Kind, delay_seconds: u32) {
        let delay = Millis::from(delay_seconds.min(MAX_DELAY_SECONDS)) * SECOND;
        self.put(QueuedMessage { visible_at: self.now + delay, dispatch, kind, receives: 0 });
    }

    pub(crate) fn put(&mut self, message: QueuedMessage) {
        let place = self.queue.partition_point(|other| *other <= message);
        self.queue.insert(place, message);
    }

    pub(crate) fn has_free_worker(&self, bounds: &Bounds) -> bool {
        self.workers.iter().filter(|worker| !worker.is_late && worker.run.is_none()).count() < bounds.workers
    }

    /// A worker takes a message. One that has come too often goes to the dead-letter queue instead. That happens to no
    /// message that is still needed: it comes a thousand times, and one of these gets as far as the first write.
    pub(crate) fn receive(&mut self, message: usize, (skew, is_prompt): (Millis, bool), max_receives: Option<u32>) {
        let QueuedMessage { receives, kind, .. } = self.queue[message];
        if max_receives.is_some_and(|max| receives >= max) && !self.is_needed(message) {
            self.lose(message);
            return;
        }
        // What makes no difference is not counted.
        let countable = max_receives.unwrap_or(if kind == Kind::First { 2 } else { 0 });
        let receives = (receives + 1).min(countable);
        let taken = QueuedMessage { receives, ..self.queue.remove(message) };
        let lease = self.free_token();
        let worker = Worker { is_prompt, ..Worker::new(taken, skew, lease, self.now) };
        let worker = if worker.must_store() { worker } else { self.read(worker) };
        self.workers.push(worker);
        self.workers.sort_unstable();
    }

    pub(crate) fn duplicate(&mut self, message: usize) {
        self.put(self.queue[message]);
    }

    pub(crate) fn lose(&mut self, message: usize) {
        self.queue.remove(message);
        self.has_lost = true;
    }

    pub(crate) fn delay(&mut self, message: usize, by: Millis) {
        let delayed = QueuedMessage { visible_at: self.now + by, ..self.queue.remove(message) };
        self.put(delayed);
    }

    /// Whether a delivery hangs on this message: no other carries it, and no drain would find it. The model loses none of
    /// these, because SQS does not lose messages. It loses others, in place of whatever else may go wrong.
    pub(crate) fn is_needed(&self, message: usize) -> bool {
        let QueuedMessage { dispatch, kind, .. } = self.queue[message];
        let delivery = Self::index_of(&dispatch);
        kind == Kind::First && self.lack(delivery).is_some() && self.carriers(delivery) == 1
    }

    /// A delivery that has to be found again is carried by a message, or has a wake-up for which the drain is called, or
    /// for which somebody is about to call it.
    pub(crate) fn check_wake_ups(&mut self) {
        for delivery in 0..self.deliveries.len() {
            let has_caller = || {
                let is_about = |worker: &Worker| !worker.is_late && Self::index_of(&worker.dispatch) == delivery;
                self.workers.iter().any(is_about) || self.operators.iter().any(Operator::will_call)
            };
            let broken = self.lack(delivery).filter(|_| self.carriers(delivery) == 0);
            let is_found = broken == Some(Broken::Unwatched) && has_caller();
            self.note(broken.filter(|_| !is_found));
        }
    }

    /// What an open delivery lacks to be found by the drain.
    fn lack(&self, delivery: usize) -> Option<Broken> {
        let delivery = &self.deliveries[delivery];
        let wake_at = delivery.progress.as_ref().and_then(|progress| progress.wake_at);
        match wake_at {
            _ if !self.is_open(delivery) => None,
            None => Some(Broken::NoWakeUp),
            Some(wake_at) => (!self.is_watched(wake_at)).then_some(Broken::Unwatched),
        }
    }

    /// How many messages carry a delivery, in the queue or with a worker.
    fn carriers(&self, delivery: usize) -> usize {
        let waiting = self.queue.iter().filter(|message| message.kind == Kind::First).map(|message| message.dispatch);
        let received = self.workers.iter().filter(|worker| worker.kind == Kind::First && !worker.is_late);
        let carried = waiting.chain(received.map(|worker| worker.dispatch));
        carried.filter(|dispatch| Self::index_of(dispatch) == delivery).count()
    }

    /// Whether a message with this token is in the queue or with a worker, or some message was lost.
    pub(crate) fn is_called(&self, token: Token) -> bool {
        let waiting = self.queue.iter().map(|message| message.dispatch.token);
        let received = self.workers.iter().filter(|worker| !worker.is_late).map(|worker| worker.dispatch.token);
        self.has_lost || waiting.chain(received).any(|other| other == token)
    }
}
