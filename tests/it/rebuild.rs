//! Bases that are made from more entities than one run reads or one buffer holds.

use std::time::Duration;

use base::{Columnar, Compacted, Compaction, RebuildLimits};
use bytes::Bytes;
use market::{ENTITY_PARTITIONS, Log, Manifest, Rebuild};
use serde_json::Value;
use tests::{Fault, Proxy, Simulation, Stack, assert_base_is_exact, base_bucket, compaction, listing, sold_listing};
use types::clock::Clock;
use types::records::PublicListing;

const WEEK: Duration = Duration::from_hours(7 * 24);
/// Small enough that only a handful of listings are sorted at once.
const BUFFER_BYTES: usize = 4_000;
/// Each run reads one page of entities, which is a partition here.
const ONE_PAGE: RebuildLimits =
    RebuildLimits { buffer_bytes: BUFFER_BYTES, read_units_per_second: 1_000_000, slice: Duration::ZERO };
const IN_ONE_RUN: RebuildLimits = RebuildLimits { slice: Duration::from_hours(1), ..ONE_PAGE };

fn limited(stack: &Stack, endpoint: &str, limits: RebuildLimits) -> Compaction<PublicListing> {
    compaction(endpoint, stack.clock.clone()).with_limits(limits)
}

async fn run(stack: &Stack, limits: RebuildLimits) -> Compacted {
    limited(stack, &stack.aws.endpoint_url, limits).run().await.unwrap()
}

fn log(stack: &Stack) -> Log<PublicListing> {
    Log::new(stack.admin.stores().market)
}

async fn manifest(stack: &Stack) -> Manifest {
    log(stack).standing().await.unwrap().manifest.unwrap().unwrap()
}

async fn progress(stack: &Stack) -> Option<Rebuild> {
    log(stack).rebuild().await.unwrap().rebuild
}

/// Returns listings whose order in a base is not that of their ids.
fn listings(numbers: std::ops::Range<u32>, version: u64) -> Vec<Value> {
    let time = |number: u32| format!("2026-11-20T10:00:{:02}Z", number * 7 % 60);
    numbers.map(|number| listing(number, &format!("{version}.00"), &time(number), version)).collect()
}

/// Asserts that base, deltas and log say what the entities say. Returns the records as they are read.
async fn assert_exact(stack: &Stack) -> Vec<PublicListing> {
    assert_base_is_exact(&log(stack), base_bucket(&stack.aws.endpoint_url), stack.clock.clone()).await
}

