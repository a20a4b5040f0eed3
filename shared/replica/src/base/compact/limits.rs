//! When what is due, what a rebuild may take, and the pace at which it reads.

use std::time::Duration;

use common::resources::REBUILD_READ_UNITS;
use tokio::time::Instant;

/// Bounds of a rebuild.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RebuildLimits {
    /// How many bytes of records are held in memory to be sorted, by estimate. While sorted runs are merged, they and
    /// the log take as much each.
    pub buffer_bytes: usize,
    /// How many read units the entities may take a second. One is a strongly consistent read of 4 KB.
    pub read_units_per_second: u32,
    /// After this time a run leaves the rest to the next one.
    pub slice: Duration,
}

/// When deltas and folds are due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thresholds {
    /// A delta is due if more changes than this lie behind base and deltas. A fold is due if the deltas have more ...
    pub min_changes: u64,
    /// ... and more than the base's number of records divided by this.
    pub records_per_change: u64,
    /// If a base has this many deltas, the next one takes them in.
    pub max_deltas: usize,
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { min_changes: 1_000, records_per_change: 10, max_deltas: 16 }
    }
}

impl RebuildLimits {
    /// Returns limits for a rebuild in one run, as fast as the store answers.
    pub fn at_once() -> Self {
        Self { read_units_per_second: u32::MAX, slice: Duration::MAX, ..Self::default() }
    }
}

impl Default for RebuildLimits {
    fn default() -> Self {
        Self {
            buffer_bytes: 512 * 1_024 * 1_024,
            read_units_per_second: REBUILD_READ_UNITS,
            // The two streams together take two thirds of the function's time-out.
            slice: Duration::from_mins(5),
        }
    }
}

/// Spreads reads evenly over time, so that they leave the table's throughput to others.
pub(super) struct Pacer {
    units_per_second: f64,
    free_at: Instant,
}

impl Pacer {
    pub(super) fn new(units_per_second: u32) -> Self {
        Self { units_per_second: f64::from(units_per_second.max(1)), free_at: Instant::now() }
    }

    /// Waits until what was read before has had its time.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep_until(self.free_at).await;
        self.free_at = self.free_at.max(Instant::now());
    }

    /// Counts what a read has taken.
    pub(super) fn spent(&mut self, units: f64) {
        self.free_at += Duration::try_from_secs_f64(units / self.units_per_second).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reads_take_no_more_units_a_second_than_they_may() {
        let began = Instant::now();
        let mut pacer = Pacer::new(100);
        for _ in 0..5 {
            pacer.wait().await;
            // A quarter of the time that the units allow.
            tokio::time::sleep(Duration::from_millis(500)).await;
            pacer.spent(200.0);
        }
        pacer.wait().await;
        assert_eq!(began.elapsed().as_secs(), 10);
        tokio::time::sleep(Duration::from_mins(1)).await;
        for _ in 0..2 {
            pacer.wait().await;
            pacer.spent(200.0);
        }
        pacer.wait().await;
        assert_eq!(began.elapsed().as_secs(), 10 + 60 + 4, "a pause saves nothing up");
    }
}
