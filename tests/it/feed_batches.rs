//! Batches of a hundred messages: how few calls they take, and that each message is still judged by itself.
//!
//! Several writers of one stream: what a moved head costs, and how they share the stream.
//!
//! How soon a message in the feed shows in the API, with two processes of functions.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use common::resources::{Batching, INGEST_TIMEOUT, Queue};
use common::runtime::Worker;
use feed::{Applier, ApplyOutcome};
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits};
use local::workers::{EventSource, poll};
use serde_json::{Value, json};
use tests::{
    Administrator, AwsCall, Client, Fault, Proxy, Simulation, Stack, TestQueue, listing, local, order, set_limit,
    tables, uuid,
};
use tokio::time::{Instant, timeout};

const TEN_O_CLOCK: &str = "2026-11-20T10:00:00Z";
/// Batches that are handed over once they are full.
const WHEN_FULL: Batching = Batching { messages: 100, window: Duration::from_mins(1) };

/// Sends messages and lets an `ingest` apply them in one batch. Returns the calls that it made.
async fn applied_at_once(stack: &Stack, messages: &[String]) -> Vec<AwsCall> {
    let queue = stack.queue(Queue::Feed);
    // One by one, because large messages do not fit into one call.
    for message in messages {
        queue.send(std::slice::from_ref(message)).await;
    }
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let source = EventSource::open(queue.client.clone(), &queue.url, INGEST_TIMEOUT).await.unwrap();
    let _poller = poll(source.with_batching(WHEN_FULL), stack.ingest_at(&proxy.url));
    queue.wait_until_empty().await;
    proxy.take_calls()
}

