//! Metrics, in CloudWatch's embedded metric format. Requests, batches and runs write log lines, and each line is
//! also the metrics document. CloudWatch takes members named in `PascalCase`, which [`Metric`] lists; all other members
//! are for people.
//!
//! The environment variable [`NAMESPACE_VARIABLE`] names the namespace. Without it, lines have no `_aws`, and DynamoDB
//! calls are not counted. There is one dimension, `FunctionName`: Lambda's name for the function, as in Lambda's own
//! metrics. CloudWatch charges for each pair of metric and function, for every hour in which it is published.
//! Therefore a count is published only if it is not zero: missing data means zero.

mod metric;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator;
use aws_smithy_runtime_api::client::retries::RequestAttempts;
use serde::Serialize;

use crate::aws::Lookup;
use crate::clock::{Clock, SystemClock};
use crate::logging::{FUNCTION, FUNCTION_VARIABLE, Members, WIDE};
pub use crate::metrics::metric::{Metric, Publishers, Unit};
use crate::timestamp::Timestamp;

/// The environment variable that names the metrics' namespace.
pub const NAMESPACE_VARIABLE: &str = "METRICS_NAMESPACE";
/// Lambda sets this variable to the function's memory in megabytes.
const MEMORY_VARIABLE: &str = "AWS_LAMBDA_FUNCTION_MEMORY_SIZE";

/// A function's metrics: their namespace, the function's name, and what the instance has counted since the last line.
/// The counts belong to a single request only if requests come one at a time, as they do under Lambda.
#[derive(Debug, Default)]
pub struct Meter {
    namespace: Option<String>,
    function: Option<String>,
    counts: Arc<Counts>,
    instance: Instance,
    /// The function's memory in megabytes.
    memory_mb: Option<u64>,
    publishes_memory: AtomicBool,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    retries: AtomicU64,
}

/// How much DynamoDB was used.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreUse {
    pub calls: u64,
    /// Attempts beyond the first of a call.
    pub retries: u64,
}

impl Meter {
    /// Makes a meter with the namespace and the function's name from environment variables.
    pub(crate) fn from_environment(lookup: Lookup<'_>) -> Self {
        let known = |name| lookup(name).filter(|value| !value.is_empty());
        let (namespace, function) = (known(NAMESPACE_VARIABLE), known(FUNCTION_VARIABLE));
        let memory_mb = known(MEMORY_VARIABLE).and_then(|megabytes| megabytes.parse().ok());
        Self { namespace, function, memory_mb, ..Self::default() }
    }

    /// Returns an interceptor that counts the DynamoDB calls of AWS clients, or `None` if no metrics are published.
    pub fn interceptor(&self) -> Option<SharedInterceptor> {
        self.namespace().is_some().then(|| SharedInterceptor::permanent(StoreCalls(Arc::clone(&self.counts))))
    }

    /// Notes that the init phase is over, after this time. The instance's next line tells it.
    pub fn started(&self, init: Duration) {
        self.instance.started(init);
    }

    /// From now on, lines that tell the memory also publish it, because it grows with the market.
    pub fn publish_memory(&self) {
        self.publishes_memory.store(true, Ordering::Relaxed);
    }

    /// Returns how many percent of the function's memory `peak_mb` is, if that is to be published.
    fn memory_used(&self, peak_mb: Option<u64>) -> Option<u64> {
        let publishes = self.publishes_memory.load(Ordering::Relaxed);
        (100 * peak_mb.filter(|_| publishes)?).checked_div(self.memory_mb?)
    }

    /// Returns how long the init phase took, in milliseconds, and the peak of the memory, in megabytes. Each is there only
    /// if the next line is to tell it.
    fn instance_news(&self) -> (Option<u64>, Option<u64>) {
        self.instance.news(peak_mb)
    }

    /// Resets the counts, because a request begins.
    pub fn begin(&self) {
        self.take();
    }

    /// Returns the namespace, or `None` if no metrics are published. Without a function name there is no dimension, so
    /// nothing is published.
    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| self.function.is_some())
    }

    fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// Returns what was counted since the last time, and resets the counts.
    pub fn take(&self) -> StoreUse {
        let Counts { calls, retries } = &*self.counts;
        StoreUse { calls: calls.swap(0, Ordering::Relaxed), retries: retries.swap(0, Ordering::Relaxed) }
    }
}

