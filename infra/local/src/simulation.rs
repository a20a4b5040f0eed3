//! Functions on simulated time: on Tokio's paused clock, with an AWS side in memory. Time passes only where limits,
//! latencies and pauses make it pass, however fast the machine is. Computing takes no time at all.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use api::{Handler, Response};
use common::aws::Missing;
use common::clock::Clock;
use common::preflight::{Preflight, Unusable};
use common::runtime::{Error, Service};
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use http::Request;
use tokio::time::Instant;

use crate::gateway::routed;
use crate::host::Host;

/// Tokio's clock, with a wall clock that starts at a given time.
pub struct SimulatedClock {
    origin: Timestamp,
    started: Instant,
    skipped_millis: AtomicU64,
}

impl SimulatedClock {
    /// Starts a clock that shows `origin`.
    pub fn starting_at(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now(), skipped_millis: AtomicU64::new(0) }
    }

    /// Skips time in which nothing happens. Emulated services do not notice: on Tokio's clock, their timers would go off
    /// a million times a day.
    pub fn skip(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.skipped_millis.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Clock for SimulatedClock {
    fn now(&self) -> Timestamp {
        self.origin.plus_millis(i64::try_from(self.monotonic().as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed() + Duration::from_millis(self.skipped_millis.load(Ordering::SeqCst))
    }
}

/// An instance of a function of the API, without a gateway.
pub struct SimulatedInstance {
    handler: Arc<dyn Handler>,
    checks: Vec<Preflight>,
}

impl SimulatedInstance {
    /// Builds an instance that has not prepared itself yet.
    pub fn cold<H: Handler + 'static>(
        host: &Host,
        function: &'static str,
        build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
    ) -> Result<Self, Missing> {
        let handler = Arc::new(host.function(function, build)?);
        Ok(Self { handler, checks: host.preflight() })
    }

    /// Does what the init phase does under Lambda. What may pass is left to the first request.
    pub async fn init(&mut self) -> Result<(), Unusable> {
        let checks = join_all(std::mem::take(&mut self.checks).into_iter().map(Preflight::run));
        let (checked, _) = tokio::join!(checks, self.handler.warm_up());
        checked.into_iter().try_for_each(|problems| problems.map(drop))
    }

    /// Handles a request as if the gateway had handed it over.
    pub async fn handle(&self, request: &Request<()>) -> Result<Response, Error> {
        let (_, request) = routed(request).ok_or("the gateway refuses the path")?;
        Ok(self.handler.handle(request?).await)
    }
}
