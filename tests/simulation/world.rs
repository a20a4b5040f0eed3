//! A stack whose webhooks run by themselves on simulated time: the functions as they are deployed, behind pollers and a
//! schedule with Lambda's semantics, over an AWS side in memory that does what AWS may do.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use admin::webhooks::WebhookAdmin;
use aws_lambda_events::sqs::SqsEvent;
use common::aws::Patience;
use common::clock::Clock;
use common::event::{Event, EventKind};
use common::ids::{DeliveryId, EndpointId, UserId};
use common::preflight;
use common::resources::{Queue, SWEEP_PERIOD, SWEEP_TIMEOUT, WEBHOOK_TIMEOUT};
use common::rotation::Secrets;
use common::runtime::{Error, Service, Worker};
use common::timestamp::Timestamp;
use fastrand::Rng;
use feed::{Message, parse};
use futures_util::FutureExt;
use local::aws::Faults;
use local::aws::limits::{Latency, Limits};
use local::environment::Variables;
use local::simulation::SimulatedClock;
use local::workers::{BackgroundTask, EventSource, poll_with_fleet};
use serde_json::Value;
use tests::{Simulation, sale, uuid};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use webhook::Webhook;
use webhook::transport::{DEADLINE, Reach, Transport};
use webhooks::delivery::Lane;
use webhooks::endpoint::{Switch, WebhookEndpoint};
use webhooks::guard::Policy;
use webhooks::secrets::{EndpointSecret, KeyringCache};
use webhooks::store::{Added, WebhookStore};
use webhooks::{Drains, FanOut, Queues, Schedule, delivery_id};

use crate::receivers::{Behaviour, Dialer, Receivers};

/// The most instances of a lane: the template's default.
const INSTANCES: usize = 2;
/// How many file descriptors an instance has (AWS Lambda quotas).
const DESCRIPTORS: usize = 1_024;

/// What AWS and the machines do that is not kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Adversity {
    /// How long writes take to reach the indexes: at least, and at most.
    pub(crate) index_lag: (Duration, Duration),
    pub(crate) faults: Faults,
    /// How long DynamoDB refuses all calls at the time that it does.
    pub(crate) throttled_for: Duration,
    /// How often it does, and how often what runs is stopped, in all.
    pub(crate) outages: u32,
    pub(crate) kills: u32,
    /// How many instances a lane has, if not as many as usual.
    pub(crate) instances: Option<usize>,
    /// How many connections an instance can have open, if not as many as usual.
    pub(crate) connections: Option<usize>,
    /// Clocks are off by up to this many seconds, in both directions.
    pub(crate) clocks_off_seconds: i64,
}

/// An account: how its endpoints answer, and when it has events.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) endpoints: Vec<Behaviour>,
    pub(crate) events: Vec<Duration>,
    /// Whether its endpoints are known to respond promptly.
    pub(crate) is_prompt: bool,
}

/// A running stack.
pub(crate) struct World {
    pub(crate) simulation: Arc<Simulation>,
    pub(crate) receivers: Arc<Receivers>,
    pub(crate) store: WebhookStore,
    /// The endpoints by the numbers of their receivers.
    pub(crate) endpoints: Vec<WebhookEndpoint>,
    /// What was sent, by delivery: the receiver's number, and when its event was fanned out.
    pub(crate) sent: Arc<Mutex<BTreeMap<DeliveryId, (usize, Duration)>>>,
    /// When something ended that held everything up: outages, and the lives of instances.
    pub(crate) disasters: Arc<Mutex<Vec<Duration>>>,
    kills: Arc<Kills>,
    pollers: Vec<BackgroundTask>,
    tasks: JoinSet<()>,
}

