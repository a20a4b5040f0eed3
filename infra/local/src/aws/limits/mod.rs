//! What the emulated DynamoDB and S3 admit, and how long they take to answer.

mod limiter;
mod report;

use std::f64::consts::TAU;
use std::time::Duration;

use fastrand::Rng;

pub use limiter::Limiter;
pub use report::{Access, ObjectReport, Reason, Refusal, Report, Resource, Units, Use, print_refusals};

/// What DynamoDB and S3 admit, and how long they take. Under any limits, transactions conflict if they meet, and reads
/// may see half of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// What one partition key of a table or index admits. AWS puts many keys on one partition; here each has its
    /// throughput to itself.
    pub partition: Throughput,
    /// What a whole table or index admits.
    pub table: Throughput,
    /// The only table whose throughput is limited. If there is none, that of every table is.
    pub only_table: Option<&'static str>,
    /// How long a call takes that is not a transaction.
    pub latency: Latency,
    /// How long a transaction takes. It is applied after half of this time.
    pub transaction_latency: Latency,
    /// Eventually consistent queries and scans may miss what a transaction wrote for up to this long after it was
    /// acknowledged, each of its rows for another time.
    pub lag: Duration,
    pub objects: ObjectLimits,
    /// Everything random comes from this seed.
    pub seed: u64,
}

/// What S3 admits, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectLimits {
    /// How many requests of one prefix may read. The text before the first `/` of a key is its prefix.
    pub gets: Rate,
    /// How many requests of one prefix may write.
    pub puts: Rate,
    /// How long it takes until the first byte of an answer.
    pub first_byte: Latency,
    /// How many bytes of an object one connection moves in a second.
    pub bytes_per_second: f64,
}

/// Read units and write units, as DynamoDB defines them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Throughput {
    pub read: Rate,
    pub write: Rate,
}

/// How fast a token bucket fills, and how much it holds. At first it is full.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Units per second.
    pub per_second: f64,
    /// Units that a full bucket holds.
    pub burst: f64,
}

/// A log-normal distribution of latencies, by two of its quantiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    pub median: Duration,
    pub p99: Duration,
}

impl Limits {
    /// The limits of a new on-demand table. The throughput is as AWS documents it. The latencies and the lag are an
    /// assumption, because AWS promises only milliseconds, and a lag of usually less than a second.
    pub const fn aws() -> Self {
        Self {
            partition: Throughput { read: Rate::with_a_second(3_000.0), write: Rate::with_a_second(1_000.0) },
            table: Throughput { read: Rate::with_a_second(12_000.0), write: Rate::with_a_second(4_000.0) },
            only_table: None,
            latency: Latency { median: Duration::from_millis(4), p99: Duration::from_millis(20) },
            transaction_latency: Latency { median: Duration::from_millis(10), p99: Duration::from_millis(40) },
            lag: Duration::from_millis(100),
            objects: ObjectLimits::AWS,
            seed: 0,
        }
    }

    /// Limits that admit everything at once.
    pub const fn unlimited() -> Self {
        let endless = Throughput { read: Rate::UNLIMITED, write: Rate::UNLIMITED };
        Self {
            partition: endless,
            table: endless,
            only_table: None,
            latency: Latency::NONE,
            transaction_latency: Latency::NONE,
            lag: Duration::ZERO,
            objects: ObjectLimits::UNLIMITED,
            seed: 0,
        }
    }

    /// Returns limits with a multiple of DynamoDB's throughput and the same latencies. Those of S3 stay, because
    /// objects count there and not what is in them.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { partition: self.partition.scaled(by), table: self.table.scaled(by), ..self }
    }
}

impl ObjectLimits {
    /// The limits of a new bucket. Requests per prefix and bytes per connection are as AWS documents them in
    /// "Performance guidelines for Amazon S3", which also speaks of 100 to 200 ms until the first byte. Small requests
    /// within a region are usually answered faster. These latencies are an assumption.
    pub const AWS: Self = Self {
        gets: Rate::with_a_second(5_500.0),
        puts: Rate::with_a_second(3_500.0),
        first_byte: Latency { median: Duration::from_millis(15), p99: Duration::from_millis(80) },
        bytes_per_second: 85e6,
    };

    /// No limits, and no latency.
    pub const UNLIMITED: Self = Self {
        gets: Rate::UNLIMITED,
        puts: Rate::UNLIMITED,
        first_byte: Latency::NONE,
        bytes_per_second: f64::INFINITY,
    };
}

impl Throughput {
    fn scaled(self, by: f64) -> Self {
        let scaled = |rate: Rate| Rate { per_second: rate.per_second * by, burst: rate.burst * by };
        Self { read: scaled(self.read), write: scaled(self.write) }
    }

    const fn of(self, access: Access) -> Rate {
        match access {
            Access::Read => self.read,
            Access::Write => self.write,
        }
    }
}

impl Rate {
    pub const UNLIMITED: Self = Self { per_second: f64::INFINITY, burst: f64::INFINITY };

    /// Returns a rate whose bucket holds the units of one second.
    pub const fn with_a_second(per_second: f64) -> Self {
        Self { per_second, burst: per_second }
    }

    /// Returns a bucket of this many units that never fills again.
    pub const fn once(burst: f64) -> Self {
        Self { per_second: 0.0, burst }
    }
}

impl Latency {
    /// No latency beyond what the machine itself takes.
    pub const NONE: Self = Self::always(Duration::ZERO);

    /// Returns a latency that is always the same.
    pub const fn always(latency: Duration) -> Self {
        Self { median: latency, p99: latency }
    }

    /// Draws the latency of one call.
    fn draw(self, random: &mut Rng) -> Duration {
        /// How many standard deviations the 99th percentile of a normal distribution is from its mean.
        const P99_DEVIATIONS: f64 = 2.326_347_874;
        if self.p99 <= self.median || self.median.is_zero() {
            return self.median;
        }
        // A draw from the standard normal distribution, by the method of Box and Muller.
        let normal = (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (TAU * random.f64()).cos();
        let median = self.median.as_secs_f64();
        let deviation = (self.p99.as_secs_f64() / median).ln() / P99_DEVIATIONS;
        Duration::try_from_secs_f64(median * (deviation * normal).exp()).unwrap_or(self.p99)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
