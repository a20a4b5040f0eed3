//! What the harness promises of simulated time, and of instances in one process.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use local::aws::limits::{Latency, Limits, Rate, Throughput};
use local::simulation::SimulatedInstance;
use platform::aws::Patience;
use tests::{Simulation, get_from};
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