impl World {
    pub(crate) async fn start(
        seed: u64,
        schedule: Schedule,
        accounts: &[Account],
        adversity: Adversity,
        until: Duration,
    ) -> Self {
        let simulation = Arc::new(Simulation::new().await);
        let behaviours: Vec<Behaviour> = accounts.iter().flat_map(|account| account.endpoints.clone()).collect();
        let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(20) };
        let transaction_latency = Latency { median: Duration::from_millis(10), p99: Duration::from_millis(40) };
        simulation.aws.limits().set(Limits { latency, transaction_latency, seed, ..Limits::unlimited() });
        let receivers = Receivers::new(behaviours, seed);
        let (admin, fan_out) = service(&simulation, schedule);
        let mut endpoints = Vec::new();
        for (number, account) in accounts.iter().enumerate() {
            for _ in &account.endpoints {
                let endpoint = endpoint(&admin, user(number), endpoints.len(), account.is_prompt).await;
                assert_eq!(admin.store.add_endpoint(&endpoint).await.unwrap(), Added::Done);
                endpoints.push(endpoint);
            }
        }
        simulation.aws.faults().seed(seed);
        simulation.aws.delay_indexes(adversity.index_lag.0..=adversity.index_lag.1, seed).unwrap();
        simulation.aws.faults().set(adversity.faults);
        let kills = Arc::new(Kills {
            number: AtomicU64::new(0),
            random: Mutex::new(Rng::with_seed(seed)),
            receivers: Arc::clone(&receivers),
            died: Arc::default(),
        });
        let mut world = Self {
            disasters: Arc::clone(&kills.died),
            store: admin.store,
            simulation,
            receivers,
            endpoints,
            sent: Arc::default(),
            kills,
            pollers: Vec::new(),
            tasks: JoinSet::new(),
        };
        world.run_functions(seed, schedule, adversity).await;
        world.run_events(accounts, fan_out);
        world.run_disasters(seed, adversity, until);
        world
    }

    /// Lets time pass until this long after the start.
    pub(crate) async fn run_until(&self, until: Duration) {
        sleep(until.saturating_sub(self.receivers.elapsed())).await;
    }

    /// Starts pollers and schedule.
    async fn run_functions(&mut self, seed: u64, schedule: Schedule, adversity: Adversity) {
        let variables = Variables::new(&local::aws::InMemoryAws::endpoint_url());
        let clocks = Arc::new(Clocks {
            clock: self.simulation.clock(),
            random: Mutex::new(Rng::with_seed(seed)),
            off_by: adversity.clocks_off_seconds,
        });
        for queue in Queue::LANES {
            let host = self.simulation.host(self.simulation.clock());
            let client = common::queues::client(&host.environment_of("webhook"), Patience::Bulk);
            let url = variables.get(queue.variable()).unwrap();
            let source = EventSource::open(client, &url, WEBHOOK_TIMEOUT).await.unwrap();
            let (kills, clocks, receivers) =
                (Arc::clone(&self.kills), Arc::clone(&clocks), Arc::clone(&self.receivers));
            let simulation = Arc::clone(&self.simulation);
            self.pollers.push(poll_with_fleet(source, adversity.instances.unwrap_or(INSTANCES), move || {
                let dialer = Arc::new(Dialer::new(&receivers, adversity.connections.unwrap_or(DESCRIPTORS)));
                let reach = Reach { policy: Policy::with_loopback(), dialer, ..Reach::public() };
                let clock = clocks.next();
                let transport = Transport::with_clock(reach, DEADLINE, clock.clone()).unwrap();
                let build = |service: &Service<'_>| webhook::worker(service, transport, schedule);
                Mortal {
                    function: simulation.host(clock).function("webhook", build).unwrap(),
                    kills: Arc::clone(&kills),
                }
            }));
        }
        let (kills, simulation) = (Arc::clone(&self.kills), Arc::clone(&self.simulation));
        self.tasks.spawn(async move {
            let mut runs = JoinSet::new();
            loop {
                sleep(Duration::from_secs(schedule.scaled(SWEEP_PERIOD.as_secs() as u32).into())).await;
                let build = |service: &Service<'_>| sweep::worker(service, schedule);
                let sweep = simulation.host(clocks.next()).function("sweep", build).unwrap();
                let kills = Arc::clone(&kills);
                runs.spawn(async move {
                    let run = timeout(SWEEP_TIMEOUT, sweep.work(Value::Null));
                    kills.surviving(run.boxed()).await.map(drop)
                });
                while runs.try_join_next().is_some() {}
            }
        });
    }

    fn run_events(&mut self, accounts: &[Account], fan_out: FanOut) {
        let fan_out = Arc::new(fan_out);
        let start = Instant::now() - self.receivers.elapsed();
        let mut number = 0;
        for (index, account) in accounts.iter().enumerate() {
            let user = user(index);
            let endpoints: Vec<(usize, EndpointId)> = self
                .endpoints
                .iter()
                .enumerate()
                .filter(|(_, endpoint)| endpoint.account_id == user)
                .map(|(number, endpoint)| (number, endpoint.id))
                .collect();
            // Events of the same time come in one batch from the feed.
            let mut batches: BTreeMap<Duration, Vec<u128>> = BTreeMap::new();
            for at in &account.events {
                number += 1;
                batches.entry(*at).or_default().push(number);
            }
            for (at, events) in batches {
                let (fan_out, clock, sent, endpoints) =
                    (Arc::clone(&fan_out), self.simulation.clock(), Arc::clone(&self.sent), endpoints.clone());
                let receivers = Arc::clone(&self.receivers);
                self.tasks.spawn(async move {
                    sleep_until(start + at).await;
                    let mut left: Vec<(u128, Event)> =
                        events.iter().map(|event| (*event, event_of(*event, user, clock.now()))).collect();
                    while !left.is_empty() {
                        let outcomes = fan_out.apply(left.clone(), clock.now()).await;
                        let failed: Vec<u128> =
                            outcomes.iter().filter(|(_, outcome)| outcome.is_err()).map(|(event, _)| *event).collect();
                        for (event, _) in left.iter().filter(|(event, _)| !failed.contains(event)) {
                            let ids = endpoints.iter().map(|(number, id)| {
                                (delivery_id(uuid(*event).into(), *id), (*number, receivers.elapsed()))
                            });
                            sent.lock().unwrap().extend(ids);
                        }
                        left.retain(|(event, _)| failed.contains(event));
                        sleep(Duration::from_secs(u64::from(!left.is_empty()))).await;
                    }
                });
            }
        }
    }

    fn run_disasters(&mut self, seed: u64, adversity: Adversity, until: Duration) {
        let mut random = Rng::with_seed(seed ^ 0x5eed);
        let mut at = || until.mul_f64(0.05 + 0.35 * random.f64());
        let outages: Vec<Duration> = (0..adversity.outages).map(|_| at()).collect();
        let kills: Vec<Duration> = (0..adversity.kills).map(|_| at()).collect();
        let simulation = Arc::clone(&self.simulation);
        let (receivers, died) = (Arc::clone(&self.receivers), Arc::clone(&self.disasters));
        let start = Instant::now() - self.receivers.elapsed();
        self.tasks.spawn(async move {
            let mut outages = outages;
            outages.sort_unstable();
            for at in outages {
                sleep_until(start + at).await;
                simulation.aws.faults().set(Faults { is_throttling: true, ..adversity.faults });
                sleep(adversity.throttled_for).await;
                simulation.aws.faults().set(adversity.faults);
                died.lock().unwrap().push(receivers.elapsed());
            }
        });
        let all = Arc::clone(&self.kills);
        self.tasks.spawn(async move {
            let mut kills = kills;
            kills.sort_unstable();
            for at in kills {
                sleep_until(start + at).await;
                all.number.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

/// Returns the endpoint of the receiver with this number. Its id is not random, so that the order of all ids is the same
/// in each run.
async fn endpoint(admin: &WebhookAdmin, account_id: UserId, number: usize, is_prompt: bool) -> WebhookEndpoint {
    let (id, now) =
        (uuid(10_000 + number as u128).into(), admin.clock.now().plus_millis(i64::try_from(number).unwrap()));
    let sealed = admin.keyring.seal(id, &EndpointSecret::from_bits([7; 32])).await.unwrap();
    WebhookEndpoint {
        id,
        account_id,
        url: Receivers::url(number),
        events: [EventKind::ListingSold].into(),
        switch: Switch::On,
        disabled_at: None,
        epoch: 1,
        created_at: now,
        secrets: Secrets::first(sealed, now),
        secret_version: 1,
        is_prompt,
        warning: None,
        host_changed_at: None,
    }
}

/// Returns the user of an account.
pub(crate) fn user(account: usize) -> UserId {
    uuid(1_000 + account as u128).into()
}

fn event_of(number: u128, user: UserId, now: Timestamp) -> Event {
    match parse(&sale(number, user).to_string(), now) {
        Ok(Message::Event(event)) => event,
        other => panic!("not an event: {other:?}"),
    }
}

fn service(simulation: &Simulation, schedule: Schedule) -> (WebhookAdmin, FanOut) {
    let host = simulation.host(simulation.clock());
    let admin = |service: &Service<'_>| {
        let (sqs, [slow]) = common::queues::from_service(service, [Queue::WebhooksSlow])?;
        let store = WebhookStore::from_service(service, Patience::Bulk, preflight::get)?;
        Ok(WebhookAdmin {
            drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), schedule),
            store,
            keyring: KeyringCache::from_service(service)?,
            policy: Policy::with_loopback(),
            clock: simulation.clock(),
        })
    };
    let fan_out = |service: &Service<'_>| {
        let store = WebhookStore::from_service(service, Patience::Request, preflight::batch_get)?;
        let (sqs, [first, retry]) =
            common::queues::from_service(service, [Queue::WebhooksFirst, Queue::WebhooksRetry])?;
        Ok(FanOut::new(store, Queues::new(sqs, [(Lane::First, first), (Lane::Retry, retry)])))
    };
    (host.unobserved(admin).unwrap(), host.function("ingest", fan_out).unwrap())
}