/// Runs until all entities were read, and changes something after each run. Returns how many runs only read.
async fn runs_until_written(stack: &Stack, mut change: impl AsyncFnMut(u32)) -> u32 {
    let mut runs = 0;
    while let Compacted::Reading { .. } = run(stack, ONE_PAGE).await {
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
    let manifest = manifest(&stack).await;
    assert!(!manifest.deltas.is_empty(), "the log is larger than the buffer");
    assert_eq!(manifest.end, log(&stack).standing().await.unwrap().head);
    stack.feed(&listings(0..40, 7)).await;
    for left in [1, 0] {
        // A fold takes in what the buffer holds, and leaves the newer deltas.
        stack.clock.advance(WEEK);
        assert!(matches!(run(&stack, ONE_PAGE).await, Compacted::Written { from_entities: false, .. }));
        assert_eq!(self::manifest(&stack).await.deltas.len(), left);
        assert_exact(&stack).await;
    }
    let folded = assert_exact(&stack).await;
    assert!(folded.is_sorted_by(|one, next| one.base_order(next).is_lt()), "parts are in the order of a base");
}

#[tokio::test(flavor = "multi_thread")]
async fn no_sorted_run_is_larger_than_the_buffer() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..300, 1)).await;
    let compaction = limited(&stack, &stack.aws.endpoint_url, ONE_PAGE);
    let mut largest = 0;
    while let Compacted::Reading { records } = compaction.run().await.unwrap() {
        let runs = progress(&stack).await.unwrap().runs;
        assert_eq!(runs.iter().map(|run| run.records).sum::<u64>(), records);
        largest = runs.iter().map(|run| run.records).fold(largest, u64::max);
        assert!(runs.iter().all(|run| run.parts.len() as u64 >= run.records / 2), "parts are small");
    }
    let held = BUFFER_BYTES / size_of::<PublicListing>();
    assert!(largest > 1 && largest as usize <= held, "{largest} listings in a buffer for {held}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_that_is_cut_off_at_any_call_goes_on_from_there() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run(&stack, IN_ONE_RUN).await;
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
        stack.clock.advance(Duration::from_mins(20));
        stack.feed(&listings(30..40, round)).await;
        let begun = progress(&stack).await.filter(|rebuild| rebuild.began_at >= due_at);
        let outcome = run(&stack, IN_ONE_RUN).await;
        assert_exact(&stack).await;
        let scanned_at = manifest(&stack).await.scanned_at;
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
    run(&stack, IN_ONE_RUN).await;
    stack.clock.advance(WEEK * 2);
    assert!(matches!(run(&stack, ONE_PAGE).await, Compacted::Written { from_entities: false, .. }), "a week old");
    assert!(matches!(run(&stack, ONE_PAGE).await, Compacted::Reading { .. }));
    stack.feed(&listings(60..1_161, 1)).await;
    let folded = run(&stack, ONE_PAGE).await;
    assert!(matches!(folded, Compacted::Written { records: 1_161, from_entities: false, .. }), "{folded:?}");
    let runs = runs_until_written(&stack, async |_| {}).await;
    assert_eq!(runs, ENTITY_PARTITIONS - 4, "each of the runs before has read a page too");
    assert_exact(&stack).await;
    assert_eq!(manifest(&stack).await.scanned_at, stack.clock.now());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_present_base_that_cannot_be_continued_is_an_error_and_the_rebuild_goes_on() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run(&stack, IN_ONE_RUN).await;
    stack.clock.advance(WEEK * 2);
    run(&stack, ONE_PAGE).await;
    stack.feed(&listings(60..1_161, 1)).await;
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
    run(&stack, ONE_PAGE).await;
    let began_at = progress(&stack).await.unwrap().began_at;
    stack.clock.advance(Duration::from_hours(23));
    run(&stack, ONE_PAGE).await;
    assert_eq!(progress(&stack).await.unwrap().began_at, began_at);
    stack.clock.advance(Duration::from_hours(1));
    run(&stack, ONE_PAGE).await;
    let anew = progress(&stack).await.unwrap();
    assert_eq!((anew.began_at, anew.next.unwrap().partition), (stack.clock.now(), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_run_is_read_again_from_the_entities() {
    let stack = Stack::new().await;
    stack.feed(&listings(0..60, 1)).await;
    run(&stack, ONE_PAGE).await;
    let damaged = progress(&stack).await.unwrap().runs.remove(0).parts.remove(0);
    let bucket = base_bucket(&stack.aws.endpoint_url);
    bucket.put(&damaged.key, Bytes::from_static(b"\x01nonsense")).await.unwrap();
    let outcome = run(&stack, IN_ONE_RUN).await;
    assert!(matches!(outcome, Compacted::Written { from_entities: true, .. }), "{outcome:?}");
    assert_exact(&stack).await;
}

#[tokio::test(start_paused = true)]
async fn the_entities_are_read_at_the_pace_that_is_set() {
    let simulation = Simulation::new().await;
    simulation.feed(&listings(0..60, 1)).await;
    let limits = RebuildLimits { read_units_per_second: 1, slice: Duration::from_hours(1), ..ONE_PAGE };
    let began = simulation.elapsed();
    let outcome = simulation.compaction::<PublicListing>().with_limits(limits).run().await.unwrap();
    assert!(matches!(outcome, Compacted::Written { .. }), "{outcome:?}");
    // Each partition takes at least a unit, and only after the last is there nothing to wait for.
    let took = simulation.since(began);
    assert!(took >= Duration::from_secs(u64::from(ENTITY_PARTITIONS) - 1), "{took:?}");
}
