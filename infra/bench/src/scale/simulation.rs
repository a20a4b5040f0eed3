//! A stack on simulated time: on Tokio's paused clock, with an AWS side in memory.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use admin::keys::NewKey;
use http::Request;
use http::header::AUTHORIZATION;
use local::aws::InMemoryAws;
use local::environment::Variables;
use local::host::Host;
use local::seed::StackAdmin;
use local::simulation::{SimulatedClock, SimulatedInstance};
use platform::aws::Environment;
use serde::Deserialize;
use types::clock::Clock;
use types::scope::{Scope, Tier};
use types::timestamp::Timestamp;
use uuid::Uuid;

use crate::output::text;

/// When simulations begin, in Unix milliseconds.
const ORIGIN_MILLIS: i64 = 1_795_176_000_000;

/// An AWS side in memory with the tables of a stack.
pub(super) struct Simulation {
    pub(super) aws: InMemoryAws,
    pub(super) admin: StackAdmin,
    pub(super) clock: Arc<SimulatedClock>,
}

/// As much of an answer as is looked at.
#[derive(Deserialize)]
struct Page {
    total: u64,
}

/// Measures something on simulated time. Then the clock goes on as usual.
pub(super) async fn simulated<T>(measurement: impl Future<Output = T>) -> T {
    tokio::time::pause();
    let measured = measurement.await;
    tokio::time::resume();
    measured
}

impl Simulation {
    /// Starts an empty stack.
    pub(super) async fn start() -> Result<Self, String> {
        let aws = InMemoryAws::new().await.map_err(text)?;
        let clock = Arc::new(SimulatedClock::starting_at(Timestamp::from_millis(ORIGIN_MILLIS)));
        let admin = StackAdmin::with_environment(&aws.environment().map_err(text)?, clock.clone());
        admin.set_up(None).await?;
        Ok(Self { aws, admin, clock })
    }

    /// Returns an environment as a process of its own has it.
    pub(super) fn environment(&self) -> Result<Environment, String> {
        self.aws.environment().map_err(text)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the simulated time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.clock.monotonic()
    }

    /// Returns the simulated time since a moment, which is given by the time from the start to it.
    pub(super) fn since(&self, moment: Duration) -> Duration {
        self.elapsed().saturating_sub(moment)
    }

    /// Builds an instance of `listings`. Nothing is loaded yet.
    pub(super) fn cold_listings(&self) -> Result<SimulatedInstance, String> {
        let variables = Variables::new(&InMemoryAws::endpoint_url());
        let host = Host::with_environment(&variables, self.environment()?, self.clock.clone());
        SimulatedInstance::cold(&host, "listings", listings::api).map_err(text)
    }

    /// Makes keys of the largest tier, each for a user of its own.
    pub(super) async fn keys(&self, count: usize) -> Result<Vec<String>, String> {
        let mut keys = Vec::with_capacity(count);
        for _ in 0..count {
            let new = NewKey {
                user_id: Uuid::new_v4().into(),
                name: None,
                tier: Tier::Business,
                limit_override: None,
                scopes: [Scope::ListingsRead].into_iter().collect(),
                expires_at: None,
            };
            let (key, _) = self.admin.keys().create(new).await.map_err(text)?;
            keys.push(key.reveal().to_owned());
        }
        Ok(keys)
    }
}

/// Asks an instance for the first page of all listings. Returns how many there are in all, or `None` after a 503.
pub(super) async fn ask(instance: &SimulatedInstance, key: &str) -> Result<Option<u64>, String> {
    let request = Request::get("/v1/public/listings?sort=price_asc").header(AUTHORIZATION, format!("Bearer {key}"));
    let response = instance.handle(&request.body(()).map_err(text)?).await;
    let body = response.body.as_deref().unwrap_or_default();
    match response.status_code {
        200 => serde_json::from_slice::<Page>(body).map(|page| Some(page.total)).map_err(text),
        503 => Ok(None),
        status => Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(body))),
    }
}
