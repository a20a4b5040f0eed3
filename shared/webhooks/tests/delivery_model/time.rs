//! Time moves in leaps, from one instant at which something can happen to the next.

use webhooks::DELAYS_SECONDS;

use crate::bounds::Bounds;
use crate::drain::AHEAD;
use crate::invariants::Broken;
use crate::run::Run;
use crate::worker::Worker;
use crate::world::World;

pub(crate) type Millis = i64;

pub(crate) const SECOND: Millis = 1_000;
const MINUTE: Millis = 60 * SECOND;
const HOUR: Millis = 60 * MINUTE;

/// The least time between a failed attempt and the next one (specification 6.8.1 and 6.8.2).
pub(crate) const DELAYS: [Millis; DELAYS_SECONDS.len()] = {
    let (mut delays, mut retry) = ([0; DELAYS_SECONDS.len()], 0);
    while retry < delays.len() {
        delays[retry] = DELAYS_SECONDS[retry] as Millis * SECOND;
        retry += 1;
    }
    delays
};
/// For how long the index may show what was stored before. That is less than what is left of the drain's two minutes
/// after the time-out of whoever calls it, and the minute by which clocks differ.
pub(crate) const LAG: Millis = 20 * SECOND;
/// How long after the sum of its delays a round with a few faults settles at the latest.
const GRACE: Millis = 3 * HOUR;

impl World {
    /// Moves time to the next instant. Returns false if something must happen first or nothing can happen any more.
    pub(crate) fn advance(&mut self, bounds: &Bounds) -> bool {
        if self.is_urgent(bounds) {
            return false;
        }
        let Some(next) = self.instants(bounds).filter(|instant| *instant > self.now).min() else { return false };
        if self.deadlines().any(|deadline| deadline < next) {
            return false;
        }
        self.now = next;
        self.forget_index();
        self.swept_until = self.swept_until.filter(|until| *until > next);
        let limit = DELAYS.iter().sum::<Millis>() + GRACE;
        let is_late = |began_at: Millis| next - began_at > limit;
        let settles = !self.deliveries.iter().any(|delivery| self.is_open(delivery) && is_late(delivery.began_at));
        self.check(settles, Broken::Unsettled);
        true
    }

    /// Whether something must happen before time may pass: a free worker receives a visible message at once, a
    /// process ends by its deadline, and a sweep begins at the latest when the slowest clock says so. Anything slower
    /// is a fault of its own.
    fn is_urgent(&self, bounds: &Bounds) -> bool {
        let slow = bounds.clocks.sweeps.iter().min().copied().unwrap_or_default();
        self.queue.first().is_some_and(|message| message.visible_at <= self.now) && self.has_free_worker(bounds)
            || self.calls.first().is_some_and(|call| call.visible_at <= self.now)
            || self.deadlines().any(|deadline| deadline <= self.now)
            || self.is_due(slow) && self.sweepers.is_empty()
    }

    fn deadlines(&self) -> impl Iterator<Item = Millis> {
        let workers = self.workers.iter().filter_map(Worker::until);
        let runs = self.runs.iter().filter(|run| !run.is_late).map(Run::until);
        let sweepers = self.sweepers.iter().map(|sweeper| sweeper.until);
        workers.chain(runs).chain(sweepers).chain(self.operators.iter().map(|operator| operator.until))
    }

    /// The instants at which something can happen, in no order.
    fn instants(&self, bounds: &Bounds) -> impl Iterator<Item = Millis> {
        let messages = self.queue.iter().map(|message| message.visible_at);
        let messages = messages.chain(self.calls.iter().map(|call| call.visible_at));
        let wake_up = self.drain.and_then(|row| Some(row.wake_at?.millis()));
        let stored = self.deliveries.iter().filter_map(|delivery| delivery.progress.as_ref());
        let leases = stored.filter_map(|progress| Some(progress.lease?.until.millis() + 1));
        let leases = leases.filter(|_| self.left.resends + self.left.removals > 0);
        let shown = wake_up
            .map(|wake_up| wake_up - AHEAD)
            .into_iter()
            .chain(leases)
            .flat_map(|shown| bounds.clocks.iter().map(move |skew| shown - skew));
        let deadlines = self.deadlines().filter(|_| self.left.crashes + self.left.lags > 0);
        let swept = self.swept_until.filter(|_| wake_up.is_some());
        messages.chain(swept).chain(shown).chain(deadlines)
    }
}
