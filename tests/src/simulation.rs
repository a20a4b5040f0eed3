//! A stack on simulated time. The test's runtime has a paused clock (`start_paused = true`), and nothing here uses a
//! socket.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Deref;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use api::Handler;
use bytes::Bytes;
use common::aws::Missing;
use common::clock::Clock;
use common::runtime::Service;
use fastrand::Rng;
use http::Request;
use http::header::AUTHORIZATION;
use local::aws::InMemoryAws;
use local::aws::limits::{Latency, Limits, ObjectLimits, Rate, Throughput};
use local::host::Host;
use local::meter::CostMeter;
use local::simulation::{SimulatedClock, SimulatedInstance};
use market::Log;
use replica::base::{Columnar, Compaction};
use serde_json::Value;
use tokio::time::sleep;

use crate::client::HttpReply;
use crate::privileges::Ledger;
use crate::stack::Administrator;
use crate::stack::{NOON, variables};
use crate::state::{assert_base_is_exact, bucket_in, compaction_in, read_base};

/// An AWS side in memory, with its administrator.
pub struct Simulation {
    pub aws: InMemoryAws,
    /// Counts the calls of all functions.
    pub meter: CostMeter,
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
        Self { aws, meter: CostMeter::default(), clock, ledger: Ledger::default(), administrator }
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
        SimulatedInstance::cold(&self.host(self.clock.clone()), function, build).unwrap()
    }

    /// Returns what functions of a process of its own run on, with a clock of its own. They may do only what the template
    /// allows.
    pub fn host(&self, clock: Arc<dyn Clock>) -> Host {
        let variables = variables(&InMemoryAws::endpoint_url());
        let environment = self.aws.environment().unwrap().watched_by(self.meter.interceptor());
        let host = Host::with_environment(&variables, environment, clock);
        host.observed_by(self.ledger.observer())
    }

    /// Returns the simulated time.
    pub fn clock(&self) -> Arc<SimulatedClock> {
        Arc::clone(&self.clock)
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

    /// Overwrites the objects of a stream's base.
    pub async fn lose_base<R: Columnar>(&self) {
        let bucket = bucket_in(&self.aws.environment().unwrap());
        let manifest = self.log::<R>().standing().await.unwrap().manifest.unwrap().unwrap();
        let deltas = manifest.deltas.into_iter().map(|delta| delta.object);
        for object in manifest.parts.into_iter().chain(deltas) {
            bucket.put(&object.key, Bytes::from_static(b"lost")).await.unwrap();
        }
    }

    /// Asserts that a start reads from the base what the entities say.
    pub async fn assert_base_is_exact<R: Columnar>(&self) {
        let bucket = bucket_in(&self.aws.environment().unwrap());
        assert_base_is_exact(&self.log::<R>(), bucket, self.clock.clone()).await;
    }
}

/// Runs a process that stops now and then, wherever it is, and goes on up to a minute later. Meanwhile its calls are
/// answered and its timers expire, as those of a Lambda instance that is frozen.
async fn stopping<F: Future>(seed: u64, process: F) -> F::Output {
    /// How often a process goes on before it stops. A run of a compaction goes on some hundred times.
    const STEPS: std::ops::Range<u32> = 1..200;
    let (mut process, mut random) = (pin!(process), Rng::with_seed(seed));
    loop {
        let mut steps = random.u32(STEPS);
        let goes_on = poll_fn(|context| match (steps, process.as_mut().poll(context)) {
            (_, Poll::Ready(output)) => Poll::Ready(Some(output)),
            (0, Poll::Pending) => Poll::Ready(None),
            (_, Poll::Pending) => {
                steps -= 1;
                Poll::Pending
            }
        });
        if let Some(output) = goes_on.await {
            return output;
        }
        sleep(Duration::from_millis(random.u64(1..60_000))).await;
    }
}

/// What goes on against a history, each by even odds: transactions that show row by row, partitions that throttle, and
/// processes that stop between any two steps and go on later.
pub struct Adversaries {
    random: Rng,
    pub limits: Limits,
    pub has_stops: bool,
}

impl Adversaries {
    /// Draws them. Only partitions of this table throttle.
    pub fn new(seed: u64, table: &'static str) -> Self {
        let mut random = Rng::with_seed(seed);
        let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(40) };
        let first_byte = Latency { median: Duration::from_millis(15), p99: Duration::from_millis(300) };
        let objects = ObjectLimits { first_byte, ..ObjectLimits::UNLIMITED };
        let mut limits = Limits { latency, objects, seed, ..Limits::unlimited() };
        if random.bool() {
            limits.transaction_latency = Latency::always(Duration::from_secs(3));
        }
        if random.bool() {
            limits.only_table = Some(table);
            limits.partition = Throughput { read: Rate { per_second: 2.0, burst: 4.0 }, write: Rate::UNLIMITED };
        }
        Self { has_stops: random.bool(), random, limits }
    }

    /// Returns whether nothing may hold a process up for longer than it can wait.
    pub fn hold_up_nothing(&self) -> bool {
        !self.has_stops && self.limits.only_table.is_none()
    }

    /// Runs a process that begins while a transaction goes on, and stops now and then if this history has stops.
    pub fn run<'a, F: Future + 'a>(&mut self, process: F) -> Pin<Box<dyn Future<Output = F::Output> + 'a>> {
        let begins = self.limits.transaction_latency.p99.mul_f64(self.random.f64());
        let (seed, has_stops) = (self.random.u64(..), self.has_stops);
        Box::pin(async move {
            sleep(begins).await;
            if has_stops { stopping(seed, process).await } else { process.await }
        })
    }
}

/// Sends a `GET` with a key to an instance.
pub async fn get_from(instance: &SimulatedInstance, key: &str, path: &str) -> HttpReply {
    let request = Request::get(path).header(AUTHORIZATION, format!("Bearer {key}")).body(()).unwrap();
    answer_from(instance, &request).await
}

/// Sends a request to an instance.
pub async fn answer_from(instance: &SimulatedInstance, request: &Request<()>) -> HttpReply {
    let (head, body) = instance.handle(request).await.unwrap().into_parts();
    HttpReply { status: head.status.as_u16(), headers: head.headers, bytes: body.to_vec(), repeats: 0 }
}

/// Returns the prices of up to 100 listings that an instance shows, by their ids, or `None` if it answers 503.
pub async fn shown(instance: &SimulatedInstance, key: &str) -> Option<BTreeMap<String, String>> {
    let reply = get_from(instance, key, "/v1/public/listings?page_size=100").await;
    if reply.status == 503 {
        return None;
    }
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    let text = |one: &Value, name: &str| one[name].as_str().unwrap().to_owned();
    let items = reply.json()["items"].as_array().cloned().unwrap();
    Some(items.iter().map(|one| (text(one, "id"), text(one, "price_usd"))).collect())
}
