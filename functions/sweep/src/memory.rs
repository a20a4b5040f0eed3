//! What an instance remembers of a backlog, so that it does not read all of it in every run.
//!
//! While a queue is behind, runs leave overdue deliveries where they are. They stay at the head of the index, and each
//! run would read them again to find what comes after them. So an instance remembers up to where it has read, and
//! begins there as long as the queue is behind.
//!
//! Such a run misses wake-ups that are written into the part that was read before. An overdue delivery would have been
//! left all the same. The wake-up of a parked attempt is written at least two minutes before it comes. That of a notice
//! that a repair puts back comes at once. So the memory ends two minutes before the present, which allows for clocks and
//! an index that are a minute late each. Whatever is written even later is found when the queue is no longer behind, and
//! after ten minutes at the latest: then a run reads everything. That is in time for a parked attempt, whose message is
//! sent fourteen minutes before it is due.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use types::timestamp::Timestamp;
use webhooks::Schedule;

const MARGIN_SECONDS: u32 = 2 * 60;
const REREAD_SECONDS: u32 = 10 * 60;

/// The parts of the shards that need not be read again. It is lost with the instance, and then everything is read once
/// more.
#[derive(Default)]
pub(crate) struct Memory(Mutex<BTreeMap<u32, Passed>>);

/// The part of a shard that was read, and in which only overdue deliveries are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    /// The part ends before this wake-up.
    pub(crate) end: Timestamp,
    /// How many overdue deliveries were left in it.
    pub(crate) waiting: u64,
    /// When a run last began at the beginning of the shard.
    read_at: Timestamp,
}

impl Memory {
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    /// Returns the part of a shard that a run which begins now need not read.
    pub(crate) fn passed(&self, shard: u32, schedule: Schedule, now: Timestamp) -> Passed {
        let passed = self.lock().get(&shard).copied();
        passed.filter(|passed| passed.is_current(schedule, now)).unwrap_or_else(|| Passed::nothing(now))
    }

    /// Remembers the part of a shard, or forgets it if nothing was left there.
    pub(crate) fn remember(&self, shard: u32, passed: Passed) {
        if passed.waiting > 0 {
            self.lock().insert(shard, passed);
        } else {
            self.forget(shard);
        }
    }

    pub(crate) fn forget(&self, shard: u32) {
        self.lock().remove(&shard);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Passed>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Passed {
    fn nothing(now: Timestamp) -> Self {
        Self { end: Timestamp::from_millis(0), waiting: 0, read_at: now }
    }

    /// Returns whether it was read a short time ago. If the clock has gone back, nobody knows.
    fn is_current(self, schedule: Schedule, now: Timestamp) -> bool {
        let read_again_at = after(self.read_at, schedule.scaled(REREAD_SECONDS));
        (self.read_at..read_again_at).contains(&now) && self.end <= now
    }

    /// Returns the part after a run that began at `begin` and read all wake-ups before `end`. `left` are the wake-ups of
    /// the overdue deliveries that it left.
    pub(crate) fn extended(self, schedule: Schedule, begin: Timestamp, end: Timestamp, left: &[Timestamp]) -> Self {
        let settled = begin.plus_millis(-millis(schedule.scaled(MARGIN_SECONDS)));
        let end = self.end.max(end.min(settled));
        let newly = left.iter().filter(|wake_at| **wake_at < end).count() as u64;
        Self { end, waiting: self.waiting + newly, ..self }
    }
}

fn after(time: Timestamp, seconds: u32) -> Timestamp {
    time.plus_millis(millis(seconds))
}

fn millis(seconds: u32) -> i64 {
    i64::from(seconds) * 1_000
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 12 * 60 * 60;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn read(memory: &Memory, now: i64) -> Passed {
        memory.passed(0, Schedule::default(), at(now))
    }

    /// Runs once at `now`, up to `end`, and leaves deliveries with these wake-ups.
    fn run(memory: &Memory, now: i64, end: i64, left: &[i64]) {
        let left: Vec<Timestamp> = left.iter().map(|seconds| at(*seconds)).collect();
        memory.remember(0, read(memory, now).extended(Schedule::default(), at(now), at(end), &left));
    }

    #[test]
    fn what_was_left_is_passed_except_the_last_two_minutes() {
        let memory = Memory::default();
        run(&memory, NOON, NOON, &[NOON - 121, NOON - 121, NOON - 120]);
        let passed = read(&memory, NOON + 60);
        assert_eq!((passed.end, passed.waiting), (at(NOON - 120), 2));
        // The next run meets the third one again, and one that is new.
        run(&memory, NOON + 60, NOON + 60, &[NOON - 120, NOON - 61, NOON]);
        let passed = read(&memory, NOON + 120);
        assert_eq!((passed.end, passed.waiting), (at(NOON - 60), 4));
        assert_eq!(memory.passed(1, Schedule::default(), at(NOON)).waiting, 0);
    }

    #[test]
    fn a_run_that_was_cut_short_is_continued() {
        let memory = Memory::default();
        run(&memory, NOON, NOON - 1_000, &[NOON - 2_000, NOON - 1_000]);
        let passed = read(&memory, NOON + 60);
        assert_eq!((passed.end, passed.waiting), (at(NOON - 1_000), 1));
    }

    #[test]
    fn everything_is_read_again_after_ten_minutes_and_when_the_clock_has_gone_back() {
        let memory = Memory::default();
        for minute in 0..10 {
            run(&memory, NOON + minute * 60, NOON + minute * 60, &[NOON - 1_000][..usize::from(minute == 0)]);
            assert_eq!(read(&memory, NOON + minute * 60).waiting, 1, "{minute}");
        }
        assert_eq!(read(&memory, NOON + 600), Passed::nothing(at(NOON + 600)));
        assert_eq!(read(&memory, NOON - 1), Passed::nothing(at(NOON - 1)));
    }

    #[test]
    fn nothing_is_remembered_of_a_shard_without_a_backlog() {
        let memory = Memory::default();
        run(&memory, NOON, NOON, &[]);
        assert!(memory.is_empty());
        run(&memory, NOON, NOON, &[NOON - 1_000]);
        assert!(!memory.is_empty());
        memory.clear();
        assert_eq!(read(&memory, NOON), Passed::nothing(at(NOON)));
    }
}
