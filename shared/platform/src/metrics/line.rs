//! A log line that is also a metrics document.

use serde::Serialize;

use super::Meter;
use crate::logging::{FUNCTION, Members, WIDE};
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

/// The most values of one metric that CloudWatch takes from one document.
const MAX_SAMPLES: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    Count,
    Milliseconds,
}

/// The log line of one request, batch or run, while it is put together.
pub struct Line<'a> {
    meter: &'a Meter,
    store_calls: u64,
    members: Members,
    metrics: Vec<Metric>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metric {
    name: &'static str,
    unit: Unit,
}

/// The value of the member `_aws`.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Metadata<'a> {
    timestamp: i64,
    cloud_watch_metrics: [Directive<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Directive<'a> {
    namespace: &'a str,
    dimensions: [[&'static str; 1]; 1],
    metrics: &'a [Metric],
}

impl<'a> Line<'a> {
    /// Starts a line with what the meter has counted since the last one.
    pub(super) fn new(meter: &'a Meter, message: &str) -> Self {
        let (store_calls, retries) = meter.take();
        let mut line = Self { meter, store_calls, members: Members::default(), metrics: Vec::new() };
        line.member("message", message);
        line.known(FUNCTION, meter.function());
        if meter.namespace().is_some() {
            line.count("StoreRetries", retries);
        }
        line
    }

    /// Adds a member that is not a metric. Each name may be added only once.
    pub fn member(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        self.members.push(name, value);
    }

    /// Adds a member that is not a metric, if its value is known.
    pub fn known(&mut self, name: &'static str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    /// Adds a count. It is a metric only if it is not zero.
    pub fn count(&mut self, name: &'static str, number: u64) {
        self.member(name, &number);
        if number > 0 {
            self.metrics.push(Metric { name, unit: Unit::Count });
        }
    }

    /// Adds a metric, even if its value is zero.
    pub fn gauge(&mut self, name: &'static str, unit: Unit, value: impl Serialize) {
        self.member(name, &value);
        self.metrics.push(Metric { name, unit });
    }

    /// Adds a metric with several values, of which at most the first hundred are kept. Without values it adds nothing.
    pub fn samples(&mut self, name: &'static str, unit: Unit, values: &[u64]) {
        if !values.is_empty() {
            self.gauge(name, unit, &values[..values.len().min(MAX_SAMPLES)]);
        }
    }

    /// Adds the number of DynamoDB calls, if calls are counted.
    pub fn store_calls(&mut self) {
        if self.meter.namespace().is_some() {
            self.count("StoreCalls", self.store_calls);
        }
    }

    /// Writes the line, at level `ERROR` or `INFO`.
    pub fn log(self, is_error: bool) {
        let members = self.members(SystemClock::new().now());
        if is_error {
            tracing::error!(target: WIDE, members);
        } else {
            tracing::info!(target: WIDE, members);
        }
    }

    fn members(mut self, now: Timestamp) -> String {
        if let Some(namespace) = self.meter.namespace().filter(|_| !self.metrics.is_empty()) {
            let directive = Directive { namespace, dimensions: [[FUNCTION]], metrics: &self.metrics };
            let metadata = Metadata { timestamp: now.millis(), cloud_watch_metrics: [directive] };
            self.members.push("_aws", &metadata);
        }
        self.members.into_text()
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
