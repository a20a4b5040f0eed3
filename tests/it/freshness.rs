//! A committed change is seen on every instance within two seconds, whatever its clocks do.
//!
//! Instances that follow a log which grows fast, on simulated time: what they take of its throughput, and that their
//! answers are right although eventually consistent Queries lag.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use admin::keys::NewKey;
use aws_sdk_dynamodb::types::ReturnValue;
use common::records::{PublicItem, PublicListing};
use common::scope::Scope;
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits};
use local::simulation::SimulatedInstance;
use market::Log;
use serde_json::Value;
use tests::{
    AwsCall, Fault, Proxy, RunningInstance, Simulation, Stack, compaction, dynamodb, get_from, large_item, listing,
    new_key,
};
use tokio::time::{MissedTickBehavior, interval, sleep};

const MARKET_TABLE: &str = "marketplace-market";

async fn total(stack: &Stack, running: &RunningInstance) -> u64 {
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    reply.json()["total"].as_u64().unwrap()
}

fn queries(proxy: &Proxy) -> usize {
    AwsCall::count(&proxy.take_calls(), "Query")
}

async fn add_listing(stack: &Stack, number: u32) {
    stack.feed(&[listing(number, "1.00", "2026-11-20T10:00:00Z", 1)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_seen_once_a_second_has_passed_on_either_clock() {
    let stack = Stack::new().await;
    let (one, other) = (stack.instance().await, stack.instance().await);
    add_listing(&stack, 1).await;
    assert_eq!([total(&stack, &one).await, total(&stack, &other).await], [0, 0], "less than a second has passed");
    one.wait(1);
    other.wait(1);
    assert_eq!([total(&stack, &one).await, total(&stack, &other).await], [1, 1]);

    add_listing(&stack, 2).await;
    let frozen = one.clock.clone();
    frozen.set_wall("2026-11-20T12:00:02Z".parse().unwrap());
    assert_eq!(total(&stack, &one).await, 2, "although the monotonic clock stood still");

    add_listing(&stack, 3).await;
    frozen.set_wall("2026-11-20T11:59:00Z".parse().unwrap());
    assert_eq!(total(&stack, &one).await, 3, "although the wall clock went back");

    add_listing(&stack, 4).await;
    other.wait(1);
    other.clock.set_wall("2026-11-20T12:00:01Z".parse().unwrap());
    assert_eq!(total(&stack, &other).await, 4, "although the wall clock stood still");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_position_goes_back_between_two_instances_for_less_than_two_seconds() {
    let stack = Stack::new().await;
    let (one, other) = (stack.instance().await, stack.instance().await);
    let key = stack.full_key().await;
    let position = async |running: &RunningInstance| {
        let reply = running.client.get(&key, "/v1/public/listings").await;
        reply.header("x-log-position").parse::<u64>().unwrap()
    };
    let before = position(&other).await;
    add_listing(&stack, 1).await;
    one.wait(1);
    let shown = position(&one).await;
    assert_eq!([shown, position(&other).await], [before + 1, before]);
    other.clock.advance(Duration::from_millis(1_999));
    assert_eq!(position(&other).await, shown);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_catch_up_is_503_only_two_seconds_after_the_last_success() {
    let stack = Stack::new().await;
    add_listing(&stack, 1).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    assert_eq!(total(&stack, &running).await, 1);
    proxy.plan(|operation| if operation == "Query" { Fault::Refuse } else { Fault::None });
    running.clock.advance(Duration::from_millis(1_999));
    assert_eq!(total(&stack, &running).await, 1);
    running.clock.advance(Duration::from_millis(1));
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(reply.status, 503);
    proxy.set_fault(Fault::None);
    assert_eq!(total(&stack, &running).await, 1);
}

/// Asks an instance that is frozen for ten minutes in the middle of its first Query. Returns the total that it shows, and
/// how many Queries it made.
async fn asked_and_frozen(stack: &Stack, running: &RunningInstance, proxy: &Proxy) -> (u64, usize) {
    proxy.take_calls();
    let freeze = proxy.while_held("Query", 1, async { running.wait(600) });
    let (total, ()) = tokio::join!(total(stack, running), freeze);
    (total, queries(proxy))
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_the_instance_was_frozen_is_read_again() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    running.wait(1);
    assert_eq!(
        asked_and_frozen(&stack, &running, &proxy).await,
        (0, 2),
        "one Query before the freeze, and one after it"
    );

    // After a hundred changes in a second, the next Query is an eventually consistent one.
    let listings: Vec<_> = (1..=100).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    running.wait(1);
    assert_eq!(total(&stack, &running).await, 100);
    running.wait(1);
    let asked = asked_and_frozen(&stack, &running, &proxy).await;
    assert_eq!(asked, (100, 2), "that one, and a strongly consistent one after the freeze");
}

/// The answer is read while the key write is under way, which here takes more than a second.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_a_slow_key_write_is_read_again_if_it_has_become_old() {
    for (takes, shown) in [(1_099, 0), (1_100, 1)] {
        let stack = Stack::new().await;
        let (running, proxy) = stack.instance_behind_proxy().await;
        let key = stack.full_key().await;
        let total = async || running.client.get(&key, "/v1/public/listings").await.json()["total"].clone();
        assert_eq!(total().await, 0);
        add_listing(&stack, 1).await;
        running.clock.advance(Duration::from_millis(900));
        let pass = proxy.while_held("UpdateItem", 1, async { running.clock.advance(Duration::from_millis(takes)) });
        let (total, ()) = tokio::join!(total(), pass);
        assert_eq!(total, shown, "the key write took {takes} ms");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fast_log_is_read_by_one_query_in_each_of_two_requests() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    for (round, expected) in [(1, [1, 0, 0]), (2, [1, 1, 0]), (3, [1, 1, 0])] {
        let price = format!("{round}.00");
        let listings: Vec<_> = (1..=100).map(|number| listing(number, &price, "2026-11-20T10:00:00Z", round)).collect();
        stack.feed(&listings).await;
        running.wait(1);
        for (request, expected) in expected.into_iter().enumerate() {
            queries(&proxy);
            assert_eq!(total(&stack, &running).await, 100);
            assert_eq!(queries(&proxy), expected, "request {request} of round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gap_that_closes_while_the_replica_looks_again_costs_no_load() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    for number in 1..=3 {
        add_listing(&stack, number).await;
    }
    let (store, text) = (dynamodb(&stack), |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned()));
    let delete = store.delete_item().table_name(MARKET_TABLE).key("pk", text("log#listings#0"));
    let delete = delete.key("sk", text("00000000000000000002"));
    let entry = delete.return_values(ReturnValue::AllOld).send().await.unwrap().attributes;
    running.wait(1);
    proxy.take_calls();
    // The entry is there before the fourth look.
    let put_back = proxy.while_held("Query", 4, async {
        store.put_item().table_name(MARKET_TABLE).set_item(entry).send().await.unwrap();
    });
    let (total, ()) = tokio::join!(total(&stack, &running), put_back);
    assert_eq!(total, 3);
    assert_eq!(queries(&proxy), 4, "each of them of the log; a load would make many more");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backlog_is_worked_off_page_by_page_whatever_fails_in_between() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let (control, control_proxy) = stack.instance_behind_proxy().await;
    // The log has two pages of 1 MB.
    let items: Vec<_> = (0..375).map(|number| large_item(number, "x", 1)).collect();
    stack.feed(&items).await;
    let key = stack.full_key().await;
    let total = async |running: &RunningInstance| running.client.get(&key, "/v1/public/catalog?page_size=1").await;
    control.wait(2);
    queries(&control_proxy);
    assert_eq!(total(&control).await.json()["total"], 375);
    // After the first page, one Query asks for the base, and there is none.
    let pages = queries(&control_proxy) - 1;
    assert_eq!(pages, 2);

    running.wait(2);
    let mut first = true;
    proxy.plan(move |operation| {
        let passes = operation != "Query" || std::mem::take(&mut first);
        if passes { Fault::None } else { Fault::Refuse }
    });
    assert_eq!(total(&running).await.status, 503);
    proxy.set_fault(Fault::None);
    queries(&proxy);
    assert_eq!(total(&running).await.json()["total"], 375);
    assert_eq!(queries(&proxy), pages - 1, "the first page was kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thawed_instance_loads_the_base_if_it_is_nearer_than_the_end_of_the_log() {
    let stack = Stack::new().await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    // The log has more than five pages of 1 MB.
    let items: Vec<_> = (0..1_250).map(|number| large_item(number, "x", 1)).collect();
    stack.feed(&items).await;
    compaction::<PublicItem>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let key = stack.full_key().await;
    running.wait(600);
    queries(&proxy);
    let reply = running.client.get(&key, "/v1/public/catalog?page_size=1").await;
    assert_eq!(reply.json()["total"], 1_250, "{:?}", reply.json());
    assert_eq!(queries(&proxy), 3, "a page, where the base is, and then the load: the same. No log is behind the base");

    // Now the base is as old as the instance, so the log is read to its end.
    let renamed: Vec<_> = (0..375).map(|number| large_item(number, "y", 2)).collect();
    stack.feed(&renamed).await;
    running.wait(600);
    let reply = running.client.get(&key, "/v1/public/catalog?page_size=1&q=y").await;
    assert_eq!(reply.json()["total"], 375, "{:?}", reply.json());
    assert_eq!(queries(&proxy), 3, "a page, where the base is, and the other page");
}

const LOG: &str = "log#listings#0";
/// How many listings a round changes, in one transaction, and how often a round begins: a thousand changes a second.
const LISTINGS: u32 = 50;
const ROUND_INTERVAL: Duration = Duration::from_millis(50);
const ROUNDS: u32 = 100;
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
        // Keys that are made for one user at the same time contend for one row.
        let new = new_key(uuid::Uuid::new_v4().into(), &[Scope::ListingsRead]);
        let new = NewKey { limit_override: Some(10_000), ..new };
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
        self.simulation.aws.limits().take_report().units(MARKET_TABLE, LOG).read
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
