//! A sweep's work on one delivery, in the steps of `functions/sweep`. The model has no index: an outdated index entry
//! leads to a delivery that is not due, and there a sweep does nothing.

use platform::resources::SWEEP_TIMEOUT;
use types::timestamp::Timestamp;
use webhooks::Schedule;
use webhooks::delivery::{Progress, sweep};

use crate::invariants::Broken;
use crate::time::{Millis, SECOND};
use crate::world::World;

/// The longest time that a sweep runs.
const TIMEOUT: Millis = SWEEP_TIMEOUT.as_secs().cast_signed() * SECOND;

/// A sweep that has found a delivery due.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sweeper {
    pub(crate) delivery: usize,
    pub(crate) seen: Progress,
    clock: Timestamp,
    pub(crate) until: Millis,
    is_sent: bool,
}

impl World {
    /// Whether a sweep with this clock error finds the delivery due.
    pub(crate) fn is_due(&self, delivery: usize, skew: Millis) -> bool {
        let seen = self.deliveries[delivery].progress.as_ref();
        seen.is_some_and(|seen| sweep(Schedule::default(), seen, self.clock(skew)).is_some())
    }

    pub(crate) fn is_swept(&self, delivery: usize) -> bool {
        self.sweepers.iter().any(|sweeper| sweeper.delivery == delivery)
    }

    pub(crate) fn begin_sweep(&mut self, delivery: usize, skew: Millis) -> Option<()> {
        if self.is_swept(delivery) {
            self.left.overlaps = self.left.overlaps.checked_sub(1)?;
        }
        let seen = self.deliveries[delivery].progress.clone()?;
        let (clock, until) = (self.clock(skew), self.now + TIMEOUT);
        self.sweepers.push(Sweeper { delivery, seen, clock, until, is_sent: false });
        Some(())
    }

    /// Makes the next step of a sweep: first it sends the message, then it moves the wake-up.
    pub(crate) fn sweep(&mut self, index: usize) {
        let mut sweeper = self.sweepers.remove(index);
        let Some(resending) = sweep(Schedule::default(), &sweeper.seen, sweeper.clock) else { return };
        if !sweeper.is_sent {
            self.send(self.next_dispatch(sweeper.delivery, sweeper.seen.clone()), resending.delay_seconds);
            sweeper.is_sent = true;
            self.sweepers.insert(index, sweeper);
            return;
        }
        if self.write(sweeper.delivery, &resending.then).0 {
            self.check(self.is_called(sweeper.seen.token), Broken::Uncalled);
        }
    }

    pub(crate) fn crash_sweep(&mut self, index: usize) {
        self.sweepers.remove(index);
    }
}
