//! The figures of the simulation: what the code fixes, what AWS takes and what it charges. Times are in milliseconds.

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

// ---- The code: what receives messages. ----

/// First attempts per account and second that `ingest` sends to the first lane.
pub(crate) const FIRST_ATTEMPTS_PER_SECOND: u32 = 10;
/// An attempt is slow after this. A message whose attempt did not begin by then waits in the table.
pub(crate) const SLOW_AFTER: Millis = SECOND;
/// The deadline of an attempt.
pub(crate) const DEADLINE: Millis = 10 * SECOND;
/// A drain makes the attempt of a delayed message this long after it was due.
pub(crate) const OVERDUE: Millis = 5 * MINUTE;

// ---- The code: the drain. ----

/// How many attempts to one endpoint a run has in flight.
pub(crate) const IN_FLIGHT: usize = 10;
/// How long a run begins attempts.
pub(crate) const BEGIN_FOR: Millis = 12 * SECOND;
const _: () = assert!(BEGIN_FOR + DEADLINE < 25 * SECOND, "a run must end before its function's time-out");
/// A run reads its row this often, to see whether there were calls.
pub(crate) const POLL: Millis = 500;
/// A run that has nothing in flight looks into the index again after this.
pub(crate) const PAUSE: Millis = 150;
/// A row of a drain is kept this long after the latest call.
pub(crate) const GRACE: Millis = 2 * MINUTE;
/// How long a drain sleeps at most within [`GRACE`].
pub(crate) const NAP: Millis = MINUTE;
/// When `sweep` takes the message of a drain for lost.
pub(crate) const DRAIN_OVERDUE: Millis = 5 * MINUTE;
/// How long the row of a drain belongs to a run.
pub(crate) const LEASE: Millis = 90 * SECOND;
/// How often `sweep` runs.
pub(crate) const SWEEP: Millis = MINUTE;
/// From this many waiting first attempts on, new deliveries of an endpoint are born held.
pub(crate) const MAX_WAITING: usize = 100_000;
/// If the oldest first attempt waits for this long, new deliveries of the endpoint are born held.
pub(crate) const MAX_AGE: Millis = DAY;

/// What a deployment or the design may choose. A test can vary each of them to show what it is for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    /// Concurrent invocations of the first, the retry and the slow lane (`MaximumConcurrency` in template.yaml).
    pub(crate) workers: [usize; 3],
    /// The largest batch of the slow lane. Each message is a run, and the invocation ends with its last run.
    pub(crate) slow_batch: usize,
    /// How many attempts to one endpoint a batch of the other lanes has in flight.
    pub(crate) direct_in_flight: usize,
    /// Attempts wait in the table if they were due this long before their message is handled: their lane is behind.
    pub(crate) stale_after: Option<Millis>,
    /// How often a run looks into the index after a call.
    pub(crate) looks: u32,
    /// Whether a run hands on when it stops beginning attempts, instead of when its last attempt has ended.
    pub(crate) hands_on_early: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            workers: [2, 4, 20],
            slow_batch: BATCH,
            direct_in_flight: 4,
            stale_after: Some(SECOND),
            looks: 2,
            hands_on_early: true,
        }
    }
}

/// A stand-in for the score that an instance keeps of an endpoint.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Promptness(f64);

impl Promptness {
    const WEIGHT: f64 = 0.1;
    const LIMIT: f64 = 0.2;

    /// Counts an answer that was prompt.
    pub(crate) fn prompt(&mut self) {
        self.0 *= 1.0 - Self::WEIGHT;
    }

    /// Counts a second that an attempt went on after it was slow. Returns whether the endpoint is to be marked.
    pub(crate) fn slow(&mut self) -> bool {
        self.0 += Self::WEIGHT * (1.0 - self.0);
        self.0 > Self::LIMIT
    }
}