/// Returns the version `version` of the listing with this number.
fn version_of(number: u32, version: u64) -> Value {
    listing(number, &format!("{version}.00"), TEN_O_CLOCK, version)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_messages_are_one_transaction_although_some_are_about_the_same_listing() {
    let (stack, other) = (Stack::new().await, Stack::new().await);
    // Listing 1 comes three times, the newest version in between.
    let again = [version_of(1, 7), version_of(1, 3)];
    let messages = (1..=98).map(|number| version_of(number, 1)).chain(again);
    let calls = applied_at_once(&stack, &messages.map(|message| message.to_string()).collect::<Vec<_>>()).await;
    assert_eq!(AwsCall::count(&calls, "TransactWriteItems"), 1);
    let newest: Vec<Value> =
        [version_of(1, 7)].into_iter().chain((2..=98).map(|number| version_of(number, 1))).collect();
    other.feed(&newest).await;
    assert_eq!(tables(&stack).await, tables(&other).await);
    tests::assert_the_log_tells_all(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_copies_of_invalid_messages_are_sent_ten_at_a_time() {
    let stack = Stack::new().await;
    let good = (1..=75).map(|number| version_of(number, 1).to_string());
    let bad: Vec<String> = (10..35).map(|number| format!(r#"{{"type":"bogus","number":{number}}}"#)).collect();
    let messages: Vec<String> = good.chain(bad.clone()).collect();
    let calls = applied_at_once(&stack, &messages).await;
    assert_eq!((AwsCall::count(&calls, "SendMessageBatch"), AwsCall::count(&calls, "SendMessage")), (3, 0));
    let letters = stack.queue(Queue::FeedDead).take_all_letters().await;
    assert_eq!(letters.into_iter().map(|letter| letter.body).collect::<Vec<_>>(), bad);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_are_applied_and_refused_like_others() {
    let stack = Stack::new().await;
    let zeros = "0".repeat(200_000);
    let large = |number: usize| format!(r#"{{"type":"bogus","text":"{zeros}{number}"}}"#);
    let bad: Vec<String> = (10..30).map(large).collect();
    // The poller hands these over once no further call's messages would fit into Lambda's 6 MB.
    let calls = applied_at_once(&stack, &bad).await;
    assert_eq!(AwsCall::count(&calls, "SendMessageBatch"), bad.len(), "two are more than SQS takes in one call");
    let letters = stack.queue(Queue::FeedDead).take_all_letters().await;
    assert_eq!(letters.into_iter().map(|letter| letter.body).collect::<Vec<_>>(), bad);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_was_delivered_twice_in_a_batch_is_reported_once() {
    let stack = Stack::new().await;
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let broken = tests::dynamodb(&stack).put_item().table_name("marketplace-accounts");
    let broken = broken.item("pk", text(&format!("order#{}", uuid(1)))).item("sk", text("authority"));
    broken.item("account_id", text("nobody")).send().await.unwrap();
    let user = uuid(5).into();
    let record = |id: &str, body: &Value| {
        let mut record = SqsMessage::default();
        record.message_id = Some(id.to_owned());
        record.body = Some(body.to_string());
        record
    };
    let (unreadable, readable) = (order(user, 1, TEN_O_CLOCK, 1), order(user, 2, TEN_O_CLOCK, 1));
    let mut event = SqsEvent::default();
    event.records = vec![record("a", &unreadable), record("b", &readable), record("a", &unreadable)];
    // It cannot be set aside either, so it stays in its queue.
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    proxy.plan(|operation| if operation == "SendMessageBatch" { Fault::Refuse } else { Fault::None });
    let response = stack.ingest_at(&proxy.url).work(event).await.unwrap();
    let failed: Vec<_> = response.batch_item_failures.iter().map(|item| item.item_identifier.as_str()).collect();
    assert_eq!(failed, ["a"]);
}

/// The messages that both writers commit together.
const WRITES: usize = 150;

/// Applies one message, and asserts that it changes something.
async fn apply(administrator: &Administrator, applier: &mut Applier, message: &Value) {
    let message = feed::parse(&message.to_string(), administrator.now()).unwrap();
    let outcomes = applier.apply(vec![((), message)], &*administrator.clock).await;
    assert!(matches!(outcomes.as_slice(), [((), Ok(ApplyOutcome::Changed))]), "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_says_where_the_head_has_moved() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut writer = Applier::new(stack.stores_at(&proxy.url));
    apply(&stack, &mut writer, &version_of(1, 1)).await;
    stack.feed(&[version_of(2, 1)]).await;
    stack.feed(&[version_of(3, 1)]).await;
    proxy.take_calls();
    apply(&stack, &mut writer, &version_of(4, 1)).await;
    assert_eq!(proxy.take_operations(), ["TransactWriteItems", "TransactWriteItems"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_conflict_the_head_is_not_read_again() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut writer = Applier::new(stack.stores_at(&proxy.url));
    apply(&stack, &mut writer, &version_of(1, 1)).await;
    proxy.take_calls();
    let mut conflicts = 2;
    proxy.plan(move |_| {
        conflicts -= 1;
        if conflicts >= 0 { Fault::Cancelled("TransactionConflict") } else { Fault::None }
    });
    apply(&stack, &mut writer, &version_of(2, 1)).await;
    // The other transactions did not move the head after all, so the third call is refused, and says where it is.
    assert_eq!(proxy.take_operations(), ["TransactWriteItems"; 4]);
}

/// Commits one batch after the other until both writers together have committed all. Returns how many it committed.
async fn write(stack: &Stack, first: u32, begun: &AtomicUsize) -> usize {
    let mut applier = Applier::new(stack.admin.stores());
    for number in first.. {
        if begun.fetch_add(1, Ordering::SeqCst) >= WRITES {
            return (number - first) as usize;
        }
        apply(stack, &mut applier, &version_of(number, 1)).await;
    }
    unreachable!("numbers do not end")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_writers_share_a_stream() {
    let stack = Stack::new().await;
    // With round trips that take time, who has just won would always win again.
    stack.aws.delay_store(Duration::from_millis(5));
    let begun = AtomicUsize::new(0);
    let (one, other) = tokio::join!(write(&stack, 1, &begun), write(&stack, 100_000, &begun));
    assert_eq!(one + other, WRITES);
    assert!(one.min(other) >= WRITES / 5, "{one} and {other}");
    tests::assert_the_log_tells_all(&stack).await;
}

/// Returns how many transactions so many writers of one stream commit in ten seconds, if each takes ten milliseconds.
async fn committed(writers: u32) -> usize {
    let (simulation, committed) = (Simulation::new().await, AtomicUsize::new(0));
    let latency = Latency::always(Duration::from_millis(10));
    simulation.aws.limits().set(Limits { latency, transaction_latency: latency, ..Limits::unlimited() });
    let write = async |number: u32| {
        let mut applier = Applier::new(simulation.admin.stores());
        for version in 1.. {
            apply(&simulation, &mut applier, &version_of(number, version)).await;
            committed.fetch_add(1, Ordering::Relaxed);
        }
    };
    let writers = join_all((0..writers).map(write));
    assert!(timeout(Duration::from_secs(10), writers).await.is_err());
    committed.into_inner()
}

#[tokio::test(start_paused = true)]
async fn two_writers_of_a_stream_commit_hardly_less_than_one() {
    let (mut one, mut two) = (0, 0);
    // Pauses are drawn, so a single run may be a fifth below the mean.
    for _ in 0..3 {
        one += committed(1).await;
        two += committed(2).await;
    }
    assert!(two * 5 >= one * 4, "{two} instead of {one}");
}

#[tokio::test(flavor = "multi_thread")]
async fn throttled_and_conflicting_transactions_are_tried_again() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let codes = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"];
    for (version, code) in (1..).zip(codes) {
        let mut faults = 4;
        proxy.plan(move |operation| {
            let fails = operation == "TransactWriteItems" && faults > 0;
            faults -= i32::from(fails);
            if fails { Fault::Cancelled(code) } else { Fault::None }
        });
        let messages = [version_of(1, version), order(uuid(1).into(), 1, TEN_O_CLOCK, version)];
        let outcomes = stack.feed_through(stack.stores_at(&proxy.url), &messages).await;
        assert_eq!(outcomes, vec![ApplyOutcome::Changed; 2], "{code}");
    }
}

const SOLD_LISTINGS: u32 = 5;
/// Listings that stay, but whose prices change all the time.
const CHANGING_LISTINGS: u32 = 100;
/// A sale that takes longer than this never shows.
const SALES_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends fifty price changes a second until it is dropped.
async fn changes(queue: &TestQueue) {
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    for change in 0.. {
        ticks.tick().await;
        let (number, version) = (1_000 + change % CHANGING_LISTINGS, 2 + change / CHANGING_LISTINGS);
        queue.send(&[listing(number, &format!("{}.50", 500 + change), TEN_O_CLOCK, version.into()).to_string()]).await;
    }
}

/// Waits until an instance no longer shows the listing at this price. Asserts that its total is right then.
async fn gone(client: &Client, key: &str, price: u32, total: u32) {
    let path = format!("/v1/public/listings?min_price={price}&max_price={price}");
    while client.get(key, &path).await.json()["total"] != 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.get(key, "/v1/public/listings?page_size=1").await.json()["total"], total);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listing_sold_through_the_feed_is_gone_everywhere_within_two_seconds() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    set_limit(&stack, &key, 1_000_000).await;
    let listings = (1..=SOLD_LISTINGS).chain(1_000..1_000 + CHANGING_LISTINGS);
    stack.feed(&listings.map(|n| listing(n, &format!("{n}.00"), TEN_O_CLOCK, 1)).collect::<Vec<_>>()).await;
    let arguments = ["--aws-endpoint", &stack.aws.endpoint_url];
    let (one, other) = tokio::join!(local(&arguments), local(&arguments));
    let clients = [one.1, other.1].map(|ready| Client::new(ready["base_url"].as_str().unwrap()));
    let queue = stack.queue(Queue::Feed);
    let sell = async {
        let mut times = Vec::new();
        for number in 1..=SOLD_LISTINGS {
            let mut sold = listing(number, "1.00", TEN_O_CLOCK, 2);
            sold["status"] = json!("sold");
            let begun = Instant::now();
            queue.send(&[sold.to_string()]).await;
            let total = CHANGING_LISTINGS + SOLD_LISTINGS - number;
            tokio::join!(gone(&clients[0], &key, number, total), gone(&clients[1], &key, number, total));
            times.push(begun.elapsed());
        }
        times.sort();
        times
    };
    let times = tokio::select! {
        times = tokio::time::timeout(SALES_TIMEOUT, sell) => times.expect("a sold listing stays"),
        () = changes(&queue) => unreachable!("changes never end"),
    };
    // Compares the median: a busy machine may delay some sales, but not most.
    assert!(times[times.len() / 2] < Duration::from_secs(2), "{times:?}");
    assert_eq!(stack.queue(Queue::FeedDead).take_all_letters().await, []);
}
