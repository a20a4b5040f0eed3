//! Batches of a hundred messages: how few calls they take, and that each message is still judged by itself.

use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use local::workers::{EventSource, poll};
use platform::resources::{Batching, INGEST_TIMEOUT};
use runtime::Worker;
use serde_json::Value;
use tests::{AwsCall, Fault, Proxy, Stack, listing, order, tables, uuid};

const TEN_O_CLOCK: &str = "2026-11-20T10:00:00Z";
/// Batches that are handed over once they are full.
const WHEN_FULL: Batching = Batching { messages: 100, window: Duration::from_mins(1) };

/// Sends messages and lets an `ingest` apply them in one batch. Returns the calls that it made.
async fn applied_at_once(stack: &Stack, messages: &[String]) -> Vec<AwsCall> {
    let queue = stack.feed_queue();
    // One by one, because large messages do not fit into one call.
    for message in messages {
        queue.send(std::slice::from_ref(message)).await;
    }
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let source = EventSource::open(queue.client.clone(), &queue.url, INGEST_TIMEOUT).await.unwrap();
    let _poller = poll(source.with_batching(WHEN_FULL), stack.ingest(&proxy.url));
    queue.wait_until_empty().await;
    proxy.take_calls()
}

fn count(calls: &[AwsCall], operation: &str) -> usize {
    calls.iter().filter(|call| call.operation == operation).count()
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
    assert_eq!(count(&calls, "TransactWriteItems"), 1);
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
    assert_eq!((count(&calls, "SendMessageBatch"), count(&calls, "SendMessage")), (3, 0));
    let letters = stack.feed_queue().take_dead_letters().await;
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
    assert_eq!(count(&calls, "SendMessageBatch"), bad.len(), "two are more than SQS takes in one call");
    let letters = stack.feed_queue().take_dead_letters().await;
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
    let response = stack.ingest(&proxy.url).work(event).await.unwrap();
    let failed: Vec<_> = response.batch_item_failures.iter().map(|item| item.item_identifier.as_str()).collect();
    assert_eq!(failed, ["a"]);
}
