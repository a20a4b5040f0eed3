//! What the harness promises: of simulated time, of instances in one process, and of delayed messages in local queues.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use local::aws::limits::{Latency, Limits, Rate, Throughput};
use local::environment::Variables;
use local::simulation::SimulatedInstance;
use platform::aws::{Environment, Patience};
use platform::resources::Queue;
use tests::{Simulation, Stack, get_from};
use tokio::time::Instant;
use types::scope::Scope;

const MARKET: &str = "marketplace-market";
const KEYS: &str = "marketplace-keys";

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_the_latency_of_the_store_and_no_other_time() {
    let simulation = Simulation::new().await;
    let client = simulation.aws.environment().unwrap().dynamodb(Patience::Request);
    for (latency_millis, expected_millis) in [(0, 0..=2), (8, 8..=10), (400, 400..=402)] {
        let latency = Latency::always(Duration::from_millis(latency_millis));
        simulation.aws.limits().set(Limits { latency, ..Limits::unlimited() });
        let began = simulation.elapsed();
        client.get_item().table_name(MARKET).key("pk", s("a")).key("sk", s("b")).send().await.unwrap();
        let took = simulation.since(began).as_millis();
        assert!(expected_millis.contains(&took), "{took} ms with a latency of {latency_millis} ms");
    }
}

/// Sends a request, and returns how many calls the store refused because of it.
async fn refused_calls(simulation: &Simulation, instance: &SimulatedInstance, key: &str) -> usize {
    assert_eq!(get_from(instance, key, "/v1/public/listings").await.status, 503);
    simulation.aws.limits().take_report().refused.len()
}

#[tokio::test(start_paused = true)]
async fn an_instance_whose_retries_are_used_up_takes_none_from_another() {
    let simulation = Simulation::new().await;
    let key = simulation.key(&[Scope::ListingsRead]).await;
    let nothing = Throughput { read: Rate::once(0.0), write: Rate::once(0.0) };
    simulation.aws.limits().set(Limits { table: nothing, only_table: Some(KEYS), ..Limits::unlimited() });
    let [one, other] = [(); 2].map(|()| simulation.cold("listings", listings::api));
    let first = refused_calls(&simulation, &one, &key).await;
    let mut last = first;
    for _ in 0..120 {
        last = refused_calls(&simulation, &one, &key).await;
    }
    assert!(last < first, "{last} calls of the last request, {first} of the first");
    assert_eq!(refused_calls(&simulation, &other, &key).await, first);
}

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
