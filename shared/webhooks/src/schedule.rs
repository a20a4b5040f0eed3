//! When a delivery is retried, and how an attempt waits until it is due.

use std::num::NonZeroU32;

use uuid::Uuid;

use common::ids::{DeliveryId, EndpointId, EventId};
use common::queues::MAX_DELAY_SECONDS;
use common::timestamp::Timestamp;

/// The delay between a failure and the retry after it (specification 6.8.1): the *k*-th delay is that of retry *k*.
pub const DELAYS_SECONDS: [u32; 6] = [30, 5 * 60, 30 * 60, 2 * 60 * 60, 6 * 60 * 60, 24 * 60 * 60];
/// Added to the delay of a parked retry. So the retry is not sent early (specification 6.8.2) if the clock of the host
/// that parks it and that of the host that makes it differ by at most this.
const SLACK_SECONDS: u32 = 60;

/// A message is taken for lost this many seconds after it was due.
const OVERDUE_SECONDS: u32 = 5 * 60;

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

/// How a retry waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// As an SQS message with a delay of at most [`MAX_DELAY_SECONDS`].
    Delayed { seconds: u32 },
    /// In the table, until the drain of its account makes the attempt.
    Parked {
        /// When the attempt may be made at the earliest, slack included.
        due: Timestamp,
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
    pub fn last_due(self, failed: u32, now: Timestamp) -> Timestamp {
        let due = |at, failed| self.after_failure(failed, at).map_or(at, |wait| wait.times(self, at).0);
        (failed..ATTEMPTS).fold(now, due)
    }

    /// Returns how a retry waits for this many seconds, which are scaled already.
    fn wait(self, seconds: u32, now: Timestamp) -> Wait {
        if seconds <= self.scaled(MAX_DELAY_SECONDS) {
            return Wait::Delayed { seconds };
        }
        Wait::Parked { due: plus_seconds(now, seconds + self.scaled(SLACK_SECONDS)) }
    }

    /// Returns the time a scaled number of seconds later.
    pub fn after(self, time: Timestamp, seconds: u32) -> Timestamp {
        plus_seconds(time, self.scaled(seconds))
    }

    /// Divides a number of seconds by the scale, rounded up.
    pub const fn scaled(self, seconds: u32) -> u32 {
        seconds.div_ceil(self.scale.get())
    }
}

impl Wait {
    /// Returns when the attempt is due, and from when on a drain makes it.
    pub fn times(self, schedule: Schedule, now: Timestamp) -> (Timestamp, Timestamp) {
        match self {
            Self::Delayed { seconds } => {
                let due = plus_seconds(now, seconds);
                (due, overdue_at(schedule, due))
            }
            Self::Parked { due } => (due, due),
        }
    }
}

/// Returns when to take for lost a message that is due at `due`.
pub fn overdue_at(schedule: Schedule, due: Timestamp) -> Timestamp {
    schedule.after(due, OVERDUE_SECONDS)
}

/// Returns the id of an event's delivery to an endpoint (specification 6.6.2). It is the same however often the event
/// arrives.
pub fn delivery_id(event: EventId, endpoint: EndpointId) -> DeliveryId {
    Uuid::new_v5(&event.uuid(), endpoint.to_string().as_bytes()).into()
}

fn plus_seconds(time: Timestamp, seconds: u32) -> Timestamp {
    time.plus_millis(i64::from(seconds) * 1_000)
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

    fn parked(due: i64) -> Wait {
        Wait::Parked { due: at(due) }
    }

    #[test]
    fn retries_follow_the_specification() {
        let expected = [delayed(30), delayed(300), parked(1_860), parked(7_260), parked(21_660), parked(86_460)];
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
        assert_eq!([1, 29, 30, 31].map(|scale| schedule(scale).scaled(30)), [30, 2, 1, 1]);
    }

    #[test]
    fn a_delivery_id_is_the_uuid_v5_of_event_and_endpoint() {
        let event = "6f9619ff-8b86-d011-b42d-00c04fc964ff".parse().unwrap();
        let endpoint = "0B5E7A52-6F3D-5C1E-9D0A-3F6A1B2C4D5E".parse().unwrap();
        assert_eq!(delivery_id(event, endpoint).to_string(), "11b8a653-fc28-5781-abb6-69448af70feb");
    }

    proptest! {
        /// A sweep looks once a minute whether the drain of an account is to run. The clocks of the host that parks a
        /// retry and of the one that makes it are wrong by up to 30 s, in either direction.
        #[test]
        fn no_retry_is_early_and_none_much_late(failed in 1..ATTEMPTS, by in -30_i64..=30, drain_by in -30_i64..=30, late in 0_i64..60) {
            let wanted = i64::from(DELAYS_SECONDS[failed as usize - 1]);
            let made_after = match schedule(1).after_failure(failed, at(by)).unwrap() {
                Wait::Delayed { seconds } => i64::from(seconds),
                Wait::Parked { due } => due.seconds() - drain_by + late,
            };
            prop_assert!((wanted..=wanted + 180).contains(&made_after), "{made_after} instead of {wanted}");
        }
    }
}
