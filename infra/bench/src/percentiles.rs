//! Percentiles of many samples.

use std::time::Duration;

use serde::Serialize;

/// Percentiles of durations, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize)]
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
        assert_eq!(Percentiles::from_samples(Vec::new()).samples, 0);
    }
}
