//! Latencies by distribution.

use std::f64::consts::TAU;
use std::time::Duration;

use fastrand::Rng;

/// How many standard deviations the 99th percentile of a normal distribution is from its mean.
const P99_DEVIATIONS: f64 = 2.326_347_874;

/// A log-normal distribution, by two of its quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub median: Duration,
    pub p99: Duration,
}

impl Latency {
    /// No latency beyond what the machine itself takes.
    pub const NONE: Self = Self::always(Duration::ZERO);

    /// Returns a latency that is always the same.
    pub const fn always(latency: Duration) -> Self {
        Self { median: latency, p99: latency }
    }

    /// Draws the latency of one call.
    pub(super) fn draw(self, random: &mut Rng) -> Duration {
        if self.p99 <= self.median || self.median.is_zero() {
            return self.median;
        }
        let median = self.median.as_secs_f64();
        let deviation = (self.p99.as_secs_f64() / median).ln() / P99_DEVIATIONS;
        let seconds = median * (deviation * normal(random)).exp();
        Duration::try_from_secs_f64(seconds).unwrap_or(self.p99)
    }
}

/// Draws from the standard normal distribution, by the method of Box and Muller.
fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Latency, Rng};

    #[test]
    fn half_of_the_draws_are_below_the_median_and_one_in_a_hundred_is_above_the_p99() {
        let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(20) };
        let mut random = Rng::with_seed(1);
        let draws: Vec<Duration> = (0..10_000).map(|_| latency.draw(&mut random)).collect();
        let below = draws.iter().filter(|draw| **draw < latency.median).count();
        let above = draws.iter().filter(|draw| **draw > latency.p99).count();
        assert!((4_800..5_200).contains(&below), "{below}");
        assert!((60..140).contains(&above), "{above}");
    }

    #[test]
    fn equal_quantiles_give_a_constant() {
        let mut random = Rng::with_seed(1);
        assert_eq!(Latency::NONE.draw(&mut random), Duration::ZERO);
        let constant = Latency::always(Duration::from_millis(5));
        assert_eq!(constant.draw(&mut random), Duration::from_millis(5));
    }
}
