//! When a delivery is retried, and how an attempt waits until it is due.

use std::num::NonZeroU32;

use uuid::Uuid;

use queues::MAX_DELAY_SECONDS;
use types::ids::{DeliveryId, EndpointId, EventId};
use types::timestamp::Timestamp;

/// The delay between a failure and the retry after it (specification 6.8.1): the *k*-th delay is that of retry *k*.
const DELAYS_SECONDS: [u32; 6] = [30, 5 * 60, 30 * 60, 2 * 60 * 60, 6 * 60 * 60, 24 * 60 * 60];
/// How long before a parked attempt is due (slack included) its message can be sent. It is a minute less than SQS can
/// delay a message, and long enough for a sweep that runs every minute to find each attempt in time.
const LEAD_SECONDS: u32 = MAX_DELAY_SECONDS - 60;
/// Added to the delay of a parked retry. So the retry is not sent early (specification 6.8.2) if the clock of the host
/// that parks it and that of the host that sweeps it differ by at most this.
const SLACK_SECONDS: u32 = 60;

/// A message is taken for lost this many seconds after it was due.
const OVERDUE_SECONDS: u32 = 5 * 60;
/// The interval doubles each time that the message is sent again, but at most this many times. It ends at about 21
/// hours.
const MAX_DOUBLINGS: u32 = 8;

/// The number of attempts in a round.
pub const ATTEMPTS: u32 = 1 + DELAYS_SECONDS.len() as u32;
/// The attempt of a round that falls 36 minutes in. Once it has failed, the owner is warned (specification 6.9.7). If
/// that does not come about, the failure of a later one warns.
pub(crate) const WARNING_ATTEMPT: u32 = 4;

/// The retry times. For development and tests they are divided by a scale, which is 1 in deployments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    scale: NonZeroU32,
}

/// How an attempt waits: a retry, or an attempt that found no place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As an SQS message with a delay of at most [`MAX_DELAY_SECONDS`].
    Delayed { seconds: u32 },
    /// In the table, until `sweep` sends its message.
    Parked {
        /// When the attempt may be made at the earliest, slack included.
        due: Timestamp,
        /// From this time on `sweep` sends the message, with the delay that `delay_until` returns.
        wake_at: Timestamp,
    },
}

impl Default for Schedule {
    /// Returns the times of specification 6.8.1.
    fn default() -> Self {
        Self::scaled_by(NonZeroU32::MIN)
    }
}

impl Schedule {
    /// Returns the times of specification 6.8.1 divided by `scale`, each rounded up to a whole second.
    pub const fn scaled_by(scale: NonZeroU32) -> Self {
        Self { scale }
    }

    /// Returns how the next retry waits after attempt `failed` of a round (from 1) has failed at `now`, or `None`
    /// if that was the last attempt.
    pub fn after_failure(self, failed: u32, now: Timestamp) -> Option<Wait> {
        let retry = usize::try_from(failed.checked_sub(1)?).ok()?;
        Some(self.wait(self.scaled(*DELAYS_SECONDS.get(retry)?), now))
    }

    /// Returns when the last attempt of a round is due after attempt `failed` (from 1) has failed at `now`. Each later
    /// attempt is taken to be made when it is due, and to fail at once.
    pub(crate) fn last_due(self, failed: u32, now: Timestamp) -> Timestamp {
        let due = |at, failed| self.after_failure(failed, at).map_or(at, |wait| wait.times(self, at).0);
        (failed..ATTEMPTS).fold(now, due)
    }

    /// Returns how something waits for this many seconds, which are scaled already.
    pub fn wait(self, seconds: u32, now: Timestamp) -> Wait {
        if seconds <= self.scaled(MAX_DELAY_SECONDS) {
            return Wait::Delayed { seconds };
        }
        let due = plus_seconds(now, seconds + self.scaled(SLACK_SECONDS));
        Wait::Parked { due, wake_at: due.plus_millis(-millis(self.scaled(LEAD_SECONDS))) }
    }

    /// Divides a number of seconds by the scale, rounded up.
    pub const fn scaled(self, seconds: u32) -> u32 {
        seconds.div_ceil(self.scale.get())
    }
}

impl Wait {
    /// Returns when the attempt is due, and when a sweep must look at it.
    pub(crate) fn times(self, schedule: Schedule, now: Timestamp) -> (Timestamp, Timestamp) {
        match self {
            Self::Delayed { seconds } => {
                let due = plus_seconds(now, seconds);
                (due, overdue_at(schedule, due, 0))
            }
            Self::Parked { due, wake_at } => (due, wake_at),
        }
    }
}

/// Returns when to take for lost a message that is due at `due` and has been sent again `resent` times.
pub fn overdue_at(schedule: Schedule, due: Timestamp, resent: u32) -> Timestamp {
    let seconds = i64::from(schedule.scaled(OVERDUE_SECONDS)) << resent.min(MAX_DOUBLINGS);
    due.plus_millis(seconds * 1_000)
}

