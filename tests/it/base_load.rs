//! Loads and compactions that a store refuses in part: what was read stays, and what can be written is written.
//!
//! The bucket: a store that fails is told from an object that is not there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use bytes::Bytes;
use common::aws::{Environment, Patience};
use common::clock::Clock;
use common::preflight::Problem;
use common::records::{PublicItem, PublicListing};
use common::resources::BASE_BUCKET_VARIABLE;
use common::store::StoreError;
use local::environment::Variables;
use market::{Change, Log, Manifest, Market, Write, Writer, entity_row};
use replica::base::{Columns, Compacted, ListingColumns, Load, RebuildLimits, Thresholds};
use replica::objects::Objects;
use replica::{Replica, View};
use serde_json::json;
use tests::{
    AwsCall, Fault, Proxy, Simulation, Stack, base_bucket, compaction, dynamodb, large_item, listing, sold_listing,
    uuid,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::time::sleep;
use uuid::Uuid;

const WEEK: Duration = Duration::from_hours(7 * 24);

fn log<R: market::Record>(endpoint: &str) -> Log<R> {
    let variables = Variables::new(endpoint);
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    Log::new(Market::new(client, "marketplace-market".to_owned()))
}

async fn add_listings(stack: &Stack, numbers: std::ops::Range<u32>) {
    let listings: Vec<_> = numbers.map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
}

async fn compact(stack: &Stack, endpoint: &str) -> Compacted {
    compaction::<PublicListing>(endpoint, stack.clock.clone()).run().await.unwrap()
}

/// Leaves a base of two parts. The entities of the first one's listings are gone, so only the base knows them.
async fn two_parts(stack: &Stack) {
    add_listings(stack, 0..3).await;
    compact(stack, &stack.aws.endpoint_url).await;
    let mut parts = stack.manifest::<PublicListing>().await.parts;
    stack.feed(&(0..3).map(|number| sold_listing(number, 2)).collect::<Vec<_>>()).await;
    add_listings(stack, 3..6).await;
    stack.clock.advance(WEEK);
    compact(stack, &stack.aws.endpoint_url).await;
    let log = log::<PublicListing>(&stack.aws.endpoint_url);
    let standing = log.standing().await.unwrap();
    let present = stack.manifest::<PublicListing>().await;
    parts.extend(present.parts.clone());
    let both = Manifest { generation: uuid(0xb3), parts, records: 6, ..present };
    assert!(log.put_manifest(&both, &standing).await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_part_does_not_throw_the_load_away() {
    let stack = Stack::new().await;
    two_parts(&stack).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut load = Load::<PublicListing>::new(log(&proxy.url), base_bucket(&proxy.url), stack.clock.clone());
    let admitted = AtomicUsize::new(0);
    proxy.plan(move |operation| {
        let is_refused = operation == "GetObject" && admitted.fetch_add(1, Ordering::SeqCst) > 0;
        if is_refused { Fault::Error("SlowDown") } else { Fault::None }
    });
    let refused = load.step().await.map(drop);
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    proxy.set_fault(Fault::None);
    proxy.take_calls();
    let records = load.step().await.unwrap().folded();
    assert_eq!(AwsCall::count(&proxy.take_calls(), "GetObject"), 1, "only the part that was refused");
    assert_eq!(records.iter().map(Columns::len).sum::<usize>(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refused_page_of_the_entities_does_not_throw_the_others_away() {
    /// Four rows of this size are two pages.
    const BYTES: usize = 350_000;
    let stack = Stack::new().await;
    for number in 0..4 {
        let detail =
            json!({"id": format!("item-{number}"), "kind": "skin", "variants": [], "padding": "x".repeat(BYTES)});
        let write = Write::<PublicItem>::item(&serde_json::from_value(detail.clone()).unwrap(), 1).unwrap();
        let mut row = entity_row(&write, stack.now());
        row.insert("pk".to_owned(), AttributeValue::S("entity#catalog#3".to_owned()));
        row.insert("data".to_owned(), AttributeValue::S(detail.to_string()));
        dynamodb(&stack).put_item().table_name("marketplace-market").set_item(Some(row)).send().await.unwrap();
    }
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut load = Load::<PublicItem>::new(log(&proxy.url), base_bucket(&proxy.url), stack.clock.clone());
    // The later pages of a partition name the id behind which they begin.
    proxy.set_fault(Fault::Invalid("\"item-"));
    assert!(matches!(load.step().await.map(drop), Err(StoreError::InvalidRequest(_))));
    proxy.set_fault(Fault::None);
    proxy.take_calls();
    let records = load.step().await.unwrap().folded();
    assert_eq!(records.iter().map(Columns::len).sum::<usize>(), 4);
    let calls = proxy.take_calls();
    let pages = calls.iter().filter(|call| String::from_utf8_lossy(&call.body).contains("entity#catalog"));
    assert_eq!(pages.count(), 1, "only the page that was refused");
}

/// A crowd of starts takes no throughput from the run that all of them wait for.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_without_a_base_that_was_refused_waits_for_one_that_is_being_made() {
    for has_run_died in [false, true] {
        wait_for_a_base(has_run_died).await;
    }
}

async fn wait_for_a_base(has_run_died: bool) {
    let stack = Stack::new().await;
    add_listings(&stack, 0..6).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let log = log::<PublicListing>(&proxy.url);
    let mut load = Load::new(log.clone(), base_bucket(&proxy.url), stack.clock.clone());
    let run = Uuid::from_u128(1);
    assert!(log.take_lease(run, stack.now()).await.unwrap());

    let mut calls = 0;
    proxy.plan(move |operation| {
        calls += usize::from(operation == "Query");
        if calls > 10 { Fault::Error("ProvisionedThroughputExceededException") } else { Fault::None }
    });
    assert!(load.step().await.is_err(), "not all partitions could be read");
    proxy.set_fault(Fault::None);
    for _ in 0..3 {
        proxy.take_calls();
        assert_unavailable(&load.step().await.map(drop), "a base is being made");
        assert_eq!(proxy.take_operations(), ["Query"], "where the base is");
        stack.clock.advance(Duration::from_secs(4));
        assert!(log.take_lease(run, stack.now()).await.unwrap(), "it lives");
    }
    if has_run_died {
        stack.clock.advance(Duration::from_secs(5));
    } else {
        log.end_lease(run, stack.now()).await.unwrap();
    }
    let records = load.step().await.unwrap().folded();
    assert_eq!(records.iter().map(Columns::len).sum::<usize>(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_writer_that_was_throttled_keeps_the_head() {
    let stack = Stack::new().await;
    let (proxy, mut writer) = (Proxy::start(&stack.aws.endpoint_url).await, Writer::default());
    let log = log::<PublicListing>(&proxy.url);
    let mut is_first = true;
    proxy.plan(move |operation| {
        let is_throttled = operation == "TransactWriteItems" && std::mem::take(&mut is_first);
        if is_throttled { Fault::Cancelled("ThrottlingError") } else { Fault::None }
    });
    let changed = log.commit(&[Write::removal(uuid(1).into(), 1)], &mut writer, &*stack.clock).await.unwrap();
    assert_eq!(changed, [true]);
    assert_eq!(proxy.take_operations(), ["GetItem", "TransactWriteItems", "TransactWriteItems"]);
}

/// A reader looks back by what entries say of their time. A writer may lose races for minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_entry_has_the_time_of_the_try_that_succeeded() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let (clock, mut transactions) = (stack.clock.clone(), 0);
    proxy.plan(move |operation| {
        transactions += u32::from(operation == "TransactWriteItems");
        // Before the fourth entry, which is one of those that a reader looks at.
        if transactions != 4 || operation != "TransactWriteItems" {
            return Fault::None;
        }
        clock.advance(Duration::from_mins(10));
        Fault::Cancelled("TransactionConflict")
    });
    let log = log::<PublicListing>(&proxy.url);
    for number in 0..20 {
        let removal = [Write::removal(uuid(number).into(), 1)];
        log.commit(&removal, &mut Writer::default(), &*stack.clock).await.unwrap();
    }
    assert_eq!(log.before_scan(20, stack.now()).await.unwrap(), 0, "all entries are recent");
}

/// A view that only counts the records it was built from.
struct Counted(usize);

/// How many of these views there are, and how many there were at most.
static VIEWS: [AtomicUsize; 2] = [AtomicUsize::new(0), AtomicUsize::new(0)];

impl View for Counted {
    type Record = PublicListing;

    fn build(parts: Vec<ListingColumns>) -> Self {
        let views = VIEWS[0].fetch_add(1, Ordering::SeqCst) + 1;
        VIEWS[1].fetch_max(views, Ordering::SeqCst);
        Self(parts.iter().map(Columns::len).sum())
    }

    fn apply(&mut self, _: Vec<Change<PublicListing>>) {}
}

impl Drop for Counted {
    fn drop(&mut self) {
        VIEWS[0].fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_loaded_again_never_has_two_views() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    let replica = Replica::<Counted>::new(log(endpoint), base_bucket(endpoint), stack.clock.clone());
    assert_eq!(replica.read(|view| view.0).await.unwrap(), 0);
    for numbers in [0..1, 1..2, 2..3] {
        add_listings(&stack, numbers).await;
    }
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let delete = dynamodb(&stack).delete_item().table_name("marketplace-market").key("pk", text("log#listings#0"));
    delete.key("sk", text("00000000000000000002")).send().await.unwrap();
    stack.clock.advance(Duration::from_secs(3));
    assert_eq!(replica.read(|view| view.0).await.unwrap(), 3, "the gap made it load again");
    assert_eq!(VIEWS[1].load(Ordering::SeqCst), 1);
}

/// A view whose building ends only once the runtime has done something else, and likewise a page of many changes.
struct Waiting;

/// What such work waits for.
static WORKING: [Notify; 2] = [Notify::const_new(), Notify::const_new()];

/// Says that long work has begun, and waits until the runtime answers.
fn wait_for_runtime() {
    WORKING[0].notify_one();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(tokio::time::timeout(Duration::from_secs(20), WORKING[1].notified())).unwrap();
}

impl View for Waiting {
    type Record = PublicListing;

    fn build(_: Vec<ListingColumns>) -> Self {
        wait_for_runtime();
        Self
    }

    fn apply(&mut self, changes: Vec<Change<PublicListing>>) {
        if changes.len() > 500 {
            wait_for_runtime();
        }
    }
}

/// The runtime of a function has one thread.
#[tokio::test]
async fn the_runtime_goes_on_while_a_view_is_built_and_while_many_changes_are_applied() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    let replica = Replica::<Waiting>::new(log(endpoint), base_bucket(endpoint), stack.clock.clone());
    let read = async || {
        let elsewhere = async {
            WORKING[0].notified().await;
            WORKING[1].notify_one();
        };
        let (read, ()) = tokio::join!(replica.read(|_| ()), elsewhere);
        read.unwrap();
    };
    read().await;
    add_listings(&stack, 0..700).await;
    stack.clock.advance(Duration::from_secs(2));
    read().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_due_rebuild_that_fails_still_folds() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..9).await;
    compact(&stack, &stack.aws.endpoint_url).await;
    stack.clock.advance(WEEK * 2);
    add_listings(&stack, 9..2_009).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.plan(|operation| if operation == "Query" { Fault::Invalid("entity#listings") } else { Fault::None });
    let failed = compaction::<PublicListing>(&proxy.url, stack.clock.clone()).run().await;
    assert!(failed.is_err(), "an operator must see it: {failed:?}");
    let folded = stack.manifest::<PublicListing>().await;
    assert_eq!((folded.records, folded.deltas.len()), (2_009, 0));
    proxy.set_fault(Fault::None);
    let rebuilt = Compacted::Written { records: 2_009, parts: 1, from_entities: true };
    assert_eq!(compact(&stack, &proxy.url).await, rebuilt);
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_that_cannot_be_folded_do_not_fill_the_manifest() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let thresholds = Thresholds { min_changes: 0, records_per_change: 1_000, max_deltas: 2, most_deltas: 4 };
    let compaction = compaction::<PublicListing>(&proxy.url, stack.clock.clone()).with_thresholds(thresholds);
    add_listings(&stack, 0..1).await;
    compaction.run().await.unwrap();
    proxy.plan(|operation| if operation == "GetObject" { Fault::Error("SlowDown") } else { Fault::None });
    for number in 1..7 {
        add_listings(&stack, number..number + 1).await;
        compaction.run().await.unwrap_err();
    }
    assert_eq!(stack.manifest::<PublicListing>().await.deltas.len(), 4);
    proxy.set_fault(Fault::None);
    for records in [5, 7] {
        assert_eq!(compaction.run().await.unwrap(), Compacted::Written { records, parts: 1, from_entities: false });
    }
    assert!(stack.manifest::<PublicListing>().await.deltas.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_continue_a_base_until_they_are_a_tenth_of_it() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    let thresholds = Thresholds { min_changes: 100, ..Thresholds::default() };
    let compaction = compaction::<PublicListing>(endpoint, stack.clock.clone()).with_thresholds(thresholds);
    add_listings(&stack, 0..1_100).await;
    let written = |records, from_entities| Compacted::Written { records, parts: 1, from_entities };
    assert_eq!(compaction.run().await.unwrap(), written(1_100, true));
    // The last word about a listing counts, wherever it is.
    add_listings(&stack, 1_100..1_200).await;
    stack.feed(&[sold_listing(5, 2), sold_listing(1_100, 2)]).await;
    assert_eq!(compaction.run().await.unwrap(), Compacted::Extended { changes: 102 });
    stack.feed(&[listing(5, "2.00", "2026-11-20T10:00:00Z", 3), sold_listing(1_101, 2)]).await;
    let mut load = Load::<PublicListing>::new(log(endpoint), base_bucket(endpoint), stack.clock.clone());
    let count = |records: Vec<ListingColumns>| records.iter().map(Columns::len).sum::<usize>();
    assert_eq!(count(load.step().await.unwrap().folded()), 1_198);
    stack.clock.advance(WEEK);
    assert_eq!(compaction.run().await.unwrap(), written(1_198, false));
    assert!(stack.manifest::<PublicListing>().await.deltas.is_empty());
    assert_eq!(count(load.step().await.unwrap().folded()), 1_198);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_reads_at_most_two_pages_of_log() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for round in 1..=4 {
        // The log of a round is a bit longer than a page of 1 MB.
        let items: Vec<_> = (0..280).map(|number| large_item(number, "x", round)).collect();
        stack.feed(&items).await;
        let clock = stack.clock.clone();
        if round > 1 {
            let mut load = Load::<PublicItem>::new(log(&proxy.url), base_bucket(&proxy.url), clock.clone());
            proxy.take_calls();
            load.step().await.unwrap();
            let queries = AwsCall::count(&proxy.take_calls(), "Query");
            assert!(queries <= 3, "where the base is, and {} pages of log", queries - 1);
        }
        let thresholds = Thresholds { min_changes: 250, ..Thresholds::default() };
        let compaction = compaction::<PublicItem>(&stack.aws.endpoint_url, clock).with_thresholds(thresholds);
        compaction.run().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_at_a_time_reads_the_entities_while_others_continue_the_base() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    let log = log::<PublicListing>(endpoint);
    let run = Uuid::from_u128(1);
    let take = async || {
        assert!(log.take_lease(run, stack.now()).await.unwrap());
    };
    take().await;
    add_listings(&stack, 0..3).await;
    assert_eq!(compact(&stack, endpoint).await, Compacted::Overtaken);
    log.end_lease(run, stack.clock.now()).await.unwrap();
    let written = |records, from_entities| Compacted::Written { records, parts: 1, from_entities };
    assert_eq!(compact(&stack, endpoint).await, written(3, true));

    stack.clock.advance(WEEK * 2);
    take().await;
    add_listings(&stack, 3..4).await;
    assert_eq!(compact(&stack, endpoint).await, written(4, false));
    stack.clock.advance(Duration::from_mins(2));
    assert_eq!(compact(&stack, endpoint).await, written(4, true), "the lease has run out");
}

/// It used to meet its own lease, and no run made a base for sixteen minutes.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_the_lease_costs_nothing() {
    let stack = Stack::new().await;
    add_listings(&stack, 0..3).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut is_first = true;
    proxy.plan(move |operation| {
        let is_lost = operation == "PutItem" && std::mem::take(&mut is_first);
        if is_lost { Fault::LoseAnswer } else { Fault::None }
    });
    assert_eq!(compact(&stack, &proxy.url).await, Compacted::Written { records: 3, parts: 1, from_entities: true });
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_lease_for_as_long_as_it_reads_the_entities() {
    let simulation = Simulation::new().await;
    let items: Vec<_> = (0..200).map(|number| large_item(number, "x", 1)).collect();
    simulation.feed(&items).await;
    let limits = RebuildLimits { read_units_per_second: 1, ..RebuildLimits::at_once() };
    let slow = simulation.compaction::<PublicItem>().with_limits(limits);
    let other = async {
        sleep(Duration::from_secs(150)).await;
        simulation.compaction::<PublicItem>().run().await.unwrap()
    };
    let (outcome, other) = tokio::join!(slow.run(), other);
    assert_eq!(other, Compacted::Overtaken);
    assert_eq!(outcome.unwrap(), Compacted::Written { records: 200, parts: 1, from_entities: true });
}

fn client(endpoint: &str) -> replica::objects::Client {
    let variables = Variables::new(endpoint);
    replica::objects::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Request)
}

fn bucket_name() -> String {
    Variables::new("").get(BASE_BUCKET_VARIABLE).unwrap()
}

fn assert_unavailable<T: std::fmt::Debug>(result: &Result<T, StoreError>, reason: &str) {
    let is_so = matches!(result, Err(StoreError::Unavailable(text)) if text.contains(reason));
    assert!(is_so, "{reason}: {result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_put_is_read_and_the_last_put_counts() {
    let stack = Stack::new().await;
    let objects = base_bucket(&stack.aws.endpoint_url);
    assert_eq!(objects.get("listings/1").await.unwrap(), None);
    let large: Bytes = (0..4_u32 << 20).map(|index| (index % 251) as u8).collect();
    for bytes in [Bytes::from_static(b"first"), Bytes::new(), large] {
        objects.put("listings/1", bytes.clone()).await.unwrap();
        assert!(objects.get("listings/1").await.unwrap() == Some(bytes));
    }
    assert_eq!(objects.get("listings").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_missing_is_not_an_object_that_is_missing() {
    let stack = Stack::new().await;
    let client = client(&stack.aws.endpoint_url);
    let objects = Objects::new(client.clone(), "no-bucket".to_owned(), Patience::Request);
    assert_unavailable(&objects.get("key").await, "NoSuchBucket");
    assert_unavailable(&objects.put("key", Bytes::new()).await, "NoSuchBucket");
    assert_eq!(replica::objects::probe(&client, "no-bucket").await, Err(Problem::Missing));
    assert_eq!(replica::objects::probe(&client, &bucket_name()).await, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_pushes_back_is_asked_again_three_times_at_most() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let objects = base_bucket(&proxy.url);
    objects.put("key", Bytes::from_static(b"value")).await.unwrap();
    for fault in [Fault::Error("SlowDown"), Fault::Refuse] {
        let refused = Arc::new(AtomicUsize::new(0));
        let (counter, planned) = (Arc::clone(&refused), fault.clone());
        proxy.plan(move |_| if counter.fetch_add(1, Ordering::SeqCst) < 2 { planned.clone() } else { Fault::None });
        assert_eq!(objects.get("key").await.unwrap().as_deref(), Some(&b"value"[..]), "{fault:?}");
        assert_eq!(refused.load(Ordering::SeqCst), 3, "{fault:?}");
    }
    proxy.take_calls();
    proxy.set_fault(Fault::Error("SlowDown"));
    assert_unavailable(&objects.get("key").await, "SlowDown");
    assert_unavailable(&objects.put("key", Bytes::new()).await, "SlowDown");
    let calls = proxy.take_operations();
    assert_eq!(calls, ["GetObject", "GetObject", "GetObject", "PutObject", "PutObject", "PutObject"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_permission_is_named_and_not_asked_again() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.set_fault(Fault::Error("AccessDenied"));
    let problem = replica::objects::probe(&client(&proxy.url), &bucket_name()).await;
    assert_eq!(problem, Err(Problem::Denied("AccessDenied: injected".to_owned())));
    assert_unavailable(&base_bucket(&proxy.url).get("key").await, "AccessDenied");
    assert_eq!(proxy.take_calls().len(), 2);
    proxy.set_fault(Fault::Error("SlowDown"));
    let problem = replica::objects::probe(&client(&proxy.url), &bucket_name()).await;
    assert_eq!(problem, Err(Problem::Unreachable("SlowDown: injected".to_owned())));
}

/// A server that sends the head of each response and the first of its ten bytes, and then nothing.
async fn stalling() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nx").await.unwrap();
            open.push(stream);
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_never_ends_is_given_up() {
    assert_unavailable(&base_bucket(&stalling().await).get("key").await, "no answer within");
}
