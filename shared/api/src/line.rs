//! The log line of a request: who asked for what, how it ended, and how long it took. It never holds the key or the
//! query.

use std::time::Duration;

use super::error::ApiError;
use super::reply::{GatewayEvent, Reply, Response};
use common::ids::KeyId;
use common::metrics::{Line, Meter, Metric, ReplicaGauge};

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
    outcome.as_ref().err().filter(|error| error.status() >= 500).map(ToString::to_string)
}

/// Writes a request's line.
pub fn log(meter: &Meter, event: &GatewayEvent, response: &Response, facts: &Facts) {
    let status = u16::try_from(response.status_code).unwrap_or_default();
    let mut line = meter.line("request");
    line.known("request_id", event.request_context.request_id.as_deref());
    line.member("method", event.request_context.http.method.as_str());
    line.known("route", event.route_key.as_deref());
    line.member("status", &status);
    line.known("key_id", facts.key_id.as_ref());
    line.known("cause", facts.cause.as_deref());
    let number = latencies(&mut line, &facts.refusals, facts.duration);
    line.store_calls();
    match status {
        429 => line.count(Metric::RateLimited, 1),
        400..=499 => line.count(Metric::ClientErrors, number),
        500.. => line.count(Metric::ServerErrors, 1),
        _ => {}
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
        let number = latencies(&mut line, refusals, *last);
        line.count(Metric::ClientErrors, number);
        line.log(false);
    }
}

/// Adds the latencies of all refusals that a line stands for, or that of its request. Returns how many these are.
fn latencies(line: &mut Line<'_>, refusals: &[Duration], duration: Duration) -> u64 {
    if refusals.len() < 2 {
        line.gauge(Metric::Latency, milliseconds(duration));
        return 1;
    }
    let latencies: Vec<f64> = refusals.iter().copied().map(milliseconds).collect();
    line.member("refusals", &latencies.len());
    line.gauge(Metric::Latency, &latencies);
    latencies.len() as u64
}

/// Converts to milliseconds, rounded to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
