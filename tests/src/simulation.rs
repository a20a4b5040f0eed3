//! A stack on simulated time. The test's runtime has a paused clock (`start_paused = true`), and nothing here uses a
//! socket.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use api::Handler;
use aws_lambda_events::encodings::Body;
use common::aws::Missing;
use common::clock::Clock;
use common::runtime::Service;
use http::Request;
use http::header::AUTHORIZATION;
use local::aws::InMemoryAws;
use local::host::Host;
use local::simulation::{SimulatedClock, SimulatedInstance};
use market::Log;
use replica::base::{Columnar, Compaction};

use crate::client::HttpReply;
use crate::privileges::Ledger;
use crate::stack::Administrator;
use crate::stack::{NOON, variables};
use crate::state::{assert_base_is_exact, bucket_in, compaction_in, read_base};

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

impl Simulation {
    /// Starts an empty stack at noon.
    pub async fn new() -> Self {
        let aws = InMemoryAws::new().await.unwrap();
        let clock = Arc::new(SimulatedClock::starting_at(NOON.parse().unwrap()));
        let administrator = Administrator::with_environment(&aws.environment().unwrap(), clock.clone());
        administrator.admin.set_up(None).await.unwrap();
        Self { aws, clock, ledger: Ledger::default(), administrator }
    }

    /// Returns the simulated time since the start.
    pub fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Skips time in which nothing happens.
    pub fn skip(&self, time: Duration) {
        self.clock.skip(time);
    }

    /// Returns the simulated time since a moment, which is given by the time from the start to it.
    pub fn since(&self, moment: Duration) -> Duration {
        self.elapsed().saturating_sub(moment)
    }

    /// Builds an instance of a function of the API, as a process of its own would have it. Nothing is loaded yet.
    pub fn cold<H: Handler + 'static>(
        &self,
        function: &'static str,
        build: impl FnOnce(&Service<'_>) -> Result<H, Missing>,
    ) -> SimulatedInstance {
        let variables = variables(&InMemoryAws::endpoint_url());
        let host = Host::with_environment(&variables, self.aws.environment().unwrap(), self.clock.clone());
        SimulatedInstance::cold(&host.observed_by(self.ledger.observer()), function, build).unwrap()
    }

    /// Returns the compaction of a stream.
    pub fn compaction<R: Columnar>(&self) -> Compaction<R> {
        compaction_in(&self.aws.environment().unwrap(), self.clock.clone())
    }

    /// Returns a stream of the market table.
    pub fn log<R: Columnar>(&self) -> Log<R> {
        Log::new(self.admin.stores().market)
    }

    /// Returns the records that a start reads from the base with its deltas, and the log behind them.
    pub async fn read_base<R: Columnar>(&self) -> Vec<R> {
        let bucket = bucket_in(&self.aws.environment().unwrap());
        read_base(&self.log::<R>(), bucket, self.clock.clone()).await
    }

    /// Asserts that a start reads from the base what the entities say.
    pub async fn assert_base_is_exact<R: Columnar>(&self) {
        let bucket = bucket_in(&self.aws.environment().unwrap());
        assert_base_is_exact(&self.log::<R>(), bucket, self.clock.clone()).await;
    }
}

/// Sends a `GET` with a key to an instance.
pub async fn get_from(instance: &SimulatedInstance, key: &str, path: &str) -> HttpReply {
    let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {key}")).body(()).unwrap();
    let response = instance.handle(&request).await;
    let bytes = match response.body {
        Some(Body::Text(text)) => text.into_bytes(),
        Some(Body::Binary(bytes)) => bytes,
        _ => Vec::new(),
    };
    let status = u16::try_from(response.status_code).unwrap();
    HttpReply { status, headers: response.headers, bytes, repeats: 0 }
}
