//! An S3 that pushes back.

use std::time::Duration;

use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::error::ProvideErrorMetadata;
use bytes::Bytes;
use local::aws::limits::{Latency, Limits, ObjectLimits, ObjectReport, Rate};
use local::environment::Variables;
use objects::Objects;
use platform::aws::Patience;
use platform::resources::BASE_BUCKET_VARIABLE;
use tests::Simulation;

fn limits(objects: ObjectLimits) -> Limits {
    Limits { objects, ..Limits::unlimited() }
}

fn bucket_name() -> String {
    Variables::new("").get(BASE_BUCKET_VARIABLE).unwrap()
}

fn client(simulation: &Simulation) -> objects::Client {
    objects::client(&simulation.aws.environment().unwrap(), Patience::Bulk)
}

/// Returns a bucket with objects of this many bytes.
async fn bucket(simulation: &Simulation, keys: &[&str], bytes: usize) -> Objects {
    let objects = Objects::new(client(simulation), bucket_name(), Patience::Bulk);
    for key in keys {
        objects.put(key, Bytes::from(vec![7_u8; bytes])).await.unwrap();
    }
    objects
}

#[tokio::test(start_paused = true)]
async fn a_prefix_that_is_used_up_is_to_be_asked_more_slowly_and_others_are_not() {
    let simulation = Simulation::new().await;
    bucket(&simulation, &["a/1", "b/1"], 100).await;
    let config = client(&simulation).config().to_builder().retry_config(RetryConfig::disabled()).build();
    let client = objects::Client::from_conf(config);
    simulation.aws.limits().set(limits(ObjectLimits { gets: Rate::once(1.0), ..ObjectLimits::UNLIMITED }));
    for (key, expected) in [("a/1", None), ("a/1", Some((503, "SlowDown"))), ("b/1", None)] {
        let got = client.get_object().bucket(bucket_name()).key(key).send().await;
        let refused = got.as_ref().err().map(|error| {
            let status = error.raw_response().map_or(0, |response| response.status().as_u16());
            (status, error.code().unwrap_or_default())
        });
        assert_eq!(refused, expected, "{key}");
    }
    let report = simulation.aws.limits().take_report();
    let expected = ObjectReport { gets: 2, read_bytes: 200, refused: 1, ..ObjectReport::default() };
    assert_eq!((report.objects, report.calls), (expected, 0));
}

#[tokio::test(start_paused = true)]
async fn the_sdk_asks_again_after_a_pause() {
    let simulation = Simulation::new().await;
    let objects = bucket(&simulation, &["a/1"], 100).await;
    let gets = Rate { per_second: 100.0, burst: 1.0 };
    simulation.aws.limits().set(limits(ObjectLimits { gets, ..ObjectLimits::UNLIMITED }));
    for _ in 0..2 {
        assert_eq!(objects.get("a/1").await.unwrap().unwrap().len(), 100);
    }
    let ObjectReport { gets, refused, .. } = simulation.aws.limits().take_report().objects;
    assert!(gets == 2 && refused > 0, "{gets} admitted, {refused} refused");
}

#[tokio::test(start_paused = true)]
async fn an_object_takes_the_latency_and_the_time_of_its_bytes() {
    let simulation = Simulation::new().await;
    let objects = bucket(&simulation, &["a/1"], 20_000).await;
    let first_byte = Latency::always(Duration::from_millis(15));
    let slow = ObjectLimits { first_byte, bytes_per_second: 1e6, ..ObjectLimits::UNLIMITED };
    simulation.aws.limits().set(limits(slow));
    let began = simulation.elapsed();
    assert_eq!(objects.get("a/1").await.unwrap().unwrap().len(), 20_000);
    let took = simulation.since(began).as_millis();
    assert!((35..=38).contains(&took), "{took} ms");
}
