//! The base that replicas start from: when it is written, what it saves, and that answers are right without it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base::{Compacted, Compaction};
use bytes::Bytes;
use market::{Log, Manifest};
use platform::store::Row;
use tests::{Fault, RunningInstance, Stack, base_bucket, compaction, dynamodb, listing, uuid};
use types::clock::Clock;
use types::records::PublicListing;

const MARKET_TABLE: &str = "marketplace-market";

fn listings_compaction(stack: &Stack) -> Compaction<PublicListing> {
    compaction(&stack.aws.endpoint_url, stack.clock.clone())
}

async fn add_listings(stack: &Stack, numbers: std::ops::Range<u32>) {
    let listings: Vec<_> = numbers.map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
}

const fn written(records: u64, from_entities: bool) -> Compacted {
    Compacted::Written { records, parts: 1, from_entities }
}

async fn run(compaction: &Compaction<PublicListing>) -> Compacted {
    compaction.run().await.unwrap()
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

/// Returns the manifest of the listings.
async fn manifest(stack: &Stack) -> Manifest {
    listings_log(stack).standing().await.unwrap().manifest.unwrap().unwrap()
}

fn listings_log(stack: &Stack) -> Log<PublicListing> {
    Log::new(stack.admin.stores().market)
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
    assert_eq!(run(&listings_compaction(&stack)).await, written(30, true));
    add_listings(&stack, 30..40).await;
    stack.feed(&[tests::sold_listing(3, 2)]).await;
    // Deletes the entities, so that only base and log can answer.
    let entities: Vec<Row> = dynamodb(&stack).scan().table_name(MARKET_TABLE).send().await.unwrap().items().to_vec();
    for entity in entities.iter().filter(|item| item["pk"].as_s().unwrap().starts_with("entity#listings")) {
        let delete = dynamodb(&stack).delete_item().table_name(MARKET_TABLE);
        delete.key("pk", entity["pk"].clone()).key("sk", entity["sk"].clone()).send().await.unwrap();
    }
    let left = expected((0..40).filter(|number| *number != 3));
    assert_eq!(ids(&stack, &stack.instance().await).await, left);
    stack.clock.advance(Duration::from_hours(7 * 24));
    assert_eq!(run(&listings_compaction(&stack)).await, written(39, false));
    assert_eq!(ids(&stack, &stack.instance().await).await, left, "after folding the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_base_is_due_after_more_than_a_thousand_changes_or_a_week() {
    let stack = Stack::new().await;
    let compaction = listings_compaction(&stack);
    assert_eq!(run(&compaction).await, Compacted::Written { records: 0, parts: 0, from_entities: true });
    add_listings(&stack, 0..1_000).await;
    assert_eq!(run(&compaction).await, Compacted::Idle { behind: 1_000 });
    add_listings(&stack, 1_000..1_001).await;
    assert_eq!(run(&compaction).await, written(1_001, false));
    assert_eq!(run(&compaction).await, Compacted::Idle { behind: 0 });
    let (week, moment) = (Duration::from_hours(7 * 24), Duration::from_millis(1));
    stack.clock.advance(week.saturating_sub(moment));
    assert_eq!(run(&compaction).await, Compacted::Idle { behind: 0 });
    stack.clock.advance(moment);
    assert_eq!(run(&compaction).await, written(1_001, false));
    stack.clock.advance(week);
    assert_eq!(run(&compaction).await, written(1_001, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_base_harms_no_reader_and_the_next_instance_of_compact_repairs_it() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..9).await;
    run(&listings_compaction(&stack)).await;
    let bucket = base_bucket(&stack.aws.endpoint_url);
    let breaks = ["another part", "an unreadable manifest", "no hash", "a part of nobody", "no generation"];
    for broken in breaks {
        let manifest = manifest(&stack).await;
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
        assert_eq!(run(&listings_compaction(&stack)).await, repaired, "{broken}");
        assert_eq!(run(&listings_compaction(&stack)).await, Compacted::Idle { behind: 0 });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_log_entry_is_noticed_even_if_none_follows_it() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..5).await;
    run(&listings_compaction(&stack)).await;
    add_listings(&stack, 5..7).await;
    delete_items(&stack, "log#listings", "00000000000000000002").await;
    let running = stack.instance().await;
    assert_eq!(ids(&stack, &running).await, expected(0..7));
    assert_eq!(run(&listings_compaction(&stack)).await, written(7, true));
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
    assert_eq!(run(&listings_compaction(&stack)).await, written(6, true));
    assert_eq!(ids(&stack, &stack.instance().await).await, expected(0..6), "from the base");
    assert_eq!(run(&listings_compaction(&stack)).await, Compacted::Idle { behind: 0 });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_dies_at_any_step_harms_nothing() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..3).await;
    run(&listings_compaction(&stack)).await;
    let proxy = tests::Proxy::start(&stack.aws.endpoint_url).await;
    for (number, steps) in (3..).zip((0..10).chain((12..44).step_by(8))) {
        add_listings(&stack, number..number + 1).await;
        // After a week a base is due.
        stack.clock.advance(Duration::from_hours(7 * 24));
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
    stack.clock.advance(Duration::from_hours(7 * 24));
    let again = run(&listings_compaction(&stack)).await;
    assert!(matches!(again, Compacted::Written { records: 17, .. }), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_runs_at_once_one_gives_way() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..3).await;
    let proxy = tests::Proxy::start(&stack.aws.endpoint_url).await;
    // Both start together and every call is slow, so both have read before either writes.
    let gate = Arc::new(tokio::sync::Barrier::new(2));
    let runs = (0..2).map(|_| {
        let (gate, one) = (gate.clone(), compaction::<PublicListing>(&proxy.url, stack.clock.clone()));
        async move {
            gate.wait().await;
            run(&one).await
        }
    });
    proxy.set_fault(Fault::Slow(Duration::from_millis(150)));
    let mut outcomes = futures_util::future::join_all(runs).await;
    outcomes.sort_by_key(|outcome| *outcome == Compacted::Overtaken);
    assert_eq!(outcomes, [written(3, true), Compacted::Overtaken]);
    let running = stack.instance().await;
    assert_eq!(ids(&stack, &running).await, expected(0..3));
}

#[tokio::test(flavor = "multi_thread")]
async fn bases_and_cold_starts_keep_up_with_writers() {
    let stack = Stack::new().await;
    let first = stack.instance().await;
    let done = std::sync::atomic::AtomicBool::new(false);
    let write = async {
        for round in 0..12u32 {
            let changes: Vec<_> = (0..250u32)
                .map(|n| match (n + round) % 5 {
                    0 => tests::sold_listing(n % 90, u64::from(round * 2 + 2)),
                    _ => {
                        listing(n % 90, &format!("{}.00", round + 1), "2026-11-20T10:00:00Z", u64::from(round * 2 + 1))
                    }
                })
                .collect();
            stack.feed_outcomes(&changes).await;
        }
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    };
    let compact = async {
        let compaction = listings_compaction(&stack);
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            // A week passes before each run, so that a base is always due.
            stack.clock.advance(Duration::from_hours(7 * 24));
            compaction.run().await.unwrap();
        }
    };
    let start = async {
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            ids(&stack, &stack.instance().await).await;
        }
    };
    tokio::join!(write, compact, start);
    first.wait(2);
    let fresh = stack.instance().await;
    let bare = from_entities(&stack).await;
    assert_eq!(ids(&stack, &first).await, bare);
    assert_eq!(ids(&stack, &fresh).await, bare);
}

/// Deletes the manifest, and returns what an instance that starts without a base answers.
async fn from_entities(stack: &Stack) -> Vec<String> {
    delete_items(stack, "head#listings", "manifest").await;
    let running = stack.instance().await;
    let now: types::timestamp::Timestamp = tests::NOON.parse().unwrap();
    assert_eq!(running.clock.now(), now);
    ids(stack, &running).await
}
