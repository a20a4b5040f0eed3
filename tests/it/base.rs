//! The base that replicas start from: when it is written, what it saves, and that answers are right without it.
//!
//! Bases that are made from more entities than one run reads or one buffer holds.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;
use common::clock::Clock;
use common::records::PublicListing;
use common::store::Row;
use market::{ENTITY_PARTITIONS, Log, Manifest, Rebuild};
use replica::base::{Columnar, Columns, Compacted, Compaction, Load, RebuildLimits, Thresholds};
use serde_json::Value;
use tests::{
    Fault, Proxy, RunningInstance, Simulation, Stack, assert_base_is_exact, base_bucket, compaction, dynamodb, listing,
    sold_listing, uuid,
};

const MARKET_TABLE: &str = "marketplace-market";
const WEEK: Duration = Duration::from_hours(7 * 24);

async fn add_listings(stack: &Stack, numbers: std::ops::Range<u32>) {
    let listings: Vec<_> = numbers.map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
}

const fn written(records: u64, from_entities: bool) -> Compacted {
    Compacted::Written { records, parts: 1, from_entities }
}

async fn run(stack: &Stack) -> Compacted {
    compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap()
}

async fn ids(stack: &Stack, running: &RunningInstance) -> Vec<String> {
    let reply = running.client.get(&stack.full_key().await, "/v1/public/listings?page_size=100").await;
    assert_eq!(reply.status, 200, "{:?}", reply.json());
    assert_eq!(reply.json()["total"].as_u64(), Some(reply.ids().len() as u64));
    reply.ids()
}

fn expected(numbers: impl Iterator<Item = u128>) -> Vec<String> {
    numbers.map(|number| uuid(number).to_string()).collect()
}

/// Returns the table's items with this start of the partition key and this sort key.
async fn items(stack: &Stack, start: &str, sk: &str) -> Vec<Row> {
    let scan = dynamodb(stack).scan().table_name(MARKET_TABLE).send().await.unwrap();
    let text = |item: &Row, name: &str| item[name].as_s().unwrap().to_owned();
    scan.items().iter().filter(|item| text(item, "pk").starts_with(start) && text(item, "sk") == sk).cloned().collect()
}

fn json(manifest: &Manifest) -> String {
    serde_json::to_string(manifest).unwrap()
}

/// Sets or removes an attribute of the manifest's row.
async fn change_manifest(stack: &Stack, name: &str, text: Option<String>) {
    let mut row = items(stack, "head#listings", "manifest").await.remove(0);
    match text {
        Some(text) => row.insert(name.to_owned(), AttributeValue::S(text)),
        None => row.remove(name),
    };
    dynamodb(stack).put_item().table_name(MARKET_TABLE).set_item(Some(row)).send().await.unwrap();
}

