//! Delayed messages in the local queues.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use local::environment::Variables;
use platform::aws::{Environment, Patience};
use platform::resources::Queue;
use tests::Stack;
use tokio::time::Instant;

const LONG_DELAY_SECONDS: i32 = 900;

fn entry(body: &str, delay_seconds: i32) -> SendMessageBatchRequestEntry {
    let entry = SendMessageBatchRequestEntry::builder().id(body).message_body(body).message_group_id("a");
    entry.delay_seconds(delay_seconds).build().unwrap()
}

/// A client for the queues of a stack, and the URL of the slow lane.
fn slow_lane(stack: &Stack) -> (Client, String) {
    let variables = Variables::new(&stack.aws.endpoint_url);
    let client = queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
    (client, variables.get(Queue::WebhooksSlow.variable()).unwrap())
}

#[tokio::test]
async fn delayed_messages_are_counted_and_come_when_they_are_due() {
    let stack = Stack::new().await;
    let (client, url) = slow_lane(&stack);
    let queue = stack.queue(Queue::WebhooksSlow).await;
    let begun = Instant::now();
    let batch = vec![entry("one", 1), entry("two", 1), entry("late", LONG_DELAY_SECONDS)];
    let sent = client.send_message_batch().queue_url(&url).set_entries(Some(batch)).send().await.unwrap();
    let ids: Vec<&str> = sent.successful.iter().map(|entry| entry.id.as_str()).collect();
    assert_eq!((ids, sent.failed.len()), (vec!["one", "two", "late"], 0));
    assert_eq!((queue.count().await, queue.visible_count().await), (3, 0));
    let mut bodies: Vec<_> = queue.take(2).await.into_iter().map(|message| message.body.unwrap()).collect();
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
    assert!(begun.elapsed() >= Duration::from_secs(1), "a message came early");
    queue.wait_for_count(1).await;
}

#[tokio::test]
async fn a_batch_may_mix_delayed_messages_with_others() {
    let stack = Stack::new().await;
    let (client, url) = slow_lane(&stack);
    let queue = stack.queue(Queue::WebhooksSlow).await;
    let batch = vec![entry("late", LONG_DELAY_SECONDS), entry("prompt", 0)];
    client.send_message_batch().queue_url(&url).set_entries(Some(batch)).send().await.unwrap();
    assert_eq!(queue.take(1).await[0].body.as_deref(), Some("prompt"));
    assert_eq!(queue.count().await, 1);
}

#[tokio::test]
async fn a_purge_removes_delayed_messages() {
    let stack = Stack::new().await;
    let (client, url) = slow_lane(&stack);
    let queue = stack.queue(Queue::WebhooksSlow).await;
    let batch = vec![entry("late", LONG_DELAY_SECONDS)];
    client.send_message_batch().queue_url(&url).set_entries(Some(batch)).send().await.unwrap();
    assert_eq!(queue.count().await, 1);
    queue.purge().await;
}

#[tokio::test]
async fn a_queue_that_is_deleted_and_created_again_has_no_delayed_messages() {
    let stack = Stack::new().await;
    let (client, url) = slow_lane(&stack);
    let queue = stack.queue(Queue::WebhooksSlow).await;
    client.send_message_batch().queue_url(&url).entries(entry("late", LONG_DELAY_SECONDS)).send().await.unwrap();
    assert_eq!(queue.count().await, 1);
    client.delete_queue().queue_url(&url).send().await.unwrap();
    let (_, name) = url.rsplit_once('/').unwrap();
    client.create_queue().queue_name(name).send().await.unwrap();
    assert_eq!(queue.count().await, 0);
}

#[tokio::test]
async fn delayed_messages_for_a_queue_that_does_not_exist_are_refused() {
    let stack = Stack::new().await;
    let (client, url) = slow_lane(&stack);
    let request = client.send_message_batch().queue_url(format!("{url}-else")).entries(entry("one", 1));
    let refused = request.send().await.unwrap_err().into_service_error();
    assert!(refused.is_queue_does_not_exist(), "{refused:?}");
}
