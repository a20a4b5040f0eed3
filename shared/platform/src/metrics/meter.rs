//! Counts the store's calls from one line to the next.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aws_sdk_dynamodb::config::interceptors::BeforeTransmitInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use aws_smithy_runtime_api::client::orchestrator::Metadata;
use aws_smithy_runtime_api::client::retries::RequestAttempts;

use super::Line;
use crate::aws::Lookup;
use crate::logging::FUNCTION_VARIABLE;

/// The variable that names the metrics' namespace.
pub const NAMESPACE_VARIABLE: &str = "METRICS_NAMESPACE";

/// A function's metrics: where they go, whose they are, and what its instance has counted since the last line. The
/// counts are those of one request as long as requests come one at a time, as they do under Lambda.
#[derive(Debug, Default)]
pub struct Meter {
    namespace: Option<String>,
    function: Option<String>,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU64,
    retries: AtomicU64,
}

impl Meter {
    /// The meter of a function as its environment describes it.
    pub fn from_environment(lookup: Lookup<'_>) -> Self {
        let known = |name| lookup(name).filter(|value| !value.is_empty());
        Self { namespace: known(NAMESPACE_VARIABLE), function: known(FUNCTION_VARIABLE), counts: Arc::default() }
    }

    /// What counts the calls of AWS clients; nothing where metrics go nowhere.
    pub fn interceptor(&self) -> Option<SharedInterceptor> {
        self.namespace().is_some().then(|| SharedInterceptor::new(StoreCalls(Arc::clone(&self.counts))))
    }

    /// Forgets what was counted: a request begins.
    pub fn begin(&self) {
        self.take();
    }

    /// A line of what was counted since the last one, or since the request began.
    pub fn line(&self, message: &str) -> Line<'_> {
        Line::new(self, message)
    }

    /// Where metrics go: those of something without a name go nowhere.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref().filter(|_| self.function.is_some())
    }

    pub(super) fn function(&self) -> Option<&str> {
        self.function.as_deref()
    }

    /// Calls and retries.
    pub(super) fn take(&self) -> (u64, u64) {
        let Counts { calls, retries } = &*self.counts;
        (calls.swap(0, Ordering::Relaxed), retries.swap(0, Ordering::Relaxed))
    }
}

/// Sees each attempt of a client's calls.
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
