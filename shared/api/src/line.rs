//! The log line of a request: who asked for what, how it ended, and how long it took. It never holds the key or the
//! query.
//!
//! Refusals of requests before a key is looked at cost nothing but their log line, so in a flood many of them share one.
//! The first is logged at once. Those of the second after it are logged with the next one, or earlier if they are many.
//! The line has the number of requests and the latency of each.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use common::clock::{Clock, Moment};
use common::ids::KeyId;
use common::metrics::{Line, Meter, Metric, ReplicaGauge};

use crate::error::ApiError;
use crate::gateway::{Request, Response, context};
use crate::reply::Reply;

/// What the line says in addition to the request and its response.
#[derive(Debug, Default)]
pub struct Facts {
    /// The key that the request was made with, if it is known.
    pub key_id: Option<KeyId>,
    /// Why the request failed, if it ended in a 5xx.
    pub cause: Option<String>,
    /// How long the function took.
    pub duration: Duration,
    /// The age and size of the replica that the answer came from, if it came from one.
    pub replica: Option<ReplicaGauge>,
    /// How long each refusal took that the line stands for, this one included. Empty if it stands for one request.
    pub refusals: Vec<Duration>,
}

/// Returns why a request ended in a 5xx. Any other outcome has no cause.
pub fn cause(outcome: &Result<Reply, ApiError>) -> Option<String> {
    outcome.as_ref().err().filter(|error| error.status().is_server_error()).map(ToString::to_string)
}

/// Writes a request's line.
pub fn log(meter: &Meter, request: &Request, response: &Response, facts: &Facts) {
    let (status, context) = (response.status().as_u16(), context(request));
    let mut line = meter.line("request");
    line.known("request_id", context.and_then(|context| context.request_id.as_deref()));
    line.member("method", request.method().as_str());
    line.known("route", context.and_then(|context| context.route_key.as_deref()));
    line.member("status", &status);
    line.known("key_id", facts.key_id.as_ref());
    line.known("cause", facts.cause.as_deref());
    latencies(&mut line, &facts.refusals, facts.duration);
    line.store_calls();
    if status == 429 {
        line.count(Metric::RateLimited, 1);
    }
    if let Some(replica) = &facts.replica {
        line.gauge(Metric::ReplicaLag, milliseconds(replica.age));
        line.gauge(Metric::ReplicaRecords, replica.records);
    }
    line.log(status >= 500);
}

/// Writes a line for refusals that still waited for one.
pub fn log_waiting(meter: &Meter, refusals: &[Duration]) {
    if let [.., last] = refusals {
        let mut line = meter.line("refusals");
        latencies(&mut line, refusals, *last);
        line.log(false);
    }
}

/// Adds how many requests the line stands for, and the latency of each.
fn latencies(line: &mut Line<'_>, refusals: &[Duration], duration: Duration) {
    line.member("requests", &refusals.len().max(1));
    if refusals.len() < 2 {
        line.member("latency_ms", &milliseconds(duration));
    } else {
        line.member("latency_ms", &refusals.iter().copied().map(milliseconds).collect::<Vec<_>>());
    }
}

/// Converts to milliseconds, rounded to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// For how long refusals wait for a line.
const WINDOW: Duration = Duration::from_secs(1);
/// The most refusals of one line: the most values of a metric that `CloudWatch` takes from it.
const MOST: usize = 100;

/// The refusals of an instance that are not logged yet. Those of the last second are lost if the instance ends.
#[derive(Default)]
pub struct Refusals(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    /// When refusals were logged last.
    logged: Option<Moment>,
    latencies: Vec<Duration>,
}

impl Refusals {
    /// Takes note of a refusal. Returns the latencies of all that are to be logged now, this one included, or nothing if
    /// it waits.
    pub fn note(&self, latency: Duration, clock: &dyn Clock) -> Vec<Duration> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.latencies.push(latency);
        if waiting.latencies.len() < MOST { waiting.take_due(clock) } else { waiting.take(clock) }
    }

    /// Returns the latencies of those that have waited for long enough.
    pub fn take_due(&self, clock: &dyn Clock) -> Vec<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take_due(clock)
    }
}

impl Waiting {
    fn take_due(&mut self, clock: &dyn Clock) -> Vec<Duration> {
        let is_early = self.logged.is_some_and(|logged| logged.is_within(WINDOW, clock));
        if is_early || self.latencies.is_empty() { Vec::new() } else { self.take(clock) }
    }

    fn take(&mut self, clock: &dyn Clock) -> Vec<Duration> {
        self.logged = Some(Moment::now(clock));
        std::mem::take(&mut self.latencies)
    }
}

#[cfg(test)]
mod tests {
    use common::clock::ManualClock;
    use common::timestamp::Timestamp;

    use super::*;

    const LATENCY: Duration = Duration::from_micros(50);

    #[test]
    fn the_first_is_logged_at_once_and_those_of_its_second_with_the_next_one() {
        let (clock, refusals) = (ManualClock::at(Timestamp::from_millis(0)), Refusals::default());
        let logged = |count: usize| (0..count).map(|_| refusals.note(LATENCY, &clock).len()).collect::<Vec<_>>();
        assert_eq!(logged(3), [1, 0, 0]);
        clock.advance(WINDOW);
        assert_eq!(logged(2), [3, 0]);
    }

    #[test]
    fn none_is_lost_however_many_there_are() {
        let (clock, refusals) = (ManualClock::at(Timestamp::from_millis(0)), Refusals::default());
        let logged: Vec<_> = (0..1_001).map(|_| refusals.note(LATENCY, &clock).len()).collect();
        assert_eq!(logged.iter().sum::<usize>(), 1_001);
        assert_eq!(logged.iter().filter(|count| **count > 0).count(), 11);
        assert!(logged.iter().all(|count| *count <= MOST));
    }

    #[test]
    fn what_still_waits_after_a_second_is_taken_once() {
        let (clock, refusals) = (ManualClock::at(Timestamp::from_millis(0)), Refusals::default());
        refusals.note(LATENCY, &clock);
        refusals.note(LATENCY, &clock);
        assert!(refusals.take_due(&clock).is_empty());
        clock.advance(WINDOW);
        assert_eq!((refusals.take_due(&clock), refusals.take_due(&clock)), (vec![LATENCY], vec![]));
    }
}
