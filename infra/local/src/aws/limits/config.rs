//! The limits and the latencies that a store has.

use std::time::Duration;

use super::latency::Latency;

/// What the emulated DynamoDB admits, and how long it takes to answer. Under any limits, transactions conflict if they
/// meet, and reads may see half of them.
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
    /// Everything random comes from this seed.
    pub seed: u64,
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
            seed: 0,
        }
    }

    /// Returns limits with a multiple of the throughput and the same latencies.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self { partition: self.partition.scaled(by), table: self.table.scaled(by), ..self }
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
    use super::{Limits, Rate};

    #[test]
    fn scaling_changes_throughput_and_not_latency() {
        let small = Limits::aws().scaled(0.5);
        assert_eq!(small.partition.write, Rate::with_a_second(500.0));
        assert_eq!(small.table.read, Rate::with_a_second(6_000.0));
        assert_eq!((small.latency, small.seed), (Limits::aws().latency, 0));
        assert_eq!(Limits::unlimited().scaled(0.5), Limits::unlimited());
    }
}
