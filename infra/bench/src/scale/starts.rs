//! Cold starts of `listings` on simulated time: one alone, many at once, and many before there is a base. Only the limits
//! and latencies of the emulated stores take time there, and computing takes none.

use std::sync::Arc;
use std::time::Duration;

use common::aws::{Environment, Patience};
use common::clock::Clock;
use common::records::PublicListing;
use common::timestamp::Timestamp;
use dynoxide::Database;
use futures_util::future::{try_join, try_join_all};
use http::Request;
use http::header::AUTHORIZATION;
use local::aws::InMemoryAws;
use local::aws::limits::{Limits, Report};
use local::demo::LargeMarket;
use local::environment::Variables;
use local::host::Host;
use local::seed::StackAdmin;
use local::simulation::{SimulatedClock, SimulatedInstance};
use replica::base::{Compacted, Compaction};
use serde::{Deserialize, Serialize};
use terminal::number_table;
use tokio::time::sleep;

use crate::cli::ReplicaStream;
use crate::figures::{Figures, Percentiles, megabytes, number, text};
use crate::scale::compaction::fill;
use crate::stack::{StreamStore, add_listings, authorization, write_base};

/// When simulations begin, in Unix milliseconds.
const ORIGIN_MILLIS: i64 = 1_795_176_000_000;
/// The changes behind the base. A run of `compact` leaves at most as many.
const TAIL_CHANGES: u64 = 3_000;
/// The largest market for many starts at once. All their loads are in memory at the same time.
const MAX_SIZE_FOR_CROWDS: u64 = 1_000_000;
/// A start that takes longer is an error.
const PATIENCE: Duration = Duration::from_mins(10);
/// How often `compact` runs.
const COMPACT_INTERVAL: Duration = Duration::from_mins(1);
/// The pause of a client after a 503.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Prices of us-east-1 in dollars per million, by "Amazon DynamoDB pricing" (on-demand) and "Amazon S3 pricing" (standard).
const READ_UNIT_DOLLARS: f64 = 0.125;
const WRITE_UNIT_DOLLARS: f64 = 0.625;
const GET_DOLLARS: f64 = 0.4;

/// Requests to instances, and what the stores were asked for meanwhile.
#[derive(Debug, Serialize)]
struct Requests {
    name: String,
    instances: usize,
    latency: Percentiles,
    longest_us: f64,
    /// Requests that were answered by 503.
    unavailable: u64,
    /// Calls that DynamoDB refused.
    refused: usize,
    /// Requests that S3 refused.
    slow_downs: u64,
    read_units: f64,
    gets: u64,
    read_bytes: u64,
    dollars: f64,
}

/// An AWS side in memory with the tables of a stack.
struct Simulation {
    database: Database,
    aws: InMemoryAws,
    admin: StackAdmin,
    clock: Arc<SimulatedClock>,
}

/// As much of an answer as is looked at.
#[derive(Deserialize)]
struct Page {
    total: u64,
}

impl Simulation {
    /// Starts an empty stack.
    async fn start() -> Result<Self, String> {
        let database = Database::memory().map_err(text)?;
        let aws = InMemoryAws::over(database.clone()).await.map_err(text)?;
        let clock = Arc::new(SimulatedClock::starting_at(Timestamp::from_millis(ORIGIN_MILLIS)));
        let admin = StackAdmin::with_environment(&aws.environment().map_err(text)?, clock.clone());
        admin.set_up(None).await?;
        Ok(Self { database, aws, admin, clock })
    }

    /// Returns an environment as a process of its own has it.
    fn environment(&self) -> Result<Environment, String> {
        self.aws.environment().map_err(text)
    }

    /// Builds an instance of `listings`. Nothing is loaded yet.
    fn cold_listings(&self) -> Result<SimulatedInstance, String> {
        let variables = Variables::new(&InMemoryAws::endpoint_url());
        let host = Host::with_environment(&variables, self.environment()?, self.clock.clone());
        SimulatedInstance::cold(&host, "listings", listings::api).map_err(text)
    }
}

/// Asks an instance for the first page of all listings. Returns how many there are in all, or `None` after a 503.
async fn ask(instance: &SimulatedInstance, key: &str) -> Result<Option<u64>, String> {
    let request = Request::get("/v1/public/listings?sort=price_asc").header(AUTHORIZATION, key);
    let response = instance.handle(&request.body(()).map_err(text)?).await.map_err(text)?;
    let body = response.body();
    match response.status().as_u16() {
        200 => serde_json::from_slice::<Page>(body).map(|page| Some(page.total)).map_err(text),
        503 => Ok(None),
        status => Err(format!("a request was answered {status}: {}", String::from_utf8_lossy(body))),
    }
}

/// Measures one start, and then many. Then the clock goes on as usual.
pub(super) async fn measure(size: u64, crowd: usize) -> Result<Figures, String> {
    tokio::time::pause();
    let measured = measure_simulated(size, crowd).await;
    tokio::time::resume();
    measured
}

