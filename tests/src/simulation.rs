//! A stack on simulated time. The test's runtime has a paused clock (`start_paused = true`), and nothing here uses a
//! socket. So time passes only where limits, latencies and pauses make it pass, however fast the machine is. Computing
//! takes no time at all.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::{GatewayEvent, Handler};
use aws_lambda_events::encodings::Body;
use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextMut;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use base::{Columnar, Compaction};
use futures_util::future::join_all;
use http::Method;
use http::header::AUTHORIZATION;
use local::aws::InMemoryAws;
use local::host::Host;
use platform::aws::Missing;
use platform::preflight::Preflight;
use platform::service::Service;
use tokio::time::Instant;
use types::clock::Clock;
use types::timestamp::Timestamp;

use crate::administrator::Administrator;
use crate::client::HttpReply;
use crate::compaction::compaction_in;
use crate::privileges::Ledger;
use crate::stack::{NOON, variables};

/// An AWS side in memory, with its administrator.
pub struct Simulation {
    pub aws: InMemoryAws,
    clock: Arc<SimulatedClock>,
    ledger: Ledger,
    administrator: Administrator,
}

impl Deref for Simulation {
    type Target = Administrator;

    fn deref(&self) -> &Administrator {
        &self.administrator
    }
}

/// Tokio's clock. Its wall clock starts at noon.
struct SimulatedClock {
    noon: Timestamp,
    started: Instant,
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.noon.plus_millis(i64::try_from(self.monotonic().as_millis()).unwrap())
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

impl Simulation {
    /// Starts an empty stack.
    pub async fn new() -> Self {
        let aws = InMemoryAws::new().unwrap();
        let clock = Arc::new(SimulatedClock { noon: NOON.parse().unwrap(), started: Instant::now() });
        let administrator = Administrator::with_environment(&aws.environment().unwrap(), clock.clone());
        administrator.admin.set_up(None).await.unwrap();
        Self { aws, clock, ledger: Ledger::default(), administrator }
    }

    /// Returns the simulated time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Builds an instance of a function of the API, as a process of its own would have it. Nothing is loaded yet.
    pub fn cold<H: Handler + 'static>(
        &self,
        function: &'static str,
        build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
    ) -> SimulatedInstance {
        let environment = self.aws.environment().unwrap().watched_by(SharedInterceptor::new(RetryQuota::new()));
        let variables = variables(&InMemoryAws::endpoint_url());
        let host = Host::with_environment(&variables, environment, self.clock.clone());
        let host = host.observed_by(self.ledger.observer());
        let handler = Box::new(host.function(function, build).unwrap());
        SimulatedInstance { handler, checks: host.preflight() }
    }

    /// Returns the compaction of a stream.
    pub fn compaction<R: Columnar>(&self) -> Compaction<R> {
        compaction_in(&self.aws.environment().unwrap(), self.clock.clone())
    }
}

/// An instance of a function of the API, without a gateway.
pub struct SimulatedInstance {
    handler: Box<dyn Handler>,
    checks: Vec<Preflight>,
}

impl SimulatedInstance {
    /// Does what the init phase does under Lambda. What may still pass is left to the first request.
    pub async fn init(&mut self) {
        let checks = join_all(std::mem::take(&mut self.checks).into_iter().map(Preflight::run));
        let (checked, _) = tokio::join!(checks, self.handler.warm_up());
        for problems in checked {
            problems.unwrap();
        }
    }

    /// Handles a `GET` with a key.
    pub async fn get(&self, key: &str, path: &str) -> HttpReply {
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let mut event = GatewayEvent::default();
        event.raw_path = Some(path.to_owned());
        event.raw_query_string = Some(query.to_owned());
        event.headers.insert(AUTHORIZATION, format!("Bearer {key}").parse().unwrap());
        event.request_context.http.method = Method::GET;
        event.request_context.http.path = Some(path.to_owned());
        let response = self.handler.handle(event).await;
        let bytes = match response.body {
            Some(Body::Text(text)) => text.into_bytes(),
            Some(Body::Binary(bytes)) => bytes,
            _ => Vec::new(),
        };
        let status = u16::try_from(response.status_code).unwrap();
        HttpReply { status, headers: response.headers, bytes, repeats: 0 }
    }
}

/// Gives an instance's clients a quota of retries of their own. The SDK has one in a process, for all clients of a
/// service.
#[derive(Debug)]
struct RetryQuota(RetryPartition);

impl RetryQuota {
    fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self(RetryPartition::new(format!("instance {}", MADE.fetch_add(1, Ordering::Relaxed))))
    }
}

impl Intercept for RetryQuota {
    fn name(&self) -> &'static str {
        "retry quota"
    }

    fn modify_before_serialization(
        &self,
        _: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(self.0.clone());
        Ok(())
    }
}