/// Sees each attempt of an AWS client's calls, and counts those to DynamoDB.
#[derive(Debug)]
struct StoreCalls(Arc<Counts>);

impl Intercept for StoreCalls {
    fn name(&self) -> &'static str {
        "store calls"
    }

    fn read_before_attempt(
        &self,
        _: &BeforeTransmitInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        if config.load::<orchestrator::Metadata>().is_some_and(|called| called.service() == "DynamoDB") {
            let is_first = config.load::<RequestAttempts>().is_none_or(|attempts| attempts.attempts() <= 1);
            let counted = if is_first { &self.0.calls } else { &self.0.retries };
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}

/// The most values of one metric that CloudWatch takes from one document.
const MAX_SAMPLES: usize = 100;

/// The log line of requests, or of a batch or a run, while it is put together.
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
        self.line_with(message, self.take())
    }

    /// Starts a line with what was counted before.
    pub fn line_with(&self, message: &str, store: StoreUse) -> Line<'_> {
        let mut line = Line { meter: self, store_calls: store.calls, members: Members::default(), metrics: Vec::new() };
        line.member("message", message);
        line.known(FUNCTION, self.function());
        if self.namespace().is_some() {
            line.count(Metric::StoreRetries, store.retries);
        }
        line
    }
}

impl Line<'_> {
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

    /// Adds the number of DynamoDB calls, if calls are counted. It is no metric: DynamoDB has its own.
    pub fn store_calls(&mut self) {
        if self.meter.namespace().is_some() {
            let calls = self.store_calls;
            self.member("store_calls", &calls);
        }
    }

    /// Writes the line, at level `ERROR` or `INFO`.
    pub fn log(mut self, is_error: bool) {
        let (init_ms, peak_mb) = self.meter.instance_news();
        self.known("init_ms", init_ms.as_ref());
        self.known("max_memory_mb", peak_mb.as_ref());
        if let Some(percent) = self.meter.memory_used(peak_mb) {
            self.gauge(Metric::MemoryUsed, percent);
        }
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

/// A line tells the memory again once it has grown by this many megabytes.
const STEP_MB: u64 = 16;

/// What an instance still has to tell about itself: how long its init phase took, and how much memory it has used.
/// Lambda tells both in lines of its own for each request, which are off because of their cost. Nothing is told before
/// the init phase is over, and outside of Lambda it never is.
#[derive(Debug, Default)]
struct Instance(Mutex<Option<Told>>);

#[derive(Debug)]
struct Told {
    /// How long the init phase took, until that is told.
    init: Option<Duration>,
    /// The peak that was told last.
    peak_mb: Option<u64>,
}

impl Instance {
    /// Notes that the init phase is over, after this time.
    fn started(&self, init: Duration) {
        let told = Told { init: Some(init), peak_mb: None };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
    }

    /// Returns the milliseconds of the init phase, and the peak in megabytes. Each is there only if the next line is to
    /// tell it.
    fn news(&self, peak_mb: impl FnOnce() -> Option<u64>) -> (Option<u64>, Option<u64>) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(told) = told.as_mut() else { return (None, None) };
        let is_news = |peak: &u64| told.peak_mb.is_none_or(|last| *peak >= last + STEP_MB);
        let peak = peak_mb().filter(is_news);
        told.peak_mb = peak.or(told.peak_mb);
        (told.init.take().and_then(|init| u64::try_from(init.as_millis()).ok()), peak)
    }
}

