//! The figures of the simulation: what the code fixes, what AWS takes and what it charges. Times are in milliseconds.
//! Then what a simulation measures: times in buckets, outcomes of deliveries, and cost.

use std::time::Duration;

use common::resources::{SWEEP_PERIOD, WEBHOOK_TIMEOUT};
use webhooks::delivery::LEASE_SECONDS;
use webhooks::drain;

/// Milliseconds since the simulation began, or a number of milliseconds.
pub(crate) type Millis = u64;

pub(crate) const SECOND: Millis = 1_000;
pub(crate) const MINUTE: Millis = 60 * SECOND;
pub(crate) const HOUR: Millis = 60 * MINUTE;
pub(crate) const DAY: Millis = 24 * HOUR;

// ---- AWS: typical latencies within a region. The simulation adds up to half of each. ----

/// From the call that sends a message until a worker can receive it.
pub(crate) const SQS_SEND: Millis = 8;
/// From the first message of a batch until the batch is received.
pub(crate) const SQS_RECEIVE: Millis = 10;
/// From the received batch until the function's code runs, on a warm instance.
pub(crate) const INVOKE: Millis = 5;
/// A read or a write of DynamoDB.
pub(crate) const DYNAMO: Millis = 5;
/// From a write until the index shows it: at least and at most.
pub(crate) const INDEX_LAG: (Millis, Millis) = (20, 50);
/// The largest batch of the event source mappings (`BatchSize` in template.yaml).
pub(crate) const BATCH: usize = 10;

// ---- AWS: prices in US dollars, us-east-1, on demand. ----

const PER_WRITE_UNIT: f64 = 0.625e-6;
const PER_READ_UNIT: f64 = 0.125e-6;
const PER_SQS_REQUEST: f64 = 0.40e-6;
const PER_GB_SECOND: f64 = 0.000_013_333_4;
const PER_INVOCATION: f64 = 0.20e-6;
/// The memory of the function in GB (`MemorySize` in template.yaml).
const MEMORY_GB: f64 = 0.25;

// ---- The code, as far as `functions/webhook` fixes it. ----

/// An attempt is slow after this. A message whose attempt did not begin by then waits in the table.
pub(crate) const SLOW_AFTER: Millis = SECOND;
/// How many attempts to one endpoint a batch of the first two lanes has in flight.
pub(crate) const DIRECT_IN_FLIGHT: usize = 4;
/// The deadline of an attempt.
pub(crate) const DEADLINE: Millis = 10 * SECOND;

/// The times of drains and sweeps. The others stand in `webhooks::drain`.
pub(crate) const BEGIN_FOR: Millis = millis(drain::BEGIN_FOR);
pub(crate) const LOOK_EVERY: Millis = millis(drain::LOOK_EVERY);
pub(crate) const PAUSE: Millis = millis(drain::PAUSE);
pub(crate) const GRACE: Millis = drain::GRACE_SECONDS as Millis * SECOND;
pub(crate) const NAP: Millis = drain::NAP_SECONDS as Millis * SECOND;
pub(crate) const LOST: Millis = drain::LOST_SECONDS as Millis * SECOND;
pub(crate) const SWEEP: Millis = millis(SWEEP_PERIOD);
/// How long the row of a drain belongs to a run.
pub(crate) const RUN_LEASE: Millis = LEASE_SECONDS.cast_unsigned() * SECOND + SWEEP;
const _: () = assert!(BEGIN_FOR + DEADLINE < millis(WEBHOOK_TIMEOUT), "a run must end before its function's time-out");

const fn millis(time: Duration) -> Millis {
    time.as_secs() * SECOND + time.subsec_millis() as Millis
}

/// What a deployment chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// The most invocations of the first, the retry and the slow lane at a time (`MaximumConcurrency` in template.yaml).
    pub(crate) workers: [usize; 3],
}

impl Settings {
    /// The defaults of template.yaml, for AWS accounts that may run only ten invocations at a time.
    pub(crate) const SMALL: Self = Self { workers: [2, 2, 2] };
    /// The settings for production in samconfig.toml.
    pub(crate) const PRODUCTION: Self = Self { workers: [200, 32, 64] };
}

/// Times, each kept with an error of at most one in 64.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    buckets: Vec<u32>,
    count: u64,
    max: Millis,
}

/// Values below this have a bucket of their own. Above it each power of two has this many buckets.
const BUCKETS_BITS: u32 = 6;

impl Times {
    pub(crate) fn add(&mut self, time: Millis) {
        let bucket = Self::bucket(time);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
        self.count += 1;
        self.max = self.max.max(time);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine += theirs;
        }
        self.count += other.count;
        self.max = self.max.max(other.max);
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) const fn max(&self) -> Millis {
        self.max
    }

    /// Returns the time that this share of the times (in percent) does not exceed. It is 0 if there are none.
    pub(crate) fn percentile(&self, percent: u64) -> Millis {
        let rank = (self.count * percent).div_ceil(100);
        let mut seen = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank && seen > 0 {
                return Self::upper(bucket).min(self.max);
            }
        }
        0
    }

    fn bucket(time: Millis) -> usize {
        let exponent = (time | 1).ilog2().max(BUCKETS_BITS) - BUCKETS_BITS;
        ((u64::from(exponent) << BUCKETS_BITS) + (time >> exponent)) as usize
    }

    /// Returns the largest time of a bucket.
    fn upper(bucket: usize) -> Millis {
        let exponent = (bucket >> BUCKETS_BITS).saturating_sub(1);
        let first = bucket - (exponent << BUCKETS_BITS);
        ((first as u64 + 1) << exponent) - 1
    }
}

/// The outcomes of an endpoint's deliveries, and how long they took.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) born: u64,
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    pub(crate) held: u64,
    /// From the event until its first attempt began.
    pub(crate) first: Times,
    /// From the time at which a retry by message was due until it began.
    pub(crate) messaged: Times,
    /// From the time at which a parked retry was due until it began.
    pub(crate) parked: Times,
    /// From the event until its attempt was acknowledged.
    pub(crate) arrived: Times,
}

impl Tally {
    pub(crate) fn merge(&mut self, other: &Self) {
        self.born += other.born;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.held += other.held;
        self.first.merge(&other.first);
        self.messaged.merge(&other.messaged);
        self.parked.merge(&other.parked);
        self.arrived.merge(&other.arrived);
    }
}

/// What an account uses of AWS. Its share of an invocation or of a batch may be a fraction. A row takes one write unit,
/// and each entry of an index that is written or removed takes another.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) write_units: f64,
    pub(crate) read_units: f64,
    pub(crate) sqs_requests: f64,
    pub(crate) invocations: f64,
    pub(crate) function_seconds: f64,
}

impl Usage {
    pub(crate) fn dollars(&self) -> f64 {
        self.write_units * PER_WRITE_UNIT
            + self.read_units * PER_READ_UNIT
            + self.sqs_requests * PER_SQS_REQUEST
            + self.invocations * PER_INVOCATION
            + self.function_seconds * MEMORY_GB * PER_GB_SECOND
    }
}

#[test]
fn a_percentile_is_at_most_one_in_64_too_high() {
    let mut times = Times::default();
    (0..100_000).for_each(|time| times.add(time));
    for percent in [1, 50, 95, 99, 100] {
        let exact = 1_000 * percent - 1;
        let found = times.percentile(percent);
        assert!((exact..=exact + exact / 64 + 1).contains(&found), "{found} instead of {exact}");
    }
}
