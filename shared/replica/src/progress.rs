//! How far a replica has read its log, and how the next Query should read it.
//!
//! A strongly consistent Query proves that the replica is up to date: it shows everything that was acknowledged before
//! it was sent. An eventually consistent one costs half, but may miss what was written within about the last second, so
//! it proves nothing. A replica whose log grows fast therefore reads in two steps, in two requests, so that each request
//! makes one Query at most:
//!
//! 1. As soon as a Query is due, an eventually consistent one reads the bulk of the log.
//! 2. The next request reads the little that came since, strongly consistently.
//!
//! Between the two, the replica answers from a state that is proved to be less than two seconds old.

use std::time::Duration;

use common::clock::{Clock, Moment};
use market::LogPosition;

/// A Query is due this long after the last strongly consistent one was sent that saw the end of the log.
const QUERY_INTERVAL: Duration = Duration::from_secs(1);
/// From this age of the replica on, only a strongly consistent Query will do. Half a second is left for it.
const LATEST_BULK: Duration = Duration::from_millis(1_500);
/// From this many changes on, the two Queries cost no more than one. A change to a listing takes about 100 bytes, so a
/// strongly consistent Query of these takes two read units. The two take one for the bulk, and one for the rest.
const MIN_BULK_CHANGES: u64 = 64;

/// How far a replica has read its log.
pub(super) struct Progress {
    pub(super) position: LogPosition,
    /// When the last strongly consistent Query was sent that saw the end of the log.
    pub(super) caught_up: Moment,
    /// How many changes the log had then.
    changes_then: u64,
    bulk: Bulk,
}

/// Whether an eventually consistent Query should read the bulk of the log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bulk {
    /// Few changes come, so one Query reads them.
    Small,
    Unread,
    /// It has been read since the replica was last caught up.
    Read,
}

impl Progress {
    /// Begins at the end of the log, as a Query saw it that was sent at `sent`.
    pub(super) fn new(position: LogPosition, sent: Moment) -> Self {
        Self { position, caught_up: sent, changes_then: position.changes, bulk: Bulk::Small }
    }

    /// Notes that a strongly consistent Query, which was sent at `sent`, saw the end of the log.
    pub(super) fn catch_up(&mut self, sent: Moment) {
        let changes = self.position.changes.saturating_sub(self.changes_then);
        self.bulk = if changes < MIN_BULK_CHANGES { Bulk::Small } else { Bulk::Unread };
        self.caught_up = sent;
        self.changes_then = self.position.changes;
    }

    /// Notes that the bulk has been read.
    pub(super) fn read_bulk(&mut self) {
        self.bulk = Bulk::Read;
    }

    /// Returns whether a Query is due.
    pub(super) fn is_query_due(&self, clock: &dyn Clock) -> bool {
        !self.is_within(QUERY_INTERVAL, clock)
    }

    /// Returns whether the Query that is due should read the bulk of the log.
    pub(super) fn is_bulk_due(&self, clock: &dyn Clock) -> bool {
        self.bulk == Bulk::Unread && self.is_query_due(clock) && self.is_within(LATEST_BULK, clock)
    }

    /// Returns whether both clocks say that the replica holds everything that was acknowledged this long ago.
    pub(super) fn is_within(&self, age: Duration, clock: &dyn Clock) -> bool {
        self.caught_up.is_within(age, clock)
    }

    /// Returns how old the replica may be at most.
    pub(super) fn age(&self, clock: &dyn Clock) -> Duration {
        self.caught_up.age(clock)
    }
}

#[cfg(test)]
mod tests {
    use common::clock::ManualClock;
    use common::timestamp::Timestamp;

    use super::*;

    /// Returns the progress of a replica that has just caught up for the second time, with this many changes in between.
    fn progress(changes: u64, clock: &ManualClock) -> Progress {
        let mut progress = Progress::new(LogPosition { seq: 7, changes: 1_000 }, Moment::now(clock));
        progress.position.changes += changes;
        progress.catch_up(Moment::now(clock));
        progress
    }

    fn clock() -> ManualClock {
        ManualClock::at(Timestamp::from_millis(1_000_000))
    }

    #[test]
    fn the_bulk_is_read_once_between_a_second_and_one_and_a_half() {
        for (millis, is_due) in [(0, false), (999, false), (1_000, true), (1_499, true), (1_500, false)] {
            let clock = clock();
            let mut progress = progress(MIN_BULK_CHANGES, &clock);
            clock.advance(Duration::from_millis(millis));
            assert_eq!(progress.is_bulk_due(&clock), is_due, "after {millis} ms");
            progress.read_bulk();
            assert!(!progress.is_bulk_due(&clock));
            assert_eq!(progress.is_query_due(&clock), millis >= 1_000, "reading the bulk proves nothing");
        }
    }

    #[test]
    fn a_log_that_grows_slowly_has_no_bulk() {
        let clock = clock();
        let mut progress = progress(MIN_BULK_CHANGES - 1, &clock);
        clock.advance(QUERY_INTERVAL);
        assert!(progress.is_query_due(&clock) && !progress.is_bulk_due(&clock));

        progress.position.changes += MIN_BULK_CHANGES;
        progress.catch_up(Moment::now(&clock));
        clock.advance(QUERY_INTERVAL);
        assert!(progress.is_bulk_due(&clock), "it grows faster now");
    }

    #[test]
    fn only_a_strong_query_will_do_if_the_wall_clock_went_back() {
        let clock = clock();
        let progress = progress(MIN_BULK_CHANGES, &clock);
        clock.set_wall(Timestamp::from_millis(1));
        assert!(progress.is_query_due(&clock) && !progress.is_bulk_due(&clock));
    }
}
