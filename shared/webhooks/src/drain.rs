//! The drain of an account: whoever makes the attempts that could not be made at once.
//!
//! A delivery waits in the table if its endpoint is not known to respond promptly, if its receiver was busy, or because
//! its retry is more than fifteen minutes away. Each account has at most one drain, and the drain at most one message in
//! the queue. So slow receivers occupy at most two instances per account, whatever waits: the attempts of a run may still
//! be under way when the next run begins.
//!
//! The row of a drain is its alarm clock. A row that is awake has a message on its way or somebody who runs it. A row
//! that sleeps is woken by whoever lets a delivery wait, or by `sweep` when its time has come.

use std::time::Duration;

use common::ids::{EndpointId, UserId};
use common::resources::SWEEP_PERIOD;
use common::store::StoreError;
use common::timestamp::Timestamp;

use crate::delivery::Token;
use crate::queues::{DrainCall, Queues, Unsent};
use crate::schedule::Schedule;
use crate::store::{WakeUp, WebhookStore};

/// How many attempts to one endpoint a drain makes at the same time.
pub const IN_FLIGHT: usize = 10;
/// For how long a run begins attempts. The last of them may take ten seconds more, and the run must end before the
/// function's time-out of 25 seconds.
pub const BEGIN_FOR: Duration = Duration::from_secs(12);
/// How often a run looks whether the drain was called again.
pub const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How many milliseconds a run waits before it looks again for what waits, after each look that found nothing new: the
/// index may lag. After the last of them it ends.
pub const PAUSES_MILLIS: [u64; 3] = [250, 500, 1_000];
/// How long a run begins nothing after a call that failed.
pub const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// How often it is measured which endpoints are full, in seconds.
pub const MEASURE_EVERY_SECONDS: u32 = 5 * 60;
/// An endpoint counts as prompt after this many prompt answers in a row, even if more of it still waits.
const PROVEN_AT: usize = 50;
/// How long a drain sleeps after a call, in seconds. Each sleep in which it is not called is followed by one that is four
/// times as long, up to [`MAX_SLEEP_SECONDS`]: so what the index shows late is found.
pub const MIN_SLEEP_SECONDS: u32 = 60;
/// The longest that the drain of an account with endpoints sleeps: six hours.
pub const MAX_SLEEP_SECONDS: u32 = 6 * 60 * 60;
/// For how long after a call the drain goes on to end the deliveries of a removed endpoint, in seconds: somebody may have
/// read the endpoint before it was removed, and the index may lag.
pub const REMOVED_FOR_SECONDS: u32 = 60 * 60;
/// A drain of which nothing was heard for this many seconds is called again, because its message was lost or its run has
/// died. A run takes less than the function's time-out of 25 seconds.
pub const LOST_SECONDS: u32 = 30;
/// A drain that a sweep has called is called again after this many seconds if that has come to nothing. The next sweep,
/// which calls a period early, leaves it alone.
pub const RECALL_SECONDS: u32 = SWEEP_PERIOD.as_secs() as u32 + 1;
/// An endpoint is full if this many of its first attempts wait, or if the oldest has waited for [`FULL_AFTER_SECONDS`].
/// New deliveries of a full endpoint are held.
pub const FULL_AT: u64 = 100_000;
/// A day, in seconds.
pub const FULL_AFTER_SECONDS: u32 = 24 * 60 * 60;

/// How much waits for an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    Full,
    /// Neither: a full endpoint stays full, and another does not become full.
    Between,
    /// Less than nine tenths of what makes an endpoint full.
    Eased,
}

/// Returns how much waits for an endpoint: this many first attempts, the oldest of them since then.
pub fn load(waiting: u64, oldest: Timestamp, full_after_seconds: u32, now: Timestamp) -> Load {
    let late = now.millis().saturating_sub(oldest.millis());
    let most = i64::from(full_after_seconds) * 1_000;
    if waiting >= FULL_AT || late >= most {
        Load::Full
    } else if waiting >= FULL_AT / 10 * 9 || late >= most / 10 * 9 {
        Load::Between
    } else {
        Load::Eased
    }
}

/// What a run has seen of an endpoint's answers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Proof {
    /// Whether an answer was slow.
    has_lagged: bool,
    /// How many have been prompt since then.
    prompt: usize,
}

impl Proof {
    /// Notes an answer.
    pub const fn note(&mut self, is_prompt: bool) {
        if is_prompt {
            self.prompt += 1;
        } else {
            (self.has_lagged, self.prompt) = (true, 0);
        }
    }

    /// Returns whether the endpoint has shown that it responds promptly. Less is enough if nothing of it waits.
    pub const fn is_enough(&self, is_idle: bool) -> bool {
        let enough = if self.has_lagged { IN_FLIGHT } else { 1 };
        self.prompt >= PROVEN_AT || self.prompt >= enough && is_idle
    }
}

