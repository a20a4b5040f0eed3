//! A sweep that calls the drain when its wake-up has come, in the steps of `functions/sweep`.

use common::resources::{SWEEP_PERIOD, SWEEP_TIMEOUT};
use common::timestamp::Timestamp;
use webhooks::delivery::Token;

use crate::run::DrainCall;
use crate::time::{Millis, SECOND};
use crate::world::World;

/// The longest time that a sweep runs.
const TIMEOUT: Millis = SWEEP_TIMEOUT.as_secs().cast_signed() * SECOND;
/// How often a sweep begins, and how early it calls the drain, with a delay.
pub(crate) const AHEAD: Millis = SWEEP_PERIOD.as_secs().cast_signed() * SECOND;

/// A sweep that has found the drain due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Sweeper {
    skew: Millis,
    pub(crate) until: Millis,
    pub(crate) step: SweepStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum SweepStep {
    /// The wake-up is moved, if it is still this one.
    Wake(Timestamp),
    /// The message is sent with this delay.
    Send(Token, Millis),
}

impl World {
    /// Whether a sweep with this clock error begins now and finds the drain due. One begins a minute after the last one, or
    /// before that has ended.
    pub(crate) fn is_due(&self, skew: Millis) -> bool {
        if self.sweepers.is_empty() && self.swept_until.is_some_and(|until| until > self.now) {
            return false;
        }
        let by = self.clock(skew).plus_millis(AHEAD);
        self.drain.and_then(|row| row.wake_at).is_some_and(|wake_at| wake_at <= by)
    }

    pub(crate) fn begin_sweep(&mut self, skew: Millis) -> Option<()> {
        if !self.sweepers.is_empty() {
            self.left.overlaps = self.left.overlaps.checked_sub(1)?;
        }
        let wake_at = self.drain?.wake_at?;
        self.swept_until = Some(self.now + AHEAD);
        self.sweepers.push(Sweeper { skew, until: self.now + TIMEOUT, step: SweepStep::Wake(wake_at) });
        Some(())
    }

    /// Makes the next step of a sweep: first it moves the wake-up, then it sends the message.
    pub(crate) fn sweep(&mut self, index: usize) {
        let sweeper = self.sweepers.remove(index);
        match sweeper.step {
            SweepStep::Wake(seen) => {
                let now = self.clock(sweeper.skew);
                let at = seen.max(now);
                if let Some(token) = self.wake_drain(seen, at) {
                    let step = SweepStep::Send(token, at.millis() - now.millis());
                    self.sweepers.insert(index, Sweeper { step, ..sweeper });
                }
            }
            SweepStep::Send(token, delay) => self.put_call(DrainCall { visible_at: self.now + delay, token }),
        }
    }

    pub(crate) fn crash_sweep(&mut self, index: usize) {
        self.sweepers.remove(index);
    }
}
