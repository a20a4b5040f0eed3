//! Time as the service sees it. Nothing else in the project asks the operating system what time it is.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use super::timestamp::Timestamp;

/// A wall clock and a monotonic clock.
pub trait Clock: Send + Sync {
    /// The wall clock's time. It names rate-limit minutes and stamps records. It may be set back.
    fn now(&self) -> Timestamp;
    /// The time since some fixed point. It never goes back, but it may stand still while a function is frozen.
    fn monotonic(&self) -> Duration;
}

/// An answer never shows a state that is older than this (specification 1.3.1).
pub const MAX_STALENESS: Duration = Duration::from_secs(2);

/// A point in time by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    wall: Timestamp,
    monotonic: Duration,
}

impl Moment {
    /// Reads both clocks.
    pub fn now(clock: &dyn Clock) -> Self {
        Self { wall: clock.now(), monotonic: clock.monotonic() }
    }

    /// How long ago this moment was, by the clock that shows more.
    pub fn age(self, clock: &dyn Clock) -> Duration {
        let now = Self::now(clock);
        let by_wall = u64::try_from(now.wall.millis() - self.wall.millis()).unwrap_or_default();
        now.monotonic.saturating_sub(self.monotonic).max(Duration::from_millis(by_wall))
    }

    /// Returns whether less than `age` has passed since this moment by *both* clocks, and the wall clock has not gone
    /// back. The monotonic clock alone would not do: it may stand still while the instance is frozen.
    pub fn is_within(self, age: Duration, clock: &dyn Clock) -> bool {
        let now = Self::now(clock);
        let millis = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let by_wall = now.wall.millis() - self.wall.millis();
        now.monotonic.saturating_sub(self.monotonic) < age && (0..millis).contains(&by_wall)
    }

    /// Returns by how much the two clocks have moved apart since this moment. The wall clock is ahead if the instance
    /// was frozen meanwhile, or if the clock was set.
    pub fn drift(self, clock: &dyn Clock) -> Duration {
        let now = Self::now(clock);
        let by_monotonic = now.monotonic.saturating_sub(self.monotonic).as_millis();
        let by_wall = now.wall.millis() - self.wall.millis();
        Duration::from_millis(by_wall.abs_diff(i64::try_from(by_monotonic).unwrap_or(i64::MAX)))
    }
}

/// The machine's clocks, with the wall clock shifted by a fixed offset.
#[derive(Debug)]
pub struct SystemClock {
    offset_millis: i64,
    started: Instant,
}

impl SystemClock {
    /// The machine's time as it is.
    pub fn new() -> Self {
        Self::with_offset_seconds(0)
    }

    /// A clock that is wrong by this many seconds, to test that nothing breaks.
    pub fn with_offset_seconds(seconds: i64) -> Self {
        Self { offset_millis: seconds.saturating_mul(1_000), started: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock")]
    fn now(&self) -> Timestamp {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let millis = i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(millis.saturating_add(self.offset_millis))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until it is moved. Its wall clock can also be set alone.
#[derive(Debug)]
pub struct ManualClock {
    wall: AtomicI64,
    monotonic_millis: AtomicU64,
}

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { wall: AtomicI64::new(now.millis()), monotonic_millis: AtomicU64::new(0) }
    }

    /// Moves both clocks forwards.
    pub fn advance(&self, by: Duration) {
        let millis = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        self.monotonic_millis.fetch_add(millis, Ordering::SeqCst);
        self.wall.fetch_add(i64::try_from(millis).unwrap_or(i64::MAX), Ordering::SeqCst);
    }

    /// Sets the wall clock alone, forwards or back.
    pub fn set_wall(&self, now: Timestamp) {
        self.wall.store(now.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall.load(Ordering::SeqCst))
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.monotonic_millis.load(Ordering::SeqCst))
    }
}
