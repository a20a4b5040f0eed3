//! A log line that is also a metrics document.

use serde::Serialize;

use super::{Meter, Metric, Unit};
use crate::clock::{Clock, SystemClock};
use crate::logging::{FUNCTION, Members, WIDE};
use crate::timestamp::Timestamp;

/// The most values of one metric that CloudWatch takes from one document.
const MAX_SAMPLES: usize = 100;

/// The log line of one request, batch or run, while it is put together.
pub struct Line<'a> {
    meter: &'a Meter,
    store_calls: u64,
    members: Members,
    metrics: Vec<Definition>,
}

/// A metric as the value of `_aws` describes it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "PascalCase")]
struct Definition {
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
    metrics: &'a [Definition],
}

impl Meter {
    /// Starts a line with what was counted since the last line, or since the request began.
    pub fn line(&self, message: &str) -> Line<'_> {
        Line::new(self, message)
    }
}

impl<'a> Line<'a> {
    fn new(meter: &'a Meter, message: &str) -> Self {
        let (store_calls, retries) = meter.take();
        let mut line = Self { meter, store_calls, members: Members::default(), metrics: Vec::new() };
        line.member("message", message);
        line.known(FUNCTION, meter.function());
        if meter.namespace().is_some() {
            line.count(Metric::StoreRetries, retries);
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

    /// Adds a count. CloudWatch takes it only if it is not zero.
    pub fn count(&mut self, metric: Metric, number: u64) {
        self.member(metric.as_str(), &number);
        if number > 0 {
            self.metrics.push(metric.into());
        }
    }

    /// Adds a metric, even if its value is zero.
    pub fn gauge(&mut self, metric: Metric, value: impl Serialize) {
        self.member(metric.as_str(), &value);
        self.metrics.push(metric.into());
    }

    /// Adds a metric with several values, of which at most the first hundred are kept. Without values it adds nothing.
    pub fn samples(&mut self, metric: Metric, values: &[u64]) {
        if !values.is_empty() {
            self.gauge(metric, &values[..values.len().min(MAX_SAMPLES)]);
        }
    }

    /// Adds the number of DynamoDB calls, if calls are counted.
    pub fn store_calls(&mut self) {
        if self.meter.namespace().is_some() {
            self.count(Metric::StoreCalls, self.store_calls);
        }
    }

    /// Writes the line, at level `ERROR` or `INFO`.
    pub fn log(mut self, is_error: bool) {
        let (init_ms, peak_mb) = self.meter.instance_news();
        self.known("init_ms", init_ms.as_ref());
        self.known("max_memory_mb", peak_mb.as_ref());
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

impl From<Metric> for Definition {
    fn from(metric: Metric) -> Self {
        Self { name: metric.as_str(), unit: metric.unit() }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
