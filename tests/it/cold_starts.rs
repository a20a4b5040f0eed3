//! Instances of `listings` that start together on a store that pushes back, on simulated time.
//!
//! Instances that start while a writer is at work, on simulated time. Reads see half of the writer's transactions where
//! DynamoDB allows it, but an answer never shows half of one.

use std::cell::Cell;
use std::time::Duration;

use common::records::PublicListing;
use common::scope::Scope;
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits, ObjectLimits, Rate, Reason, Report};
use local::simulation::SimulatedInstance;
use replica::base::{Compacted, RebuildLimits, Thresholds};
use serde_json::{Value, json};
use tests::{HttpReply, Simulation, get_from, listing, sold_listing, uuid};
use tokio::time::sleep;
use uuid::Uuid;

const MARKET: &str = "marketplace-market";
/// How the partition keys of the log begin.
const LOG: &str = "log#listings";
/// The clients of an instance ask it for this long until it answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// A start is to answer right within this time.
const FIRST_ANSWER: Duration = Duration::from_secs(2);
/// More than the units of any call that a start makes. The last call that is admitted may go into debt by as much.
const LARGEST_CALL: f64 = 128.0;
const CHEAPEST: &str = "/v1/public/listings?sort=price_asc&page_size=3";

/// The crowd, and the market that it starts with. It stands for a market with a million listings: see [`crowd_limits`].
const CROWD: u32 = 100;
const CROWD_MARKET: Market = Market { base: 4_000, delta: 1_100, tail: 3_000 };
const MILLION: f64 = 1_000_000.0;
/// A million listings are at least this many parts, because a part has at most 131,072 records.
const PARTS_OF_A_MILLION: u32 = 8;

/// Read units of on-demand tables in us-east-1, by "Amazon DynamoDB pricing": $0.125 per million.
const DOLLARS_PER_READ_UNIT: f64 = 0.125 / MILLION;
/// GETs in us-east-1, by "Amazon S3 pricing": $0.0004 per thousand.
const DOLLARS_PER_GET: f64 = 0.000_4 / 1_000.0;
const MAX_DOLLARS_PER_START: f64 = 0.000_05;

/// How many listings are in the base, in the delta beside it if there is one, and only in the log behind both. A run of
/// `compact` leaves at most 3,000 changes in the log.
#[derive(Clone, Copy)]
struct Market {
    base: u32,
    delta: u32,
    tail: u32,
}

impl Market {
    const fn total(self) -> u32 {
        self.base + self.delta + self.tail
    }

    async fn write(self, simulation: &Simulation) {
        // The base is small, and the delta is not folded into it.
        let thresholds = Thresholds { records_per_change: 3, ..Thresholds::default() };
        let compaction = simulation.compaction::<PublicListing>().with_thresholds(thresholds);
        simulation.feed(&listings_numbered(simulation, 1..=self.base)).await;
        let compacted = compaction.run().await.unwrap();
        assert!(matches!(compacted, Compacted::Written { parts: 1, .. }), "{compacted:?}");
        let in_delta = self.base + self.delta;
        if self.delta > 0 {
            simulation.feed(&listings_numbered(simulation, self.base + 1..=in_delta)).await;
            let compacted = compaction.run().await.unwrap();
            assert_eq!(compacted, Compacted::Extended { changes: self.delta.into() });
        }
        simulation.feed(&listings_numbered(simulation, in_delta + 1..=self.total())).await;
    }
}

/// Returns AWS's limits. What a start reads from the tables does not depend on the size of the market. From the bucket,
/// it reads one part here for each part of a million listings, and as many bytes in proportion.
fn crowd_limits() -> Limits {
    let aws = Limits::aws();
    let gets = Rate::with_a_second(aws.objects.gets.per_second / f64::from(PARTS_OF_A_MILLION));
    let bytes_per_second = aws.objects.bytes_per_second * f64::from(CROWD_MARKET.base) / MILLION;
    Limits { objects: ObjectLimits { gets, bytes_per_second, ..aws.objects }, ..aws }
}

