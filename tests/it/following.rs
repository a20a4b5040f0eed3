//! Instances that follow a log which grows fast, on simulated time: what they take of its throughput, and that their
//! answers are right although eventually consistent Queries lag.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use admin::keys::NewKey;
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits};
use local::simulation::SimulatedInstance;
use market::Log;
use serde_json::Value;
use tests::{Simulation, get_from, listing, uuid};
use tokio::time::{MissedTickBehavior, interval, sleep};
use types::records::PublicListing;
use types::scope::{Scope, Tier};

const MARKET: &str = "marketplace-market";
const LOG: &str = "log#listings#0";
/// How many listings a round changes, in one transaction, and how often a round begins: a thousand changes a second.
const LISTINGS: u32 = 50;
const ROUND_INTERVAL: Duration = Duration::from_millis(50);
const ROUNDS: u32 = 160;
/// How long every call to the store takes.
const ROUND_TRIP: Duration = Duration::from_millis(20);
/// How old an answer may be (specification 1.3.1).
const MAX_STALENESS: Duration = Duration::from_secs(2);
const DEAREST: &str = "/v1/public/listings?sort=price_desc&page_size=1";

/// A market whose listings cost as many cents as there were rounds.
struct BusyMarket {
    simulation: Simulation,
    /// When each round was acknowledged.
    acknowledged: RefCell<Vec<Duration>>,
    is_over: Cell<bool>,
}

impl BusyMarket {
    /// Writes the first round. From then on, eventually consistent Queries may lag by this much.
    async fn new(lag: Duration) -> Self {
        let simulation = Simulation::new().await;
        let market = Self { simulation, acknowledged: RefCell::default(), is_over: Cell::default() };
        market.write_round(1).await;
        let latency = Latency::always(ROUND_TRIP);
        let limits = Limits { latency, transaction_latency: latency, lag, ..Limits::unlimited() };
        market.simulation.aws.limits().set(limits);
        market
    }

    /// Starts an instance, and makes a key for it.
    async fn start(&self) -> (SimulatedInstance, String) {
        let mut instance = self.simulation.cold("listings", listings::api);
        instance.init().await.unwrap();
        let new = NewKey {
            user_id: uuid(1).into(),
            name: None,
            tier: Tier::Free,
            limit_override: Some(10_000),
            scopes: [Scope::ListingsRead].into_iter().collect(),
            expires_at: None,
        };
        (instance, self.simulation.key_with(new).await.0)
    }

    async fn write_round(&self, round: u32) {
        let price = format!("{}.{:02}", round / 100, round % 100);
        let change = |number| listing(number, &price, "2026-11-20T10:00:00Z", round.into());
        let changes: Vec<Value> = (1..=LISTINGS).map(change).collect();
        self.simulation.feed(&changes).await;
        self.acknowledged.borrow_mut().push(self.simulation.elapsed());
    }

    /// Writes the other rounds, and ends when every instance must show the last one.
    async fn write(&self) {
        let mut rounds = interval(ROUND_INTERVAL);
        rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for round in 2..=ROUNDS {
            rounds.tick().await;
            self.write_round(round).await;
        }
        sleep(MAX_STALENESS).await;
        self.is_over.set(true);
    }

    /// Asks an instance again and again. Each answer takes one round trip once the instance knows the key, and shows every
    /// round that was acknowledged two seconds before it was asked for.
    async fn ask(&self, instance: &SimulatedInstance, key: &str, pause: Duration) {
        assert_eq!(get_from(instance, key, DEAREST).await.status, 200);
        while !self.is_over.get() {
            sleep(pause).await;
            let asked = self.simulation.elapsed();
            let reply = get_from(instance, key, DEAREST).await;
            assert_eq!(reply.status, 200, "{:?}", reply.json());
            let took = self.simulation.since(asked);
            assert!(took < 2 * ROUND_TRIP, "asked every {pause:?}, it took {took:?}");
            let price = reply.json()["items"][0]["price_usd"].as_str().unwrap().replace('.', "");
            let shown: usize = price.parse().unwrap();
            let due = self.acknowledged.borrow().iter().filter(|at| **at + MAX_STALENESS <= asked).count();
            assert!(shown >= due, "asked every {pause:?}, it shows round {shown} and not {due}");
        }
    }

    /// Reads the log after a sequence number strongly consistently, and returns what that costs.
    async fn price_of_log_after(&self, mut seq: u64) -> f64 {
        let log = Log::<PublicListing>::new(self.simulation.admin.stores().market);
        self.simulation.aws.limits().take_report();
        loop {
            let (batches, more) = log.since(seq).await.unwrap();
            seq = batches.last().map_or(seq, |(last, _)| *last);
            if !more {
                return self.log_units();
            }
        }
    }

    /// Returns the read units of the log since this was last asked.
    fn log_units(&self) -> f64 {
        self.simulation.aws.limits().take_report().units(MARKET, LOG).read
    }
}

/// Has an instance follow the log for each of these pauses between its requests. Returns what one of them takes of the
/// log's throughput on average, as a share of what the log itself costs.
async fn follow(lag: Duration, pauses: &[Duration]) -> f64 {
    let market = BusyMarket::new(lag).await;
    let instances = join_all(pauses.iter().map(|_| market.start())).await;
    let log = Log::<PublicListing>::new(market.simulation.admin.stores().market);
    let start = log.head().await.unwrap();
    market.log_units();
    let asked = instances.iter().zip(pauses).map(|((instance, key), pause)| market.ask(instance, key, *pause));
    tokio::join!(market.write(), join_all(asked));
    let taken = market.log_units();
    let instances = u32::try_from(pauses.len()).unwrap();
    taken / f64::from(instances) / market.price_of_log_after(start).await
}

#[tokio::test(start_paused = true)]
async fn an_instance_that_follows_a_fast_log_takes_at_most_three_quarters_of_its_price() {
    let share = follow(Duration::from_millis(20), &[Duration::from_millis(50); 4]).await;
    assert!((0.5..=0.75).contains(&share), "{share}");
}

#[tokio::test(start_paused = true)]
async fn answers_are_less_than_two_seconds_old_though_eventually_consistent_queries_lag() {
    let pauses = [20, 130, 450, 700, 1_100, 1_700].map(Duration::from_millis);
    follow(Duration::from_millis(1_500), &pauses).await;
}
