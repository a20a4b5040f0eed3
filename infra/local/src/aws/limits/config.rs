//! The limits and the latencies that a store has.

use std::time::Duration;

use super::latency::Latency;

/// What the emulated DynamoDB and S3 admit, and how long they take to answer. Under any limits, transactions conflict
/// if they meet, and reads may see half of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// What one partition key of a table or index admits.
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

/// What the emulated S3 admits, and how long it takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObjectLimits {
    /// How many requests of one prefix may read.
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

impl Limits {
    /// Returns the limits of a new on-demand table. The throughput is as AWS documents it. The latencies and the lag are
    /// an assumption, because AWS promises only milliseconds, and a lag of usually less than a second.
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

    /// Returns limits that admit everything at once.
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

    /// Returns how long these bytes are under way.
    pub(super) fn time_for(&self, bytes: usize) -> Duration {
        let bytes = f64::from(u32::try_from(bytes).unwrap_or(u32::MAX));
        Duration::try_from_secs_f64(bytes / self.bytes_per_second).unwrap_or_default()
    }
}

impl Throughput {
    fn scaled(self, by: f64) -> Self {
        Self { read: self.read.scaled(by), write: self.write.scaled(by) }
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

    fn scaled(self, by: f64) -> Self {
        Self { per_second: self.per_second * by, burst: self.burst * by }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Limits, ObjectLimits, Rate};

    #[test]
    fn scaling_changes_throughput_and_not_latency() {
        let small = Limits::aws().scaled(0.5);
        assert_eq!(small.partition.write, Rate::with_a_second(500.0));
        assert_eq!(small.table.read, Rate::with_a_second(6_000.0));
        assert_eq!((small.latency, small.objects, small.seed), (Limits::aws().latency, ObjectLimits::AWS, 0));
        assert_eq!(Limits::unlimited().scaled(0.5), Limits::unlimited());
    }

    #[test]
    fn an_object_takes_the_time_of_its_bytes() {
        assert_eq!(ObjectLimits::AWS.time_for(8_500_000), Duration::from_millis(100));
        assert_eq!(ObjectLimits::UNLIMITED.time_for(8_500_000), Duration::ZERO);
    }
}