fn id(number: u32) -> Uuid {
    Uuid::from_u128(u128::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

/// Returns listings whose ids are as random as real ones. The first is the cheapest.
fn listings_numbered(simulation: &Simulation, numbers: impl Iterator<Item = u32>) -> Vec<Value> {
    let message = |number: u32| {
        let created_at = simulation.now().plus_millis(-1_000 * i64::from(number)).to_string();
        let mut message = listing(number, &format!("{}.{:02}", number / 100, number % 100), &created_at, 1);
        let id = id(number).to_string();
        (message["id"], message["id8"]) = (json!(id), json!(id[..8]));
        message
    };
    numbers.map(message).collect()
}

fn assert_right(reply: &HttpReply, market: Market) {
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    assert_eq!(reply.json()["total"], json!(market.total()));
    assert_eq!(reply.ids(), [1, 2, 3].map(|number| id(number).to_string()));
}

/// What the clients of an instance got from it.
struct Asked {
    /// When the first answer came, if one did.
    answered: Option<Duration>,
    /// How many requests were answered by 503 before.
    unavailable: u32,
}

/// An instance with its client.
struct Start<'a> {
    simulation: &'a Simulation,
    market: Market,
    instance: SimulatedInstance,
    key: &'a str,
    since: Duration,
}

impl<'a> Start<'a> {
    /// Starts an instance, and waits until its init phase has ended.
    async fn init(simulation: &'a Simulation, market: Market, key: &'a str) -> Self {
        let since = simulation.elapsed();
        let mut instance = simulation.cold("listings", listings::api);
        instance.init().await.unwrap();
        Self { simulation, market, instance, key, since }
    }

    /// Asks the instance until it answers. The answer must be right.
    async fn ask(&self) -> Asked {
        let (mut unavailable, asked) = (0, self.simulation.elapsed());
        while self.simulation.since(asked) < PATIENCE {
            let reply = get_from(&self.instance, self.key, CHEAPEST).await;
            if reply.status != 503 {
                assert_right(&reply, self.market);
                return Asked { answered: Some(self.simulation.since(self.since)), unavailable };
            }
            unavailable += 1;
            sleep(Duration::from_secs(reply.header("retry-after").parse().unwrap())).await;
        }
        Asked { answered: None, unavailable }
    }
}

/// Makes one key per client.
async fn keys(simulation: &Simulation, clients: u32) -> Vec<String> {
    join_all((0..clients).map(|_| simulation.key(&[Scope::ListingsRead]))).await
}

/// Returns the read units of these partitions of the market table.
fn units(report: &Report, is_counted: impl Fn(Option<&str>) -> bool) -> f64 {
    let of_market = report.consumed.iter().filter(|((resource, _), _)| resource.table == MARKET);
    of_market.filter(|((_, partition), _)| is_counted(partition.as_deref())).map(|(_, units)| units.read).sum()
}

/// Returns what each start of the crowd costs, if each part stands for the parts of a million listings.
fn dollars_per_start(report: &Report) -> f64 {
    let starts = f64::from(CROWD);
    let gets = u32::try_from(report.objects.gets).map_or(f64::MAX, f64::from) / starts;
    let further_parts = f64::from(PARTS_OF_A_MILLION - 1);
    report.total().read / starts * DOLLARS_PER_READ_UNIT + (gets + further_parts) * DOLLARS_PER_GET
}

#[tokio::test(start_paused = true)]
async fn a_hundred_starts_at_once_answer_right_in_time_and_at_their_price() {
    let simulation = Simulation::new().await;
    CROWD_MARKET.write(&simulation).await;
    let keys = keys(&simulation, CROWD).await;
    let limiter = simulation.aws.limits();

    limiter.set(crowd_limits());
    let simulation = &simulation;
    // Each instance ends after its answer, because all of them together would need much memory.
    let asked = keys.iter().map(|key| async move { Start::init(simulation, CROWD_MARKET, key).await.ask().await });
    let asked = join_all(asked).await;
    let report = limiter.take_report();
    for Asked { answered, unavailable } in &asked {
        assert_eq!(*unavailable, 0);
        assert!(answered.is_some_and(|answered| answered <= FIRST_ANSWER), "{answered:?}");
    }
    // A partition admits a burst of one second at first, and then its rate.
    let Rate { per_second, burst } = crowd_limits().partition.read;
    let admitted = burst + per_second * FIRST_ANSWER.as_secs_f64();
    let log = units(&report, |partition| partition.is_some_and(|partition| partition.starts_with(LOG)));
    assert!(0.0 < log && log <= admitted, "{log} of {admitted} units of the log");
    assert_eq!(report.refused_for(Reason::Table), 0, "{:?}", report.refused);
    // Each start looks for the bucket, and reads part and delta. No piece is read again, whatever else was refused.
    assert_eq!(report.objects.gets, u64::from(3 * CROWD), "{:?}", report.objects);
    let dollars = dollars_per_start(&report);
    assert!(dollars <= MAX_DOLLARS_PER_START, "{dollars} dollars a start");
}

#[tokio::test(start_paused = true)]
async fn starts_that_are_refused_for_long_never_answer_wrong_and_recover_when_the_limits_are_lifted() {
    const STARTS: u32 = 20;
    let market = Market { base: 3_000, delta: 0, tail: 300 };
    let simulation = Simulation::new().await;
    market.write(&simulation).await;
    let keys = keys(&simulation, STARTS).await;
    let limiter = simulation.aws.limits();

    let limits = Limits { only_table: Some(MARKET), ..Limits::aws().scaled(0.001) };
    limiter.set(limits);
    let (simulation, began) = (&simulation, simulation.elapsed());
    let crowd = keys.iter().map(|key| async move {
        let start = Start::init(simulation, market, key).await;
        start.ask().await;
        start
    });
    let crowd: Vec<Start<'_>> = join_all(crowd).await;
    let (took, report) = (simulation.since(began), limiter.take_report());
    assert!(report.refused_for(Reason::Partition) > 0);
    let Rate { per_second, burst } = limits.table.read;
    let admitted = burst + per_second * took.as_secs_f64() + LARGEST_CALL;
    let units = units(&report, |_| true);
    assert!(units <= admitted, "{units} of {admitted} units");

    limiter.lift();
    for start in &crowd {
        let asked = start.ask().await;
        assert!(asked.answered.is_some(), "503 {} times", asked.unavailable);
    }
}

/// How many histories are played. Each has other latencies.
const SEEDS: u64 = 4;
const WRITES: u32 = 48;
/// Listings by their number. No page holds more than this one can.
const ALL: &str = "/v1/public/listings?sort=price_asc&page_size=100";

/// A history that is being played.
struct History {
    simulation: Simulation,
    key: String,
    /// How many writes have begun, and how many of them were acknowledged.
    begun: Cell<u32>,
    done: Cell<u32>,
}

/// Returns the ids of the listings that are active after this many writes.
fn active(writes: u32) -> Vec<String> {
    (writes / 3 + 1..=writes).map(|number| uuid(u128::from(number)).to_string()).collect()
}

/// Returns limits that admit everything, with latencies that differ much, and eventually consistent Queries that lag.
fn limits(seed: u64) -> Limits {
    let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(60) };
    let transaction_latency = Latency { median: Duration::from_millis(15), p99: Duration::from_millis(90) };
    Limits { latency, transaction_latency, lag: Duration::from_millis(300), seed, ..Limits::unlimited() }
}

