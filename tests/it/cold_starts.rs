//! Instances of `listings` that start together on a store that pushes back, on simulated time.

use std::time::Duration;

use base::Compacted;
use futures_util::future::join_all;
use local::aws::limits::{Limits, Rate, Report, Throughput};
use local::simulation::SimulatedInstance;
use serde_json::{Value, json};
use tests::{HttpReply, Simulation, get_from, listing};
use tokio::time::sleep;
use types::records::PublicListing;
use types::scope::Scope;
use uuid::Uuid;

const MARKET: &str = "marketplace-market";
/// The listings in the base, and those that are only in the log behind it.
const BASE: u32 = 20_000;
const TAIL: u32 = 300;
const STARTS: u32 = 20;
/// The clients of an instance ask it for this long until it answers.
const PATIENCE: Duration = Duration::from_secs(20);
/// More than the units of any call that a start makes. The last call that is admitted may go into debt by as much.
const LARGEST_CALL: f64 = 128.0;
const CHEAPEST: &str = "/v1/public/listings?sort=price_asc&page_size=3";

/// Returns the share of AWS's limits that these starts have of a hundred starts with a million listings. A chunk of the
/// base is as large there as here, so what a partition admits depends only on the number of starts.
fn limits() -> Limits {
    let starts = f64::from(STARTS) / 100.0;
    let listings = f64::from(BASE) / 1_000_000.0;
    let aws = Limits::aws();
    let (partition, table) = (aws.scaled(starts).partition, aws.scaled(starts * listings).table);
    Limits { partition, table, only_table: Some(MARKET), ..aws }
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

fn assert_right(reply: &HttpReply) {
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    assert_eq!(reply.json()["total"], json!(BASE + TAIL));
    assert_eq!(reply.ids(), [1, 2, 3].map(|number| id(number).to_string()));
}

/// What the clients of an instance got from it.
struct Asked {
    /// When the first answer came, if one did.
    answered: Option<Duration>,
    /// How many requests were answered by 503 before.
    unavailable: u32,
}

/// Asks an instance until it answers. The answer must be right.
async fn ask(simulation: &Simulation, instance: &SimulatedInstance, key: &str, since: Duration) -> Asked {
    let mut unavailable = 0;
    while simulation.since(since) < PATIENCE {
        let reply = get_from(instance, key, CHEAPEST).await;
        if reply.status != 503 {
            assert_right(&reply);
            return Asked { answered: Some(simulation.since(since)), unavailable };
        }
        unavailable += 1;
        sleep(Duration::from_secs(reply.header("retry-after").parse().unwrap())).await;
    }
    Asked { answered: None, unavailable }
}

/// Starts an instance, and asks it as soon as its init phase has ended.
async fn start(simulation: &Simulation, key: &str) -> (SimulatedInstance, Asked) {
    let since = simulation.elapsed();
    let mut instance = simulation.cold("listings", listings::api);
    instance.init().await.unwrap();
    let asked = ask(simulation, &instance, key, since).await;
    (instance, asked)
}

/// Returns the read units that the market table gave.
fn market_units(report: &Report) -> f64 {
    let of_market = report.consumed.iter().filter(|((resource, _), _)| resource.table == MARKET);
    of_market.map(|(_, units)| units.read).sum()
}

/// Prints what the starts took, to be compared with what other releases take.
fn print(what: &str, asked: &[&Asked], report: &Report) {
    let mut answered: Vec<Duration> = asked.iter().filter_map(|asked| asked.answered).collect();
    answered.sort_unstable();
    let (calls, units, refused) = (report.calls, market_units(report), report.refused.len());
    let unavailable: u32 = asked.iter().map(|asked| asked.unavailable).sum();
    println!(
        "{what}: {} of {} answered, the median after {:?} and the last after {:?}; {unavailable} times 503; {calls} \
         calls, {refused} refused; {units} read units of the market table",
        answered.len(),
        asked.len(),
        answered.get(answered.len() / 2),
        answered.last(),
    );
}

#[tokio::test(start_paused = true)]
async fn a_crowd_of_cold_starts_never_answers_wrong_and_recovers_when_the_limits_are_lifted() {
    let simulation = Simulation::new().await;
    simulation.feed(&listings_numbered(&simulation, 1..=BASE)).await;
    let compacted = simulation.compaction::<PublicListing>().run().await.unwrap();
    assert!(matches!(compacted, Compacted::Written { .. }), "{compacted:?}");
    simulation.feed(&listings_numbered(&simulation, BASE + 1..=BASE + TAIL)).await;
    let keys = join_all((0..STARTS).map(|_| simulation.key(&[Scope::ListingsRead]))).await;
    let limiter = simulation.aws.limits();

    let endless = Throughput { read: Rate::UNLIMITED, write: Rate::UNLIMITED };
    limiter.set(Limits { partition: endless, table: endless, ..limits() });
    let (_, alone) = start(&simulation, &keys[0]).await;
    let report = limiter.take_report();
    print("one start", &[&alone], &report);
    assert_eq!((alone.unavailable, report.refused.len()), (0, 0));
    assert!(alone.answered.is_some() && market_units(&report) > 0.0, "{report:?}");

    limiter.set(limits());
    let began = simulation.elapsed();
    let crowd = join_all(keys.iter().map(|key| start(&simulation, key))).await;
    let (took, report) = (simulation.since(began), limiter.take_report());
    print("a crowd", &crowd.iter().map(|(_, asked)| asked).collect::<Vec<_>>(), &report);
    let Rate { per_second, burst } = limits().table.read;
    let admitted = burst + per_second * took.as_secs_f64() + LARGEST_CALL;
    assert!(market_units(&report) <= admitted, "{} of {admitted} units", market_units(&report));

    limiter.lift();
    for ((instance, _), key) in crowd.iter().zip(&keys) {
        let asked = ask(&simulation, instance, key, simulation.elapsed()).await;
        assert!(asked.answered.is_some(), "503 {} times", asked.unavailable);
    }
}