async fn measure_simulated(size: u64, crowd: usize) -> Result<Figures, String> {
    let simulation = Simulation::start().await?;
    let (now, total) = (simulation.clock.now(), size + TAIL_CHANGES);
    let market = LargeMarket::new(size, now);
    write_base(&simulation.environment()?, &market, ReplicaStream::Listings).await?;
    add_listings(simulation.admin.stores(), &market, size..total, &*simulation.clock).await?;
    let mut keys = Vec::with_capacity(crowd);
    for _ in 0..crowd.max(1) {
        keys.push(authorization(&simulation.admin).await?);
    }
    let one = keys.get(..1).unwrap_or_default();
    let mut measured = vec![start_all(&simulation, "one start", one, total).await?];
    if size <= MAX_SIZE_FOR_CROWDS {
        measured.push(start_all(&simulation, &format!("{crowd} starts at once"), &keys, total).await?);
        drop(simulation);
        measured.push(start_all_without_base(&market, crowd).await?);
    }
    let table = Requests::table(&measured);
    let text = format!(
        "{size} listings and {TAIL_CHANGES} changes behind the base, under AWS's limits. Only the limits and latencies \
         of the stores take time. The base was written below the API. Crowds are not measured above \
         {MAX_SIZE_FOR_CROWDS} listings, for want of memory.\n\n{table}"
    );
    Figures::new(&measured, text)
}

/// Starts an instance for each key, all at the same time.
async fn start_all(simulation: &Simulation, name: &str, keys: &[String], total: u64) -> Result<Requests, String> {
    let limiter = simulation.aws.limits();
    limiter.set(Limits::aws());
    let started = try_join_all(keys.iter().map(|key| start(simulation, key, total))).await?;
    let report = limiter.take_report();
    limiter.lift();
    let unavailable = started.iter().map(|(_, unavailable)| unavailable).sum();
    let taken = started.iter().map(|(taken, _)| *taken).collect();
    Ok(Requests::new(name.to_owned(), keys.len(), taken, unavailable, &report))
}

/// Starts many instances at the same time while there is no base, as `compact` begins to make one.
async fn start_all_without_base(market: &LargeMarket, crowd: usize) -> Result<Requests, String> {
    let simulation = Simulation::start().await?;
    let size = market.size();
    // So that the log has begun.
    add_listings(simulation.admin.stores(), market, size..size + 1, &*simulation.clock).await?;
    fill(&simulation.database, market, 0)?;
    let mut keys = Vec::with_capacity(crowd);
    for _ in 0..crowd {
        keys.push(authorization(&simulation.admin).await?);
    }
    let name = format!("{crowd} without a base");
    let (requests, ()) = try_join(start_all(&simulation, &name, &keys, size + 1), compact(&simulation)).await?;
    Ok(requests)
}

/// Runs `compact` as its schedule does, until a base is in place.
async fn compact(simulation: &Simulation) -> Result<(), String> {
    let mut ticks = tokio::time::interval(COMPACT_INTERVAL);
    loop {
        ticks.tick().await;
        let store = StreamStore::<PublicListing>::open(&simulation.environment()?, Patience::Bulk);
        let compaction = Compaction::new(store.log, store.objects, simulation.clock.clone());
        match compaction.run().await {
            Ok(Compacted::Written { .. }) => return Ok(()),
            outcome => eprintln!("bench: compact: {outcome:?}"),
        }
    }
}

/// Starts an instance and asks it until it answers, which must be right. Returns how long that took, and how many
/// requests were 503 before. The instance ends then, because all of them together would need much memory.
async fn start(simulation: &Simulation, key: &str, total: u64) -> Result<(Duration, u64), String> {
    let began = simulation.clock.monotonic();
    let taken = || simulation.clock.monotonic().saturating_sub(began);
    let mut instance = simulation.cold_listings()?;
    instance.init().await.map_err(text)?;
    let mut unavailable = 0;
    while taken() < PATIENCE {
        match ask(&instance, key).await? {
            Some(found) if found == total => return Ok((taken(), unavailable)),
            Some(found) => return Err(format!("a start answered with {found} of {total} listings")),
            None => {
                unavailable += 1;
                sleep(RETRY_PAUSE).await;
            }
        }
    }
    Err(format!("a start was 503 {unavailable} times"))
}

impl Requests {
    fn new(name: String, instances: usize, taken: Vec<Duration>, unavailable: u64, report: &Report) -> Self {
        Self {
            name,
            instances,
            longest_us: taken.iter().max().map_or(0.0, |longest| longest.as_secs_f64() * 1e6),
            latency: Percentiles::from_samples(taken),
            unavailable,
            refused: report.refused.len(),
            slow_downs: report.objects.refused,
            read_units: report.total().read,
            gets: report.objects.gets,
            read_bytes: report.objects.read_bytes,
            dollars: dollars(report),
        }
    }

    /// Formats requests. What the stores were asked for is divided by the number of instances.
    fn table(all: &[Self]) -> String {
        let header = [
            "simulated",
            "p50 ms",
            "p99 ms",
            "longest ms",
            "503",
            "refused",
            "SlowDown",
            "read units each",
            "GETs each",
            "MB each",
            "dollars each",
        ];
        let rows = all.iter().map(|requests| {
            let each = |sum: f64| sum / requests.instances as f64;
            [
                requests.name.clone(),
                number(requests.latency.p50_us / 1e3),
                number(requests.latency.p99_us / 1e3),
                number(requests.longest_us / 1e3),
                requests.unavailable.to_string(),
                requests.refused.to_string(),
                requests.slow_downs.to_string(),
                number(each(requests.read_units)),
                number(each(requests.gets as f64)),
                megabytes(requests.read_bytes / (requests.instances as u64).max(1)),
                format!("{:.7}", each(requests.dollars)),
            ]
        });
        number_table(header, rows)
    }
}

/// Returns what the stores were paid for what a report counts. Nothing is put meanwhile.
fn dollars(report: &Report) -> f64 {
    let (units, gets) = (report.total(), report.objects.gets as f64);
    (units.read * READ_UNIT_DOLLARS + units.write * WRITE_UNIT_DOLLARS + gets * GET_DOLLARS) / 1e6
}