/// The row of a drain as a run finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drain {
    pub account_id: UserId,
    /// What a message must carry to begin a run, and a run to change the row.
    pub token: Token,
    /// How often the drain was called for at once.
    pub calls: u64,
    /// When it was called last, at once or for later.
    pub called_at: Timestamp,
    /// Removed endpoints whose deliveries are still to be ended.
    pub removed: Vec<EndpointId>,
    /// When it was measured last which endpoints are full.
    pub measured_at: Timestamp,
}

impl Drain {
    /// Returns whether it was not called for this many seconds.
    pub fn is_uncalled_for(&self, seconds: u32, now: Timestamp) -> bool {
        self.called_at.plus_millis(i64::from(seconds) * 1_000) < now
    }
}

/// Returns when a drain that sleeps from now on wakes, if nothing is due before: in three times the time since it was
/// called last.
pub fn wakes_at(called_at: Timestamp, schedule: Schedule, now: Timestamp) -> Timestamp {
    let uncalled_for = now.millis().saturating_sub(called_at.millis());
    let [least, most] =
        [MIN_SLEEP_SECONDS, MAX_SLEEP_SECONDS].map(|seconds| i64::from(schedule.scaled(seconds)) * 1_000);
    now.plus_millis(uncalled_for.saturating_mul(3).clamp(least, most))
}

/// Calls the drains of accounts: first the row, then the queue. If the message cannot be sent, `sweep` sends it.
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

    /// Calls the drain of an account, because something waits that it must look at now.
    pub async fn call(&self, account_id: UserId, now: Timestamp) -> Result<(), StoreError> {
        let token = Token::random();
        if self.store.call_drain(account_id, token, self.lost_at(now), now).await? {
            self.send(DrainCall { account_id, token }).await;
        }
        Ok(())
    }

    /// Calls a drain whose wake-up comes, for when it is to run. A drain that is awake is called only once it is lost. Its
    /// wake-up moves first. If the message is lost, or the caller dies, the drain is called again then. Returns whether it
    /// was asleep, or `None` if its wake-up was moved before.
    pub async fn wake(&self, account_id: UserId, seen: &WakeUp, now: Timestamp) -> Result<Option<bool>, StoreError> {
        let at = seen.time().map_or(now, |at| at.max(now));
        let again_at = self.schedule.after(at, RECALL_SECONDS);
        let (token, is_asleep) = match self.store.wake_drain(account_id, seen, again_at).await? {
            Some(token) => (token, true),
            None if at > now => return Ok(None),
            None => match self.store.recall_drain(account_id, seen, again_at, now).await? {
                Some(token) => (token, false),
                None => return Ok(None),
            },
        };
        let delay = (at.millis() - now.millis()).unsigned_abs().div_ceil(1_000);
        let call = (DrainCall { account_id, token }, u32::try_from(delay).unwrap_or(u32::MAX));
        let sent = self.queues.call_drains(&[call]).await.into_iter().collect::<Result<(), _>>();
        sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
        Ok(Some(is_asleep))
    }

    /// Sends the message of a drain whose row has its token.
    pub async fn send(&self, call: DrainCall) {
        for unsent in self.queues.call_drains(&[(call, 0)]).await.into_iter().filter_map(Result::err) {
            tracing::warn!(account_id = %call.account_id, error = %unsent, "cannot call the drain");
        }
    }

    /// Sends the message of a drain again, with a delay in seconds.
    pub async fn postpone(&self, call: DrainCall, delay_seconds: u32) -> Result<(), Unsent> {
        self.queues.call_drains(&[(call, delay_seconds)]).await.into_iter().collect()
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
    fn an_endpoint_is_full_by_number_or_by_age_and_eases_below_nine_tenths() {
        let now = Timestamp::from_millis(10 * 86_400_000);
        let of = |waiting, hours: i64| load(waiting, now.plus_millis(-hours * 3_600_000), FULL_AFTER_SECONDS, now);
        assert_eq!([of(100_000, 0), of(1, 24)], [Load::Full; 2]);
        assert_eq!([of(99_999, 0), of(90_000, 0), of(1, 22)], [Load::Between; 3]);
        assert_eq!([of(89_999, 21), of(0, 0)], [Load::Eased; 2]);
    }

    #[test]
    fn an_endpoint_is_prompt_after_one_answer_after_ten_if_it_lagged_and_after_fifty_if_more_waits() {
        let seen = |answers: &[bool]| {
            let mut proof = Proof::default();
            for is_prompt in answers {
                proof.note(*is_prompt);
            }
            [proof.is_enough(true), proof.is_enough(false)]
        };
        assert_eq!([seen(&[]), seen(&[true]), seen(&[true; 49])], [[false; 2], [true, false], [true, false]]);
        assert_eq!(seen(&[true; 50]), [true; 2]);
        assert_eq!(seen(&[&[false][..], &[true; 9]].concat()), [false; 2]);
        assert_eq!(seen(&[&[false][..], &[true; 10]].concat()), [true, false]);
    }
}
