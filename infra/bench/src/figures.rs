//! What was measured: percentiles and ratios, and how numbers are shown.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use terminal::Bar;

/// Percentiles of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Percentiles {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) samples: usize,
}

impl Percentiles {
    /// Computes the percentiles of samples, which may be in any order.
    pub(crate) fn from_samples(mut samples: Vec<Duration>) -> Self {
        samples.sort_unstable();
        Self { p50_us: at(&samples, 50), p99_us: at(&samples, 99), samples: samples.len() }
    }
}

/// Returns the smallest sample that at least `percent` percent of all samples do not exceed, in microseconds.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).map_or(0.0, |sample| sample.as_secs_f64() * 1e6)
}

/// The median of several ratios of runs that took turns, and how far they are apart.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Ratios {
    median: f64,
    smallest: f64,
    largest: f64,
}

impl Ratios {
    /// Takes the ratios in any order. Without any, the result is not a number.
    pub(crate) fn new(ratios: impl IntoIterator<Item = f64>) -> Self {
        let mut ratios: Vec<f64> = ratios.into_iter().collect();
        ratios.sort_unstable_by(f64::total_cmp);
        let at = |index: usize| ratios.get(index).copied().unwrap_or(f64::NAN);
        let last = ratios.len().saturating_sub(1);
        Self { median: f64::midpoint(at(last / 2), at(ratios.len() / 2)), smallest: at(0), largest: at(last) }
    }
}

impl fmt::Display for Ratios {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2} (from {:.2} to {:.2})", self.median, self.smallest, self.largest)
    }
}

/// Turns an error into its text.
pub(crate) fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

/// Formats a number, with one decimal below ten and none above.
pub(crate) fn number(value: f64) -> String {
    if value.abs() < 9.95 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Formats bytes as megabytes.
pub(crate) fn megabytes(bytes: u64) -> String {
    number(bytes as f64 / 1e6)
}

/// Shows a progress bar.
pub(crate) fn bar(what: &'static str, length: u64) -> Bar {
    let bar = Bar::new("{msg:28} {bar:12} {human_pos} of {human_len}, {per_sec}{left}", length);
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_a_sample() {
        let millis = |range: std::ops::RangeInclusive<u64>| range.rev().map(Duration::from_millis).collect();
        let of_hundred = Percentiles::from_samples(millis(1..=100));
        assert_eq!((of_hundred.p50_us, of_hundred.p99_us), (50_000.0, 99_000.0));
        let of_three = Percentiles::from_samples(millis(1..=3));
        assert_eq!((of_three.p50_us, of_three.p99_us), (2_000.0, 3_000.0));
    }

    #[test]
    fn the_median_is_the_middle_or_halfway_between_the_two_in_the_middle() {
        assert_eq!(Ratios::new([2.0, 0.5, 1.0]), Ratios { median: 1.0, smallest: 0.5, largest: 2.0 });
        assert_eq!(Ratios::new([4.0, 1.0, 2.0, 1.0]), Ratios { median: 1.5, smallest: 1.0, largest: 4.0 });
    }

    #[test]
    fn small_numbers_have_a_decimal() {
        assert_eq!([0.04, 9.94, 9.96, 1_234.5].map(number), ["0.0", "9.9", "10", "1234"]);
    }
}