/// Returns the delay of a parked attempt's message in whole seconds, rounded up. It is 0 if the attempt is due. Returns
/// `None` if it is longer than an SQS message can wait.
pub(crate) fn delay_until(due: Timestamp, now: Timestamp) -> Option<u32> {
    let millis = due.millis().saturating_sub(now.millis()).max(0);
    let seconds = u32::try_from(millis.unsigned_abs().div_ceil(1_000)).ok()?;
    (seconds <= MAX_DELAY_SECONDS).then_some(seconds)
}

/// Returns the id of an event's delivery to an endpoint (specification 6.6.2). It is the same however often the event
/// arrives.
pub fn delivery_id(event: EventId, endpoint: EndpointId) -> DeliveryId {
    Uuid::new_v5(&event.uuid(), endpoint.to_string().as_bytes()).into()
}

fn plus_seconds(time: Timestamp, seconds: u32) -> Timestamp {
    time.plus_millis(millis(seconds))
}

fn millis(seconds: u32) -> i64 {
    i64::from(seconds) * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn schedule(scale: u32) -> Schedule {
        Schedule::scaled_by(NonZeroU32::new(scale).unwrap())
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    const fn delayed(seconds: u32) -> Wait {
        Wait::Delayed { seconds }
    }

    fn parked(due: i64, wake_at: i64) -> Wait {
        Wait::Parked { due: at(due), wake_at: at(wake_at) }
    }

    #[test]
    fn retries_follow_the_specification() {
        let expected = [
            delayed(30),
            delayed(300),
            parked(1_860, 1_020),
            parked(7_260, 6_420),
            parked(21_660, 20_820),
            parked(86_460, 85_620),
        ];
        let waits = [1, 2, 3, 4, 5, 6].map(|failed| schedule(1).after_failure(failed, at(0)));
        assert_eq!(waits, expected.map(Some));
        assert_eq!([0, 7, 8].map(|failed| schedule(1).after_failure(failed, at(0))), [None; 3]);
        assert_eq!(ATTEMPTS, 7);
    }

    #[test]
    fn the_owner_is_warned_after_36_minutes_and_32_hours_before_the_last_attempt() {
        let earlier = DELAYS_SECONDS[..WARNING_ATTEMPT as usize - 1].iter().sum::<u32>();
        assert_eq!(earlier.div_ceil(60), 36);
        assert_eq!(schedule(1).last_due(WARNING_ATTEMPT, at(0)), at(32 * 60 * 60 + 3 * 60));
        assert_eq!(schedule(1).last_due(ATTEMPTS, at(0)), at(0));
    }

    #[test]
    fn scaled_times_are_rounded_up_to_whole_seconds() {
        let expected = [delayed(1), delayed(1), parked(3, 2), parked(9, 8), parked(23, 22), parked(88, 87)];
        let waits = [1, 2, 3, 4, 5, 6].map(|failed| schedule(1_000).after_failure(failed, at(0)));
        assert_eq!(waits, expected.map(Some));
        assert_eq!([1, 29, 30, 31].map(|scale| schedule(scale).scaled(30)), [30, 2, 1, 1]);
    }

    #[test]
    fn a_message_waits_until_a_retry_is_due_and_never_longer_than_it_can() {
        let due = Timestamp::from_millis(1_000_000);
        let delay = |now| delay_until(due, Timestamp::from_millis(now));
        assert_eq!([1_000_001, 1_000_000, 999_999, 998_999, 100_000].map(delay), [0, 0, 1, 2, 900].map(Some));
        assert_eq!([99_999, 0, i64::MIN].map(delay), [None; 3]);
    }

    #[test]
    fn a_delivery_id_is_the_uuid_v5_of_event_and_endpoint() {
        let event = "6f9619ff-8b86-d011-b42d-00c04fc964ff".parse().unwrap();
        let endpoint = "0B5E7A52-6F3D-5C1E-9D0A-3F6A1B2C4D5E".parse().unwrap();
        assert_eq!(delivery_id(event, endpoint).to_string(), "11b8a653-fc28-5781-abb6-69448af70feb");
    }

    proptest! {
        /// A sweep looks at a parked retry once a minute. The clocks of the host that parks it and of the one that
        /// sweeps it are wrong by up to 30 s, in either direction.
        #[test]
        fn no_retry_is_early_and_none_much_late(failed in 1_u32..=6, by in -30_i64..=30, sweep_by in -30_i64..=30, late in 0_i64..60) {
            let wanted = [30, 300, 1_800, 7_200, 21_600, 86_400][failed as usize - 1];
            let sent_after = match schedule(1).after_failure(failed, at(by)).unwrap() {
                Wait::Delayed { seconds } => i64::from(seconds),
                Wait::Parked { due, wake_at } => {
                    let seen = wake_at.plus_millis(late * 1_000);
                    let delay = delay_until(due, seen).expect("SQS can delay it that long");
                    seen.seconds() - sweep_by + i64::from(delay)
                }
            };
            prop_assert!((wanted..=wanted + 120).contains(&sent_after), "{sent_after} instead of {wanted}");
        }
    }
}
