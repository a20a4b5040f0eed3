//! What other tests rely on in the local AWS side: simulated time, instances in one process, and delayed messages.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::aws::{Environment, Patience};
use common::resources::Queue;
use common::scope::Scope;
use local::aws::limits::{Latency, Limits, Rate, Reason, Throughput};
use local::environment::Variables;
use local::simulation::SimulatedInstance;
use tests::{Simulation, Stack, get_from};
use tokio::time::Instant;

const MARKET: &str = "marketplace-market";
const KEYS: &str = "marketplace-keys";

fn s(text: &str) -> AttributeValue {
    AttributeValue::S(text.to_owned())
}

fn key(pk: &str, sk: &str) -> HashMap<String, AttributeValue> {
    HashMap::from([("pk".to_owned(), s(pk)), ("sk".to_owned(), s(sk))])
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_the_latency_of_the_store_and_no_other_time() {
    let simulation = Simulation::new().await;
    let store = simulation.aws.environment().unwrap().dynamodb(Patience::Request);
    for (latency_millis, expected_millis) in [(0, 0..=2), (8, 8..=10), (400, 400..=402)] {
        let latency = Latency::always(Duration::from_millis(latency_millis));
        simulation.aws.limits().set(Limits { latency, ..Limits::unlimited() });
        let began = simulation.elapsed();
        store.get_item().table_name(MARKET).set_key(Some(key("a", "b"))).send().await.unwrap();
        let took = simulation.since(began).as_millis();
        assert!(expected_millis.contains(&took), "{took} ms with a latency of {latency_millis} ms");
    }
}

/// Sends a request, and returns how many calls the store refused because of it.
async fn refused_calls(simulation: &Simulation, instance: &SimulatedInstance, key: &str) -> usize {
    assert_eq!(get_from(instance, key, "/v1/public/listings").await.status, 503);
    simulation.aws.limits().take_report().refused_for(Reason::Table)
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

#[tokio::test]
async fn delayed_messages_are_counted_and_come_when_they_are_due() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let client = common::queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
    let entry = |(body, delay): (&str, i32)| {
        let entry = SendMessageBatchRequestEntry::builder().id(body).message_body(body).message_group_id("a");
        entry.delay_seconds(delay).build().unwrap()
    };
    let queue = stack.queue(Queue::WebhooksSlow);
    let begun = Instant::now();
    let batch = [("one", 1), ("prompt", 0), ("two", 1), ("late", 900)].map(entry).to_vec();
    let request = client.send_message_batch().set_queue_url(variables.get(Queue::WebhooksSlow.variable()));
    let sent = request.set_entries(Some(batch)).send().await.unwrap();
    assert_eq!((sent.successful.len(), sent.failed.len()), (4, 0));
    assert_eq!((queue.count().await, queue.visible_count().await), (4, 1));
    assert_eq!(queue.take(1).await[0].body.as_deref(), Some("prompt"));
    let mut bodies: Vec<_> = queue.take(2).await.into_iter().map(|message| message.body.unwrap()).collect();
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
    assert!(begun.elapsed() >= Duration::from_secs(1), "a message came early");
    queue.wait_for_count(1).await;
}
