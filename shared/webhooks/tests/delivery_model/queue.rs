//! A queue that delivers each message at least once, unless the model loses one.

use queues::MAX_DELAY_SECONDS;
use webhooks::delivery::{Dispatch, Token};

use crate::bounds::Bounds;
use crate::time::{Millis, SECOND};
use crate::worker::Worker;
use crate::world::{QueuedMessage, World};

impl World {
    /// Sends a message with a delay.
    pub(crate) fn send(&mut self, dispatch: Dispatch, delay_seconds: u32) {
        let delay = Millis::from(delay_seconds.min(MAX_DELAY_SECONDS)) * SECOND;
        self.put(QueuedMessage { visible_at: self.now + delay, dispatch });
    }

    pub(crate) fn put(&mut self, message: QueuedMessage) {
        let place = self.queue.partition_point(|other| *other <= message);
        self.queue.insert(place, message);
    }

    pub(crate) fn has_free_worker(&self, bounds: &Bounds) -> bool {
        self.workers.iter().filter(|worker| !worker.is_late).count() < bounds.workers
    }

    /// A worker takes a message and reads the endpoint.
    pub(crate) fn receive(&mut self, message: usize, skew: Millis) {
        let QueuedMessage { dispatch, .. } = self.queue.remove(message);
        let lease = self.free_token();
        self.workers.push(Worker::new(dispatch, skew, lease, self.now, self.endpoint));
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
        let QueuedMessage { dispatch, .. } = self.queue.remove(message);
        self.put(QueuedMessage { visible_at: self.now + by, dispatch });
    }

    /// Whether a message with this token is in the queue or with a worker, or some message was lost.
    pub(crate) fn is_called(&self, token: Token) -> bool {
        let waiting = self.queue.iter().map(|message| message.dispatch.token);
        let received = self.workers.iter().filter(|worker| !worker.is_late).map(|worker| worker.dispatch.token);
        self.has_lost || waiting.chain(received).any(|other| other == token)
    }
}
