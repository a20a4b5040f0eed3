//! The drain of an account: whoever makes the attempts that could not be made at once.
//!
//! A delivery waits in the table if its endpoint is not known to respond promptly, if its receiver was busy, if its retry is
//! more than fifteen minutes away, or if it is sent again. Each account has at most one run of its drain. So slow receivers
//! occupy at most two instances per account, whatever waits: the attempts of a run may still be under way when the next
//! run begins.
//!
//! The row of a drain is its alarm clock. A row that is awake has a message on its way or somebody who runs it. A row
//! that sleeps is woken by whoever lets a delivery wait, or by `sweep` when its time has come.

use std::time::Duration;

use common::ids::{EndpointId, UserId};
use common::store::StoreError;
use common::timestamp::Timestamp;

use crate::delivery::{Lane, Token};
use crate::queues::{DrainMessage, QueueMessage, Queues, Unsent};
use crate::schedule::Schedule;
use crate::store::{WakeUp, WebhookStore};

/// How many attempts to one endpoint a drain makes at the same time.
pub const IN_FLIGHT: usize = 10;
/// For how long a run begins attempts. The last of them may take ten seconds more, and the run must end before the
/// function's time-out of 25 seconds.
pub const BEGIN_FOR: Duration = Duration::from_secs(12);
/// How often a run looks whether the drain was woken again.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many milliseconds a run waits before it looks again for what waits, after each look that found nothing new: the
/// index may lag. After the last of them it ends.
pub const PAUSES_MILLIS: [u64; 3] = [250, 500, 1_500];
/// How long a run begins nothing after a call that failed.
pub const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// An endpoint counts as prompt after this many prompt answers in a row, even if more of it still waits.
pub const PROVEN_AT: usize = 50;
/// How long a drain sleeps at least, in seconds. It sleeps for three times as long as nobody has woken it, so what the index
/// shows late is found.
pub const MIN_SLEEP_SECONDS: u32 = 60;
/// The longest that the drain of an account with endpoints sleeps: six hours.
pub const MAX_SLEEP_SECONDS: u32 = 6 * 60 * 60;
/// For how long after it was woken the drain goes on to end the deliveries of a removed endpoint, in seconds: somebody may have
/// read the endpoint before it was removed, and the index may lag.
pub const REMOVED_FOR_SECONDS: u32 = 60 * 60;
/// A drain of which nothing was heard for this many seconds is woken again, because its message was lost or its run has
/// died. A run takes less than the function's time-out of 25 seconds.
pub const LOST_SECONDS: u32 = 30;

/// The row of a drain as a run finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    pub account_id: UserId,
    /// What a message must carry to begin a run, and a run to change the row.
    pub token: Token,
    /// How often it was woken. A run cannot end if this has grown.
    pub wakes: u64,
    /// When it was woken last, at once or for later, or when a run of it began while it was awake.
    pub woken_at: Timestamp,
    /// When it wakes, or is taken for lost if it is awake.
    pub wake_at: Option<Timestamp>,
    pub is_asleep: bool,
    /// Removed endpoints whose deliveries are still to be ended.
    pub removed: Vec<EndpointId>,
}

impl Drain {
    /// Returns whether it was not woken for this many seconds.
    pub fn was_not_woken_for(&self, seconds: u32, now: Timestamp) -> bool {
        self.woken_at.plus_millis(i64::from(seconds) * 1_000) < now
    }
}

/// Returns when a drain that sleeps from now on wakes, if nothing is due before: in three times the time since it was
/// woken last.
pub fn wakes_at(woken_at: Timestamp, schedule: Schedule, now: Timestamp) -> Timestamp {
    let undisturbed_for = now.millis().saturating_sub(woken_at.millis());
    let [least, most] =
        [MIN_SLEEP_SECONDS, MAX_SLEEP_SECONDS].map(|seconds| i64::from(schedule.scaled(seconds)) * 1_000);
    now.plus_millis(undisturbed_for.saturating_mul(3).clamp(least, most))
}

/// Wakes the drains of accounts: first the row, then the queue. If the message cannot be sent, `sweep` sends it.
#[derive(Clone)]
pub struct Drains {
    store: WebhookStore,
    queues: Queues,
    schedule: Schedule,
}

impl Drains {
    /// The queues must have the slow lane.
    pub const fn new(store: WebhookStore, queues: Queues, schedule: Schedule) -> Self {
        Self { store, queues, schedule }
    }

    /// Wakes the drain of an account, because something waits that it must look at now.
    pub async fn wake(&self, account_id: UserId, now: Timestamp) -> Result<(), StoreError> {
        let token = Token::random();
        if self.store.wake_drain(account_id, token, self.lost_at(now), now).await? {
            self.send(DrainMessage { account_id, token }).await;
        }
        Ok(())
    }

    /// Sends the message of a drain whose wake-up comes, for the time when it is to run. A drain that is awake is taken for
    /// lost then. The message is void if the drain has run or was woken by then. Nothing is written, so the next sweep does
    /// the same if the message is lost. Returns whether the drain was asleep, or `None` if its wake-up was moved before.
    pub async fn wake_due(
        &self,
        account_id: UserId,
        seen: &WakeUp,
        now: Timestamp,
    ) -> Result<Option<bool>, StoreError> {
        let found = self.store.drain(account_id).await?;
        let Some(drain) = found.filter(|drain| drain.wake_at == seen.time()) else { return Ok(None) };
        let millis = seen.time().map_or(0, |at| at.millis() - now.millis()).max(0);
        let delay = u32::try_from(millis.unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX);
        let sent = self.send_after(DrainMessage { account_id, token: drain.token }, delay).await;
        sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
        Ok((drain.is_asleep || millis == 0).then_some(drain.is_asleep))
    }

    /// Sends the message of a drain whose row has its token. If that fails, `sweep` sends it.
    pub async fn send(&self, message: DrainMessage) {
        if let Err(error) = self.send_after(message, 0).await {
            tracing::warn!(account_id = %message.account_id, %error, "cannot wake the drain");
        }
    }

    /// Sends a message of a drain with a delay in seconds.
    pub async fn send_after(&self, message: DrainMessage, delay_seconds: u32) -> Result<(), Unsent> {
        self.queues.send_one(Lane::Slow, QueueMessage::Drain(message), delay_seconds).await
    }

    /// Returns the retry times of the stack.
    pub const fn schedule(&self) -> Schedule {
        self.schedule
    }

    /// Returns when a message that is sent now is taken for lost.
    pub fn lost_at(&self, now: Timestamp) -> Timestamp {
        self.schedule.after(now, LOST_SECONDS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drain_that_nobody_wakes_sleeps_ever_longer_and_at_most_six_hours() {
        let (woken_at, mut now) = (Timestamp::from_millis(0), Timestamp::from_millis(0));
        let slept = [(); 7].map(|()| {
            let wakes_at = wakes_at(woken_at, Schedule::default(), now);
            let slept = wakes_at.seconds() - now.seconds();
            now = wakes_at;
            slept
        });
        assert_eq!(slept, [60, 180, 720, 2_880, 11_520, 21_600, 21_600]);
    }
}
