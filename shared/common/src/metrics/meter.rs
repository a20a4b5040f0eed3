//! Counts the DynamoDB calls between one log line and the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::retries::RequestAttempts;

use super::instance::{Instance, peak_mb};
use crate::aws::Lookup;
use crate::logging::FUNCTION_VARIABLE;

/// The environment variable that names the metrics' namespace.
pub const NAMESPACE_VARIABLE: &str = "METRICS_NAMESPACE";

/// A function's metrics: their namespace, the function's name, and what the instance has counted since the last line.
/// The counts belong to a single request only if requests come one at a time, as they do under Lambda.
#[derive(Debug, Default)]
pub struct Meter {
    namespace: Option<String>,
    function: Option<String>,
    counts: Arc<Counts>,
    instance: Instance,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    retries: AtomicU64,
}

impl Meter {
    /// Makes a meter with the namespace and the function's name from environment variables.
    pub(crate) fn from_environment(lookup: Lookup<'_>) -> Self {
        let known = |name| lookup(name).filter(|value| !value.is_empty());
        let (namespace, function) = (known(NAMESPACE_VARIABLE), known(FUNCTION_VARIABLE));
        Self { namespace, function, ..Self::default() }
    }

    /// Returns an interceptor that counts the DynamoDB calls of AWS clients, or `None` if no metrics are published.
    pub fn interceptor(&self) -> Option<SharedInterceptor> {
        self.namespace().is_some().then(|| SharedInterceptor::permanent(StoreCalls(Arc::clone(&self.counts))))
    }

    /// Notes that the init phase is over, after this time. The instance's next line tells it.
    pub fn started(&self, init: Duration) {
        self.instance.started(init);
    }

    /// Returns how long the init phase took, in milliseconds, and the peak of the memory, in megabytes. Each is there only
    /// if the next line is to tell it.
    pub(super) fn instance_news(&self) -> (Option<u64>, Option<u64>) {
        self.instance.news(peak_mb)
    }

    /// Resets the counts, because a request begins.
    pub fn begin(&self) {
        self.take();
    }

    /// Returns the namespace, or `None` if no metrics are published. Without a function name there is no dimension, so
    /// nothing is published.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| self.function.is_some())
    }

    pub(super) fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// Returns the numbers of calls and retries since the last time, and resets them.
    pub(super) fn take(&self) -> (u64, u64) {
        let Counts { calls, retries } = &*self.counts;
        (calls.swap(0, Ordering::Relaxed), retries.swap(0, Ordering::Relaxed))
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
        if config.load::<Metadata>().is_some_and(|called| called.service() == "DynamoDB") {
            let is_first = config.load::<RequestAttempts>().is_none_or(|attempts| attempts.attempts() <= 1);
            let counted = if is_first { &self.0.calls } else { &self.0.retries };
            counted.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }
}