/// Deletes the items that [`items`] returns.
async fn delete_items(stack: &Stack, start: &str, sk: &str) {
    for item in items(stack, start, sk).await {
        let delete = dynamodb(stack).delete_item().table_name(MARKET_TABLE);
        delete.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_start_reads_the_base_and_the_log_but_no_entity() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..30).await;
    assert_eq!(run(&stack).await, written(30, true));
    add_listings(&stack, 30..40).await;
    stack.feed(&[sold_listing(3, 2)]).await;
    // Deletes the entities, so that only base and log can answer.
    let entities: Vec<Row> = dynamodb(&stack).scan().table_name(MARKET_TABLE).send().await.unwrap().items().to_vec();
    for entity in entities.iter().filter(|item| item["pk"].as_s().unwrap().starts_with("entity#listings")) {
        let delete = dynamodb(&stack).delete_item().table_name(MARKET_TABLE);
        delete.key("pk", entity["pk"].clone()).key("sk", entity["sk"].clone()).send().await.unwrap();
    }
    let left = expected((0..40).filter(|number| *number != 3));
    assert_eq!(ids(&stack, &stack.instance().await).await, left);
    stack.clock.advance(WEEK);
    assert_eq!(run(&stack).await, written(39, false));
    assert_eq!(ids(&stack, &stack.instance().await).await, left, "after folding the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_base_is_due_after_more_than_a_thousand_changes_or_a_week() {
    let stack = Stack::new().await;
    assert_eq!(run(&stack).await, Compacted::Written { records: 0, parts: 0, from_entities: true });
    add_listings(&stack, 0..1_000).await;
    assert_eq!(run(&stack).await, Compacted::Idle { behind: 1_000 });
    add_listings(&stack, 1_000..1_001).await;
    assert_eq!(run(&stack).await, written(1_001, false));
    assert_eq!(run(&stack).await, Compacted::Idle { behind: 0 });
    let moment = Duration::from_millis(1);
    stack.clock.advance(WEEK.saturating_sub(moment));
    assert_eq!(run(&stack).await, Compacted::Idle { behind: 0 });
    stack.clock.advance(moment);
    assert_eq!(run(&stack).await, written(1_001, false));
    stack.clock.advance(WEEK);
    assert_eq!(run(&stack).await, written(1_001, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_base_harms_no_reader_and_the_next_instance_of_compact_repairs_it() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..9).await;
    run(&stack).await;
    let bucket = base_bucket(&stack.aws.endpoint_url);
    let breaks = ["another part", "an unreadable manifest", "no hash", "a part of nobody", "no generation"];
    for broken in breaks {
        let manifest = stack.manifest::<PublicListing>().await;
        match broken {
            "another part" => bucket.put(&manifest.parts[0].key, Bytes::from_static(b"\x01nonsense")).await.unwrap(),
            "an unreadable manifest" => change_manifest(&stack, "data", Some("nonsense".to_owned())).await,
            "no hash" => change_manifest(&stack, "data", Some(json(&manifest).replace("hash", "other"))).await,
            "a part of nobody" => change_manifest(&stack, "data", Some(json(&manifest).replace("/0", "/none"))).await,
            _ => change_manifest(&stack, "generation", None).await,
        }
        let running = stack.instance().await;
        assert_eq!(ids(&stack, &running).await, expected(0..9), "{broken}");
        // Without its generation, the manifest can still be read.
        let repaired = if broken == "no generation" { Compacted::Idle { behind: 0 } } else { written(9, true) };
        assert_eq!(run(&stack).await, repaired, "{broken}");
        assert_eq!(run(&stack).await, Compacted::Idle { behind: 0 });
    }
}

/// What was read once was trusted for as long as the instance stayed warm.
#[tokio::test(flavor = "multi_thread")]
async fn an_instance_of_compact_looks_at_everything_again_after_a_quarter_of_an_hour() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..9).await;
    let warm = compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone());
    assert_eq!(warm.run().await.unwrap(), written(9, true));
    assert_eq!(warm.run().await.unwrap(), Compacted::Idle { behind: 0 });
    let part = stack.manifest::<PublicListing>().await.parts.remove(0);
    base_bucket(&stack.aws.endpoint_url).put(&part.key, Bytes::from_static(b"lost")).await.unwrap();
    for (minutes, done) in [(14, Compacted::Idle { behind: 0 }), (1, written(9, true))] {
        stack.clock.advance(Duration::from_mins(minutes));
        assert_eq!(warm.run().await.unwrap(), done);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_log_entry_is_noticed_even_if_none_follows_it() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..5).await;
    run(&stack).await;
    add_listings(&stack, 5..7).await;
    delete_items(&stack, "log#listings", "00000000000000000002").await;
    let running = stack.instance().await;
    assert_eq!(ids(&stack, &running).await, expected(0..7));
    assert_eq!(run(&stack).await, written(7, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_begins_next_to_the_entries_that_have_expired() {
    let stack = Stack::new().await;
    for number in 0..40 {
        add_listings(&stack, number..number + 1).await;
    }
    for (expired, start) in [(21, 21), (38, 38), (39, 39)] {
        for seq in 1..=expired {
            delete_items(&stack, "log#listings", &format!("{seq:020}")).await;
        }
        let log = stack.log::<PublicListing>();
        assert_eq!(log.before_scan(40, stack.now()).await.unwrap(), start);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_completes_a_transaction_that_a_scan_saw_in_part() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..3).await;
    add_listings(&stack, 3..6).await;
    // A Query beside the last transaction may see its head and one of its entities, but not yet the other two.
    for number in [3, 5] {
        delete_items(&stack, "entity#listings", &uuid(number).to_string()).await;
    }
    assert_eq!(ids(&stack, &stack.instance().await).await, expected(0..6));
    assert_eq!(run(&stack).await, written(6, true));
    assert_eq!(ids(&stack, &stack.instance().await).await, expected(0..6), "from the base");
    assert_eq!(run(&stack).await, Compacted::Idle { behind: 0 });
}

/// A Query beside two transactions may see the head of the second one before a `GetItem` sees the entry of the first.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_shows_late_is_no_gap_for_a_scan() {
    let stack = Stack::new().await;
    for number in 0..3 {
        add_listings(&stack, number..number + 1).await;
    }
    let entry = items(&stack, "log#listings", &format!("{:020}", 2)).await.remove(0);
    delete_items(&stack, "log#listings", &format!("{:020}", 2)).await;
    delete_items(&stack, "entity#listings", &uuid(1).to_string()).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let log = Log::<PublicListing>::new(stack.stores_at(&proxy.url).market);
    let mut load = Load::new(log, base_bucket(&stack.aws.endpoint_url), stack.clock.clone());
    let show = async {
        // The Query for head and manifest, and the first look for the entry.
        proxy.wait_for_calls(2).await;
        dynamodb(&stack).put_item().table_name(MARKET_TABLE).set_item(Some(entry)).send().await.unwrap()
    };
    let (snapshot, _) = tokio::join!(load.step(), show);
    let records: usize = snapshot.unwrap().folded().iter().map(Columns::len).sum();
    assert_eq!(records, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_dies_at_any_step_harms_nothing() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..3).await;
    run(&stack).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for (number, steps) in (3..).zip((0..10).chain((12..44).step_by(8))) {
        add_listings(&stack, number..number + 1).await;
        // After a week a base is due.
        stack.clock.advance(WEEK);
        let mut left = steps;
        proxy.plan(move |_| {
            left -= 1;
            if left < 0 { Fault::Refuse } else { Fault::None }
        });
        let died: Compaction<PublicListing> = compaction(&proxy.url, stack.clock.clone());
        let outcome = died.run().await;
        let running = stack.instance().await;
        assert_eq!(ids(&stack, &running).await, expected(0..=u128::from(number)), "{outcome:?} after {steps} calls");
    }
    stack.clock.advance(WEEK);
    let again = run(&stack).await;
    assert!(matches!(again, Compacted::Written { records: 17, .. }), "{again:?}");
}

/// Each run reads one page of entities, which is a partition here.
const ONE_PAGE: RebuildLimits = RebuildLimits { read_units_per_second: 1_000_000, slice: Duration::ZERO };
const IN_ONE_RUN: RebuildLimits = RebuildLimits { slice: Duration::from_hours(1), ..ONE_PAGE };

fn limited(stack: &Stack, endpoint: &str, limits: RebuildLimits) -> Compaction<PublicListing> {
    let thresholds = Thresholds { min_changes: 200, ..Thresholds::default() };
    compaction(endpoint, stack.clock.clone()).with_limits(limits).with_thresholds(thresholds)
}

async fn run_with(stack: &Stack, limits: RebuildLimits) -> Compacted {
    limited(stack, &stack.aws.endpoint_url, limits).run().await.unwrap()
}

async fn progress(stack: &Stack) -> Option<Rebuild> {
    stack.log::<PublicListing>().rebuild().await.unwrap().rebuild
}

/// Returns listings whose order in a base is not that of their ids.
fn listings(numbers: std::ops::Range<u32>, version: u64) -> Vec<Value> {
    let time = |number: u32| format!("2026-11-20T10:00:{:02}Z", number * 7 % 60);
    numbers.map(|number| listing(number, &format!("{version}.00"), &time(number), version)).collect()
}

/// Asserts that base, deltas and log say what the entities say. Returns the records as they are read.
async fn assert_exact(stack: &Stack) -> Vec<PublicListing> {
    assert_base_is_exact(&stack.log(), base_bucket(&stack.aws.endpoint_url), stack.clock.clone()).await
}

/// Runs until all entities were read, and changes something after each run. Returns how many runs only read.
async fn runs_until_written(stack: &Stack, mut change: impl AsyncFnMut(u32)) -> u32 {
    let mut runs = 0;
    while let Compacted::Reading { .. } = run_with(stack, ONE_PAGE).await {
        change(runs).await;
        runs += 1;
    }
    runs
}

#[tokio::test(flavor = "multi_thread")]
async fn several_runs_share_a_rebuild_while_the_entities_change() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..300, 1)).await;
    let change = async |runs: u32| {
        let (some, removed) = (runs * 17..runs * 17 + 9, runs * 17 + 9);
        stack.feed(&listings(some, 2)).await;
        stack.feed(&[sold_listing(removed, 3)]).await;
        stack.feed(&listings(300 + runs..301 + runs, 1)).await;
    };
    assert_eq!(runs_until_written(&stack, change).await, ENTITY_PARTITIONS - 1);
    assert_exact(&stack).await;
    assert_eq!(progress(&stack).await, None);
    let manifest = stack.manifest::<PublicListing>().await;
    assert_eq!(manifest.end, stack.log::<PublicListing>().standing().await.unwrap().head);
    stack.feed(&listings(0..40, 7)).await;
    stack.clock.advance(WEEK);
    assert!(matches!(run_with(&stack, ONE_PAGE).await, Compacted::Written { from_entities: false, .. }));
    assert_eq!(stack.manifest::<PublicListing>().await.deltas.len(), 0);
    let folded = assert_exact(&stack).await;
    assert!(folded.is_sorted_by(|one, next| one.base_order(next).is_lt()), "parts are in the order of a base");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_that_is_cut_off_at_any_call_goes_on_from_there() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run_with(&stack, IN_ONE_RUN).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for (round, calls) in (2..).zip((8..260).step_by(28)) {
        stack.clock.advance(WEEK * 2);
        let due_at = stack.clock.now();
        stack.feed(&listings(0..20, round)).await;
        stack.feed(&[sold_listing(40 + round as u32, 2)]).await;
        let mut left = calls;
        proxy.plan(move |_| {
            left -= 1;
            if left < 0 { Fault::Refuse } else { Fault::None }
        });
        let cut_off = limited(&stack, &proxy.url, IN_ONE_RUN).run().await;
        assert_exact(&stack).await;
        // The lease runs out.
        stack.clock.advance(Duration::from_mins(2));
        stack.feed(&listings(30..40, round)).await;
        let begun = progress(&stack).await.filter(|rebuild| rebuild.began_at >= due_at);
        let outcome = run_with(&stack, IN_ONE_RUN).await;
        assert_exact(&stack).await;
        let scanned_at = stack.manifest::<PublicListing>().await.scanned_at;
        assert!(scanned_at >= due_at, "{outcome:?} after {cut_off:?} within {calls} calls");
        if let Some(begun) = begun {
            assert_eq!(scanned_at, begun.began_at, "what was read is not read again");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_present_base_is_continued_while_a_rebuild_is_under_way() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run_with(&stack, IN_ONE_RUN).await;
    stack.clock.advance(WEEK * 2);
    assert!(matches!(run_with(&stack, ONE_PAGE).await, Compacted::Written { from_entities: false, .. }), "a week old");
    assert!(matches!(run_with(&stack, ONE_PAGE).await, Compacted::Reading { .. }));
    stack.feed(&listings(60..361, 1)).await;
    let folded = run_with(&stack, ONE_PAGE).await;
    assert!(matches!(folded, Compacted::Written { records: 361, from_entities: false, .. }), "{folded:?}");
    let runs = runs_until_written(&stack, async |_| {}).await;
    assert_eq!(runs, ENTITY_PARTITIONS - 4, "each of the runs before has read a page too");
    assert_exact(&stack).await;
    assert_eq!(stack.manifest::<PublicListing>().await.scanned_at, stack.clock.now());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_present_base_that_cannot_be_continued_is_an_error_and_the_rebuild_goes_on() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run_with(&stack, IN_ONE_RUN).await;
    stack.clock.advance(WEEK * 2);
    run_with(&stack, ONE_PAGE).await;
    stack.feed(&listings(60..361, 1)).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.plan(|operation| if operation == "Query" { Fault::Invalid("log#listings") } else { Fault::None });
    let failed = limited(&stack, &proxy.url, ONE_PAGE).run().await;
    assert!(failed.is_err(), "an operator must see it: {failed:?}");
    assert_eq!(progress(&stack).await.unwrap().next.unwrap().partition, 2, "two pages are read");
    assert_exact(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_that_is_a_day_old_begins_anew() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run_with(&stack, ONE_PAGE).await;
    let began_at = progress(&stack).await.unwrap().began_at;
    stack.clock.advance(Duration::from_hours(23));
    run_with(&stack, ONE_PAGE).await;
    assert_eq!(progress(&stack).await.unwrap().began_at, began_at);
    stack.clock.advance(Duration::from_hours(1));
    run_with(&stack, ONE_PAGE).await;
    let anew = progress(&stack).await.unwrap();
    assert_eq!((anew.began_at, anew.next.unwrap().partition), (stack.clock.now(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_slice_is_read_again_from_the_entities() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run_with(&stack, ONE_PAGE).await;
    let damaged = progress(&stack).await.unwrap().slices.remove(0);
    let bucket = base_bucket(&stack.aws.endpoint_url);
    bucket.put(&damaged.key, Bytes::from_static(b"\x01nonsense")).await.unwrap();
    let outcome = run_with(&stack, IN_ONE_RUN).await;
    assert!(matches!(outcome, Compacted::Written { from_entities: true, .. }), "{outcome:?}");
    assert_exact(&stack).await;
}

#[tokio::test(start_paused = true)]
async fn the_entities_are_read_at_the_pace_that_is_set() {
    let simulation = Simulation::new().await;
    simulation.feed(&listings(0..60, 1)).await;
    let limits = RebuildLimits { read_units_per_second: 1, slice: Duration::from_hours(1) };
    let began = simulation.elapsed();
    let outcome = simulation.compaction::<PublicListing>().with_limits(limits).run().await.unwrap();
    assert!(matches!(outcome, Compacted::Written { .. }), "{outcome:?}");
    // Each partition takes at least a unit, and only after the last is there nothing to wait for.
    let took = simulation.since(began);
    assert!(took >= Duration::from_secs(u64::from(ENTITY_PARTITIONS) - 1), "{took:?}");
}
