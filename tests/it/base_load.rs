//! Loads and compactions that a store refuses in part: what was read stays, and what can be written is written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base::{Columns, Compacted, ListingColumns, Load};
use local::environment::Variables;
use market::{ChangeOf, Log, Manifest, Market};
use platform::aws::{Environment, Patience};
use platform::store::StoreError;
use replica::{Replica, View};
use tests::{Fault, Proxy, Stack, base_bucket, compaction, dynamodb, item, listing, sold_listing, uuid};
use types::clock::Clock;
use types::records::{PublicItem, PublicListing};

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

async fn manifest(stack: &Stack) -> Manifest {
    log::<PublicListing>(&stack.aws.endpoint_url).standing().await.unwrap().manifest.unwrap().unwrap()
}

fn calls(proxy: &Proxy, operation: &str) -> usize {
    proxy.take_calls().iter().filter(|call| call.operation == operation).count()
}

/// Leaves a base of two parts. The entities of the first one's listings are gone, so only the base knows them.
async fn two_parts(stack: &Stack) {
    add_listings(stack, 0..3).await;
    compact(stack, &stack.aws.endpoint_url).await;
    let mut parts = manifest(stack).await.parts;
    stack.feed(&(0..3).map(|number| sold_listing(number, 2)).collect::<Vec<_>>()).await;
    add_listings(stack, 3..6).await;
    stack.clock.advance(WEEK);
    compact(stack, &stack.aws.endpoint_url).await;
    let log = log::<PublicListing>(&stack.aws.endpoint_url);
    let standing = log.standing().await.unwrap();
    let present = manifest(stack).await;
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
    assert_eq!(calls(&proxy, "GetObject"), 1, "only the part that was refused");
    assert_eq!(records.iter().map(Columns::len).sum::<usize>(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_is_refused_goes_on_by_itself() {
    let stack = Stack::new().await;
    two_parts(&stack).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let refused = AtomicUsize::new(0);
    proxy.plan(move |operation| {
        // The SDK asks three times before it gives up, and there are two parts.
        let is_refused = operation == "GetObject" && refused.fetch_add(1, Ordering::SeqCst) < 12;
        if is_refused { Fault::Error("SlowDown") } else { Fault::None }
    });
    let replica = Replica::<replica::Listings>::new(log(&proxy.url), base_bucket(&proxy.url), stack.clock.clone());
    replica.warm_up().await.unwrap();
    assert_eq!(calls(&proxy, "GetObject"), 12 + 2);
    assert_eq!(replica.gauge().unwrap().records, 6);
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

    fn apply(&mut self, _: Vec<ChangeOf<PublicListing>>) {}

    fn records(&self) -> usize {
        self.0
    }
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
    assert_eq!(replica.read(Counted::records).await.unwrap(), 0);
    for numbers in [0..1, 1..2, 2..3] {
        add_listings(&stack, numbers).await;
    }
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let delete = dynamodb(&stack).delete_item().table_name("marketplace-market").key("pk", text("log#listings#0"));
    delete.key("sk", text("00000000000000000002")).send().await.unwrap();
    stack.clock.advance(Duration::from_secs(1));
    assert_eq!(replica.read(Counted::records).await.unwrap(), 3, "the gap made it load again");
    assert_eq!(VIEWS[1].load(Ordering::SeqCst), 1);
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
    let folded = manifest(&stack).await;
    assert_eq!((folded.records, folded.deltas.len()), (2_009, 0));
    proxy.set_fault(Fault::None);
    let rebuilt = Compacted::Written { records: 2_009, parts: 1, from_entities: true };
    assert_eq!(compact(&stack, &proxy.url).await, rebuilt);
}

#[tokio::test(flavor = "multi_thread")]
async fn deltas_continue_a_base_until_they_are_a_tenth_of_it() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    add_listings(&stack, 0..11_000).await;
    let written = |records, from_entities| Compacted::Written { records, parts: 1, from_entities };
    assert_eq!(compact(&stack, endpoint).await, written(11_000, true));
    // The last word about a listing counts, wherever it is.
    add_listings(&stack, 11_000..12_000).await;
    stack.feed(&[sold_listing(5, 2), sold_listing(11_000, 2)]).await;
    assert_eq!(compact(&stack, endpoint).await, Compacted::Extended { changes: 1_002 });
    stack.feed(&[listing(5, "2.00", "2026-11-20T10:00:00Z", 3), sold_listing(11_001, 2)]).await;
    let mut load = Load::<PublicListing>::new(log(endpoint), base_bucket(endpoint), stack.clock.clone());
    let count = |records: Vec<ListingColumns>| records.iter().map(Columns::len).sum::<usize>();
    assert_eq!(count(load.step().await.unwrap().folded()), 11_998);
    stack.clock.advance(WEEK);
    assert_eq!(compact(&stack, endpoint).await, written(11_998, false));
    assert!(manifest(&stack).await.deltas.is_empty());
    assert_eq!(count(load.step().await.unwrap().folded()), 11_998);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_reads_at_most_two_pages_of_log() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    for round in 1..=4 {
        // Long names make the log of a round a bit longer than a page of 1 MB.
        let name = "x".repeat(1_000);
        let items: Vec<_> = (0..1_100).map(|n| item(&format!("i{n}"), "skin", Some(&name), round)).collect();
        stack.feed(&items).await;
        let clock = stack.clock.clone();
        if round > 1 {
            let mut load = Load::<PublicItem>::new(log(&proxy.url), base_bucket(&proxy.url), clock.clone());
            proxy.take_calls();
            load.step().await.unwrap();
            let queries = calls(&proxy, "Query");
            assert!(queries <= 3, "where the base is, and {} pages of log", queries - 1);
        }
        compaction::<PublicItem>(&stack.aws.endpoint_url, clock).run().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_run_at_a_time_reads_the_entities_while_others_continue_the_base() {
    let stack = Stack::new().await;
    let endpoint = &stack.aws.endpoint_url;
    let (log, minute) = (log::<PublicListing>(endpoint), Duration::from_mins(1));
    let take = async || {
        let now = stack.clock.now();
        let until = now.plus_millis(60_000);
        assert!(log.take_lease(now, until).await.unwrap());
        until
    };
    let until = take().await;
    add_listings(&stack, 0..3).await;
    assert_eq!(compact(&stack, endpoint).await, Compacted::Overtaken);
    log.end_lease(until, stack.clock.now()).await.unwrap();
    let written = |records, from_entities| Compacted::Written { records, parts: 1, from_entities };
    assert_eq!(compact(&stack, endpoint).await, written(3, true));

    stack.clock.advance(WEEK * 2);
    take().await;
    add_listings(&stack, 3..4).await;
    assert_eq!(compact(&stack, endpoint).await, written(4, false));
    stack.clock.advance(minute);
    assert_eq!(compact(&stack, endpoint).await, written(4, true), "the lease has run out");
}
