//! The figures of the simulation: what the code fixes, what AWS takes and what it charges. Times are in milliseconds.

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

pub(crate) const PER_WRITE_UNIT: f64 = 0.625e-6;
pub(crate) const PER_READ_UNIT: f64 = 0.125e-6;
pub(crate) const PER_SQS_REQUEST: f64 = 0.40e-6;
pub(crate) const PER_GB_SECOND: f64 = 0.000_013_333_4;
pub(crate) const PER_INVOCATION: f64 = 0.20e-6;
/// The memory of the function in GB (`MemorySize` in template.yaml).
pub(crate) const MEMORY_GB: f64 = 0.25;

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