/// Returns the most memory that this process has used so far, in megabytes. Lambda's own figure also has what belongs to
/// the sandbox.
fn peak_mb() -> Option<u64> {
    peak_of(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn peak_of(status: &str) -> Option<u64> {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = peak.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes.div_ceil(1_024))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "METRICS_NAMESPACE" => Some("Marketplace".to_owned()),
            "AWS_LAMBDA_FUNCTION_NAME" => Some("stack-me".to_owned()),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE" => Some("512".to_owned()),
            _ => None,
        }
    }

    fn fill(line: &mut Line<'_>) {
        line.member("route", "a \"b\"");
        line.known("key_id", None::<&str>);
        line.known("cause", Some("none"));
        line.gauge(Metric::ReplicaLag, 1.25);
        line.store_calls();
        line.count(Metric::Failed, 0);
        line.count(Metric::Refused, 2);
        line.samples(Metric::EventToPost, &[]);
        line.samples(Metric::PostponedTimes, &[3, 1]);
    }

    fn text(meter: &Meter) -> String {
        let mut line = meter.line("batch");
        fill(&mut line);
        line.members(Timestamp::from_millis(1_795_176_000_000))
    }

    #[test]
    fn a_line_is_a_document_of_the_metrics_that_are_not_zero() {
        assert_eq!(
            text(&Meter::from_environment(&lookup)),
            concat!(
                r#""message":"batch","FunctionName":"stack-me","StoreRetries":0,"route":"a \"b\"","cause":"none","ReplicaLag":1.25,"store_calls":0,"#,
                r#""Failed":0,"Refused":2,"PostponedTimes":[3,1],"#,
                r#""_aws":{"Timestamp":1795176000000,"CloudWatchMetrics":[{"Namespace":"Marketplace","#,
                r#""Dimensions":[["FunctionName"]],"Metrics":[{"Name":"ReplicaLag","Unit":"Milliseconds"},"#,
                r#"{"Name":"Refused","Unit":"Count"},{"Name":"PostponedTimes","Unit":"Count"}]}]}"#,
            )
        );
    }

    #[test]
    fn without_a_namespace_it_counts_no_calls_and_asks_nothing_of_cloudwatch() {
        let rest = concat!(
            r#""route":"a \"b\"","cause":"none","ReplicaLag":1.25,"#,
            r#""Failed":0,"Refused":2,"PostponedTimes":[3,1]"#,
        );
        let function = r#""FunctionName":"stack-me","#;
        let empty =
            |name: &str| lookup(name).map(|value| if name == "METRICS_NAMESPACE" { String::new() } else { value });
        let nameless = |name: &str| lookup(name).filter(|_| name == "METRICS_NAMESPACE");
        for (meter, function) in [
            (Meter::default(), ""),
            (Meter::from_environment(&nameless), ""),
            (Meter::from_environment(&empty), function),
        ] {
            assert_eq!(text(&meter), format!(r#""message":"batch",{function}{rest}"#));
            assert!(meter.interceptor().is_none());
        }
    }

    #[test]
    fn a_line_without_metrics_is_no_document() {
        let meter = Meter::from_environment(&lookup);
        let mut line = meter.line("swept");
        line.count(Metric::Overdue, 0);
        let members = line.members(Timestamp::from_millis(0));
        assert_eq!(members, r#""message":"swept","FunctionName":"stack-me","StoreRetries":0,"Overdue":0"#);
    }

    #[test]
    fn no_metric_has_more_values_than_cloudwatch_takes() {
        let meter = Meter::from_environment(&lookup);
        let mut line = meter.line("batch");
        line.samples(Metric::EventToPost, &[7; 101]);
        let members: serde_json::Value =
            serde_json::from_str(&format!("{{{}}}", line.members(Timestamp::from_millis(0)))).unwrap();
        assert_eq!(members["EventToPost"].as_array().unwrap().len(), 100);
    }

    #[test]
    fn the_init_phase_is_told_once_and_the_memory_whenever_it_has_grown() {
        let instance = Instance::default();
        assert_eq!(instance.news(|| Some(20)), (None, None), "there was no init phase");
        instance.started(Duration::from_micros(81_900));
        let told = [20, 35, 36, 36, 51, 90].map(|peak| instance.news(|| Some(peak)));
        assert_eq!(
            told,
            [(Some(81), Some(20)), (None, None), (None, Some(36)), (None, None), (None, None), (None, Some(90))]
        );
        assert_eq!(instance.news(|| None), (None, None));
    }

    #[test]
    fn the_memory_is_published_in_percent_of_the_function_s() {
        let meter = Meter::from_environment(&lookup);
        assert_eq!(meter.memory_used(Some(359)), None, "nobody asked for it");
        meter.publish_memory();
        assert_eq!([None, Some(358), Some(359)].map(|peak| meter.memory_used(peak)), [None, Some(69), Some(70)]);
    }

    #[test]
    fn the_peak_is_read_in_megabytes() {
        assert_eq!(peak_of("VmPeak:\t  9999 kB\nVmHWM:\t    20481 kB\nVmRSS:\t     8 kB\n"), Some(21));
        assert_eq!(peak_of("VmRSS:\t     8 kB\n"), None);
    }
}