/// The clocks of instances.
struct Clocks {
    clock: Arc<SimulatedClock>,
    random: Mutex<Rng>,
    off_by: i64,
}

struct WrongClock {
    clock: Arc<SimulatedClock>,
    off_by_millis: i64,
}

impl Clocks {
    fn next(&self) -> Arc<dyn Clock> {
        let off_by_millis = self.random.lock().unwrap().i64(-self.off_by * 1_000..=self.off_by * 1_000);
        Arc::new(WrongClock { clock: Arc::clone(&self.clock), off_by_millis })
    }
}

impl Clock for WrongClock {
    fn now(&self) -> Timestamp {
        self.clock.now().plus_millis(self.off_by_millis)
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }
}

/// Stops instances.
struct Kills {
    /// How often everything that runs was to stop.
    number: AtomicU64,
    random: Mutex<Rng>,
    receivers: Arc<Receivers>,
    died: Arc<Mutex<Vec<Duration>>>,
}

impl Kills {
    /// Runs a process until it ends, or until a few steps after it is to stop.
    async fn surviving<F: Future + Unpin>(&self, mut process: F) -> Option<F::Output> {
        let (born, mut steps) = (self.number.load(Ordering::Relaxed), self.random.lock().unwrap().u32(0..8));
        std::future::poll_fn(move |context| {
            let polled = process.poll_unpin(context);
            if polled.is_pending() && self.number.load(Ordering::Relaxed) != born {
                if steps == 0 {
                    self.died.lock().unwrap().push(self.receivers.elapsed());
                    return std::task::Poll::Ready(None);
                }
                steps -= 1;
            }
            polled.map(Some)
        })
        .await
    }
}

/// An instance that may be stopped.
struct Mortal {
    function: Webhook,
    kills: Arc<Kills>,
}

impl Worker for Mortal {
    type Event = SqsEvent;
    type Response = aws_lambda_events::sqs::SqsBatchResponse;

    async fn work(&self, event: SqsEvent) -> Result<Self::Response, Error> {
        self.kills.surviving(self.function.work(event).boxed()).await.unwrap_or_else(|| Err("it was stopped".into()))
    }
}
