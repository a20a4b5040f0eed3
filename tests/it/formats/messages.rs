//! The messages that the service sends to itself and to the marketplace, and the keyring.

use aws_lambda_events::sqs::{SqsMessage, SqsMessageAttribute};
use common::resources::Queue;
use serde_json::{Value, json};
use tests::{Fault, Proxy, Receiver, Stack, hand, marketplace, message, uuid};
use webhooks::delivery::{Lane, Status};
use webhooks::secrets::{EndpointSecret, Keyring};
use webhooks::{DrainMessage, QueueMessage, delivery_id};

use super::golden;
use super::loaded::{keyring, loaded, loaded_as_it_is, with_more_members};
use super::scene::{Scene, URL, drain_token, endpoint, user};

const MESSAGES_IN: &str = "shared/webhooks/src/queues.rs";
const NOTICES_IN: &str = "shared/webhooks/src/notice.rs";

/// Takes one message out of a queue.
async fn taken(stack: &Stack, queue: Queue) -> Value {
    let [message] = stack.queue(queue).take(1).await.try_into().unwrap();
    serde_json::from_str(message.body.as_deref().unwrap()).unwrap()
}

/// Takes a notice of each type out of its queue, in the order of the types.
async fn taken_notices(stack: &Stack) -> Vec<Value> {
    let taken = stack.queue(Queue::Notices).take(2).await;
    let read = |message: &SqsMessage| serde_json::from_str(message.body.as_deref().unwrap()).unwrap();
    let mut notices: Vec<Value> = taken.iter().map(read).collect();
    notices.sort_by_key(|notice| notice["type"].to_string());
    notices
}

fn golden_message(name: &str) -> Value {
    golden::read(name)["message"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_is_written_as_the_golden_files_say() {
    let stack = Scene::new().await.stack;
    let dispatch = stack.carried(delivery_id(uuid(1).into(), endpoint())).await.dispatch();
    stack.lanes().send_one(Lane::Retry, QueueMessage::Attempt(dispatch), 0).await.unwrap();
    let attempt = taken(&stack, Queue::WebhooksRetry).await;
    stack.webhooks().drains.send(DrainMessage { account_id: user(), token: drain_token() }).await;
    stack.sweep().await;
    let [disabled, failing] = taken_notices(&stack).await.try_into().unwrap();
    let written = [
        (
            "first",
            MESSAGES_IN,
            "Calls for the first attempt of the delivery that it carries. The body is sent byte for byte.",
            taken(&stack, Queue::WebhooksFirst).await,
        ),
        ("attempt", MESSAGES_IN, "Calls for an attempt.", attempt),
        (
            "drain-message",
            MESSAGES_IN,
            "Calls for a run of the drain of an account.",
            taken(&stack, Queue::WebhooksSlow).await,
        ),
        (
            "notice-message",
            "shared/webhooks/src/endpoint.rs",
            "Tells the marketplace that an endpoint was switched off. The row of a notice holds the same.",
            disabled,
        ),
        (
            "notice-failing-message",
            NOTICES_IN,
            "Tells the marketplace that deliveries to an endpoint fail. The row of a notice holds the same.",
            failing,
        ),
    ];
    let differences = written.into_iter().filter_map(|(name, layout_in, about, message)| {
        golden::difference(name, layout_in, &json!({"about": about, "message": message}))
    });
    let differences: Vec<String> = differences.collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns a row in which endpoints have this URL.
fn redirected(row: &Value, url: &str) -> Value {
    serde_json::from_str(&row.to_string().replace(URL, url)).unwrap()
}

/// Hands the golden messages to a sender whose stack has the golden rows, and asserts what they do. Both that call for an
/// attempt call for the same.
async fn messages_are_followed(change: fn(Value) -> Value) {
    for name in ["first", "attempt"] {
        message_is_followed(name, change).await;
    }
}

async fn message_is_followed(name: &str, change: fn(Value) -> Value) {
    let receiver = Receiver::answering(204).await;
    let stack = loaded(|_, row| redirected(&row, &receiver.url), &change(keyring())).await;
    let body = |name| change(golden_message(name)).to_string();
    let batch = [message(Lane::First, &body(name)), message(Lane::Slow, &body("drain-message"))];
    for one in batch {
        assert_eq!(hand(&stack.sender(), &[one]).await, [0; 0]);
    }
    let id = delivery_id(uuid(1).into(), endpoint());
    assert_eq!(stack.webhooks().delivery(id).await.unwrap().progress.status, Status::Delivered);
    let [posted] = receiver.so_far().try_into().unwrap();
    let signed = posted.signed_with(&EndpointSecret::from_bits([9; 32]));
    assert!(signed.service && signed.standard);
    let drain = stack.webhooks().store.drain(user()).await.unwrap().unwrap();
    assert_ne!(drain.token, drain_token(), "a run has begun");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_golden_messages_are_followed() {
    messages_are_followed(|message| message).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_with_members_of_a_newer_release_are_followed_after_a_rollback() {
    messages_are_followed(with_more_members).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_golden_notices_are_sent() {
    let stack = loaded_as_it_is().await;
    stack.sweep().await;
    let names = ["notice-message", "notice-failing-message"];
    assert_eq!(taken_notices(&stack).await, names.map(golden_message));
}

/// Returns a message of the feed that was postponed once.
fn postponed(golden: &Value) -> SqsMessage {
    let mut attribute = SqsMessageAttribute::default();
    attribute.string_value = Some(golden["postponed"].as_str().unwrap().to_owned());
    let mut record = message(Lane::First, &marketplace("one", true, 1).to_string());
    record.message_attributes.insert("postponed".to_owned(), attribute);
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn a_postponed_message_counts_on_from_the_golden_count() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let ingest = stack.ingest_at(&proxy.url);
    proxy.plan(|operation| if operation == "PutItem" { Fault::Refuse } else { Fault::None });
    let golden = golden_message("feed-copy");
    assert_eq!(hand(&ingest, &[postponed(&golden)]).await, [0; 0]);
    let feed = stack.queue(Queue::Feed);
    let copy = loop {
        let receive = feed.client.receive_message().queue_url(&feed.url).message_attribute_names("All");
        let received = receive.wait_time_seconds(1).send().await.unwrap().messages.unwrap_or_default();
        if let Some(copy) = received.into_iter().next() {
            break copy;
        }
    };
    let attributes = copy.message_attributes.unwrap();
    let count = &attributes["postponed"];
    assert_eq!((count.data_type(), count.string_value()), ("Number", Some("2")));
    assert_eq!(attributes.len(), 1);
}

#[test]
fn the_keyring_is_read_and_written_as_the_golden_file_says() {
    let golden = golden::read("keyring");
    let read = Keyring::parse(&golden["document"].to_string()).unwrap();
    let written: Value = serde_json::from_str(&read.reveal()).unwrap();
    let found = json!({"about": golden["about"], "document": written, "generated": golden["generated"]});
    let difference = golden::difference("keyring", "shared/webhooks/src/secrets/keyring.rs", &found);
    assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    // What a deployment generates is read, but never written.
    assert_eq!(Keyring::parse(&golden["generated"].to_string()).unwrap().current_id(), "generated");
}