impl History {
    async fn new(seed: u64) -> Self {
        let simulation = Simulation::new().await;
        let key = simulation.key(&[Scope::ListingsRead]).await;
        simulation.aws.limits().set(limits(seed));
        Self { simulation, key, begun: Cell::default(), done: Cell::default() }
    }

    /// Writes the listings, one after the other. Each third transaction also ends the oldest one.
    async fn write(&self) {
        for number in 1..=WRITES {
            let price = format!("{}.{:02}", number / 100, number % 100);
            let mut batch = vec![listing(number, &price, "2026-11-20T10:00:00Z", 1)];
            if number.is_multiple_of(3) {
                batch.push(sold_listing(number / 3, 2));
            }
            self.begun.set(number);
            self.simulation.feed(&batch).await;
            self.done.set(number);
        }
    }

    /// Starts an instance after a while. Its first answer must show one state that was current meanwhile.
    async fn start_after(&self, pause: Duration) -> SimulatedInstance {
        sleep(pause).await;
        let done = self.done.get();
        let mut instance = self.simulation.cold("listings", listings::api);
        instance.init().await.unwrap();
        let shown = self.shown_by(&instance).await;
        let begun = self.begun.get();
        let is_state = (done..=begun).any(|writes| active(writes) == shown);
        assert!(is_state, "{shown:?} is the state of none of the writes {done} to {begun}");
        instance
    }

    async fn shown_by(&self, instance: &SimulatedInstance) -> Vec<String> {
        let reply = get_from(instance, &self.key, ALL).await;
        assert_eq!(reply.status, 200, "{:?}", reply.json());
        reply.ids()
    }

    /// Writes the first base while the writer is at work.
    async fn compact_after(&self, pause: Duration) {
        sleep(pause).await;
        self.simulation.compaction::<PublicListing>().run().await.unwrap();
    }

    /// Writes the first base while the writer is at work, in as many runs and from as many pieces as it can have.
    async fn compact_in_slices(&self) {
        let limits = RebuildLimits { slice: Duration::ZERO, ..RebuildLimits::default() };
        let compaction = self.simulation.compaction::<PublicListing>().with_limits(limits);
        let mut outcome = compaction.run().await.unwrap();
        while let Compacted::Reading { .. } = outcome {
            outcome = compaction.run().await.unwrap();
        }
        assert!(matches!(outcome, Compacted::Written { from_entities: true, .. }), "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_starts_beside_a_writer_shows_no_half_of_a_transaction() {
    for seed in 0..SEEDS {
        let history = History::new(seed).await;
        let [early, middle, late, last] = [20, 150, 400, 700].map(Duration::from_millis);
        let (one, two, three, four, (), ()) = tokio::join!(
            history.start_after(early),
            history.start_after(middle),
            history.start_after(late),
            history.start_after(last),
            history.write(),
            history.compact_after(middle),
        );
        sleep(Duration::from_secs(2)).await;
        for instance in [one, two, three, four] {
            assert_eq!(history.shown_by(&instance).await, active(WRITES), "with the seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_that_was_made_in_slices_beside_a_writer_is_exact() {
    for seed in 0..SEEDS {
        let history = History::new(seed).await;
        tokio::join!(history.write(), history.compact_in_slices());
        let instance = history.start_after(Duration::ZERO).await;
        assert_eq!(history.shown_by(&instance).await, active(WRITES), "with the seed {seed}");
    }
}
