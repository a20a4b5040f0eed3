//! A line that is a document of metrics as well.

use serde::Serialize;

use super::Meter;
use crate::logging::{FUNCTION, Members, WIDE};
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

/// What CloudWatch takes of one metric in one document.
const MAX_SAMPLES: usize = 100;

/// What a metric counts in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Unit {
    /// Things.
    Count,
    /// Thousandths of a second.
    Milliseconds,
}

/// The line of a request, a batch or a run.
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

/// `_aws`.
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
    /// A line of what the meter has counted since the last one.
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

    /// Tells something that is no metric. No name may come twice.
    pub fn member(&mut self, name: &'static str, value: &(impl Serialize + ?Sized)) {
        self.members.push(name, value);
    }

    /// Tells something that is no metric, if it is known.
    pub fn known(&mut self, name: &'static str, value: Option<&(impl Serialize + ?Sized)>) {
        if let Some(value) = value {
            self.member(name, value);
        }
    }

    /// A number of things; a metric unless it is zero.
    pub fn count(&mut self, name: &'static str, number: u64) {
        self.member(name, &number);
        if number > 0 {
            self.metrics.push(Metric { name, unit: Unit::Count });
        }
    }

    /// A metric, whatever its value.
    pub fn gauge(&mut self, name: &'static str, unit: Unit, value: impl Serialize) {
        self.member(name, &value);
        self.metrics.push(Metric { name, unit });
    }

    /// A metric of several values, or of none; of more than a hundred, the first.
    pub fn samples(&mut self, name: &'static str, unit: Unit, values: &[u64]) {
        if !values.is_empty() {
            self.gauge(name, unit, &values[..values.len().min(MAX_SAMPLES)]);
        }
    }

    /// How often the store was called.
    pub fn store_calls(&mut self) {
        if self.meter.namespace().is_some() {
            self.count("StoreCalls", self.store_calls);
        }
    }

    /// Writes it, as an error or as information.
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
