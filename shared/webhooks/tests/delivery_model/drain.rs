//! The row of the account's drain, as `webhooks::store` changes it, and the sweep that calls the drain when its wake-up has
//! come. Each function of the row is one conditional write. The steps of the sweep are those of `functions/sweep`.

use uuid::Uuid;

use crate::invariants::Broken;
use crate::run::DrainCall;
use crate::time::{Millis, SECOND};
use crate::world::World;
use common::ids::UserId;
use common::resources::{SWEEP_PERIOD, SWEEP_TIMEOUT};
use common::timestamp::Timestamp;
use webhooks::delivery::{LEASE_SECONDS, Token};
use webhooks::drain::{Drain, GRACE_SECONDS, LOST_SECONDS, NAP_SECONDS};

/// A run that has not ended after this many seconds has died. Before another one looks, the index has had the time to show
/// what it recorded last.
const RUN_SECONDS: i64 = LEASE_SECONDS + NAP_SECONDS as i64;
/// The longest time that a sweep runs.
const TIMEOUT: Millis = SWEEP_TIMEOUT.as_secs().cast_signed() * SECOND;
/// How often a sweep begins, and how early it calls the drain, with a delay.
pub(crate) const AHEAD: Millis = SWEEP_PERIOD.as_secs().cast_signed() * SECOND;

/// The row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DrainRow {
    pub(crate) token: Token,
    /// When a sweep must call the drain. `None` once the drain is over.
    pub(crate) wake_at: Option<Timestamp>,
    pub(crate) is_asleep: bool,
    pub(crate) calls: u32,
    pub(crate) called_at: Timestamp,
    /// Whether deliveries of the removed endpoint are still to be ended.
    pub(crate) has_removed: bool,
}

/// What becomes of a drain after a run, as `webhooks::store::Rest`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Rest {
    Until(Timestamp),
    Over,
}

fn plus_seconds(time: Timestamp, seconds: impl Into<i64>) -> Timestamp {
    time.plus_millis(seconds.into() * SECOND)
}

/// When a message that is sent now is taken for lost.
fn lost_at(now: Timestamp) -> Timestamp {
    plus_seconds(now, LOST_SECONDS)
}

impl DrainRow {
    pub(crate) const fn new(token: Token, called_at: Timestamp) -> Self {
        Self { token, wake_at: None, is_asleep: false, calls: 0, called_at, has_removed: false }
    }

    /// Whether a message is on its way, or somebody runs the drain.
    const fn is_awake(&self) -> bool {
        self.wake_at.is_some() && !self.is_asleep
    }

    /// Whether a run that finds nothing can trust that there is nothing.
    pub(crate) fn is_settled(&self, now: Timestamp) -> bool {
        let (account_id, removed) = (UserId::from(Uuid::nil()), Vec::new());
        let Self { token, called_at, .. } = *self;
        let drain = Drain { account_id, token, calls: self.calls.into(), called_at, removed };
        drain.is_settled(now, GRACE_SECONDS)
    }

    /// When a run ends that may not have seen everything.
    pub(crate) fn nap(next: Option<Timestamp>, now: Timestamp) -> Rest {
        let nap = plus_seconds(now, NAP_SECONDS);
        Rest::Until(next.map_or(nap, |next| next.min(nap)))
    }
}

impl World {
    /// Calls the drain because something waits that it must look at now. Returns whether a message with this token is to
    /// be sent.
    pub(crate) fn call_drain(&mut self, token: Token, now: Timestamp) -> bool {
        let row = self.drain.get_or_insert(DrainRow::new(token, now));
        row.called_at = now;
        row.calls += 1;
        if row.is_awake() {
            return false;
        }
        (row.token, row.wake_at, row.is_asleep) = (token, Some(lost_at(now)), false);
        true
    }

    /// Lets the drain look at its deliveries by this time.
    pub(crate) fn call_drain_by(&mut self, token: Token, by: Timestamp, now: Timestamp) {
        let row = self.drain.get_or_insert(DrainRow::new(token, now));
        row.called_at = now;
        if !row.is_awake() && row.wake_at.is_none_or(|wake_at| wake_at > by) {
            (row.wake_at, row.is_asleep) = (Some(by), true);
        }
    }

    /// Begins a run under the token `mine`. Returns `None` if the message is void.
    pub(crate) fn begin_drain(&mut self, token: Token, mine: Token, now: Timestamp) -> Option<DrainRow> {
        let row = self.drain.as_mut().filter(|row| row.token == token)?;
        (row.token, row.wake_at, row.is_asleep) = (mine, Some(plus_seconds(now, RUN_SECONDS)), false);
        Some(*row)
    }

    /// Ends the run that has read the row as `seen`, unless the drain was called for at once since. If the run relies on
    /// having seen everything, a call for later prevents that as well. If it knows that it has not, it counts as a call.
    /// Returns whether the run has ended.
    pub(crate) fn rest_drain(
        &mut self,
        seen: &DrainRow,
        rest: Rest,
        is_sure: bool,
        called_at: Option<Timestamp>,
    ) -> bool {
        let is_same = |row: &&mut DrainRow| {
            row.token == seen.token && row.calls == seen.calls && (!is_sure || row.called_at == seen.called_at)
        };
        let Some(row) = self.drain.as_mut().filter(is_same) else { return false };
        (row.wake_at, row.is_asleep) = match rest {
            Rest::Until(at) => (Some(at), true),
            Rest::Over => (None, false),
        };
        row.called_at = called_at.unwrap_or(row.called_at);
        let is_heard = row.calls == seen.calls;
        self.check(is_heard, Broken::Unheard);
        self.check_token(seen.token);
        true
    }

    /// Hands the drain on to a message with the token `next`. That counts as a call: the index may not show yet what the
    /// run has recorded. Returns whether the run still had it.
    pub(crate) fn hand_on_drain(&mut self, seen: &DrainRow, next: Token, now: Timestamp) -> bool {
        let Some(row) = self.drain.as_mut().filter(|row| row.token == seen.token) else { return false };
        (row.token, row.wake_at, row.called_at) = (next, Some(lost_at(now)), now);
        true
    }

    /// Moves the wake-up of a drain that a sweep calls for this time. Returns the token of its message, unless the wake-up
    /// was moved before.
    fn wake_drain(&mut self, seen: Timestamp, at: Timestamp) -> Option<Token> {
        let row = self.drain.as_mut().filter(|row| row.wake_at == Some(seen))?;
        row.wake_at = Some(lost_at(at));
        Some(row.token)
    }

    /// Only the run that has the row's token ends, and only one run has it.
    fn check_token(&mut self, token: Token) {
        let is_row = self.drain.is_some_and(|row| row.token == token);
        let runs = self.runs.iter().filter(|run| !run.is_late && run.seen.token == token).count();
        self.check(is_row && runs <= 1, Broken::TwoRuns);
    }

    /// Whether the drain looks at a delivery with this wake-up in time, or soon.
    pub(crate) fn is_watched(&self, wake_at: Timestamp) -> bool {
        /// More than the longest time until a message is taken for lost, with what a sweep is early and a clock is wrong.
        const SOON: Millis = (LOST_SECONDS as Millis + 120) * SECOND;
        let soon = Timestamp::from_millis(self.now + SOON);
        self.drain.and_then(|row| row.wake_at).is_some_and(|looks_at| looks_at <= wake_at.max(soon))
    }

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
