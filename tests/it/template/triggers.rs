//! The queues and schedules that trigger functions.

use std::collections::BTreeSet;
use std::iter;
use std::time::Duration;

use platform::resources::{Batching, COMPACT_PERIOD, Queue, SWEEP_PERIOD};
use serde_json::json;
use tests::{Template, arn};

use super::names;

#[test]
fn queues_trigger_their_functions_with_partial_failure_and_a_long_enough_visibility_time_out() {
    let triggers = iter::once((Queue::Feed, "ingest")).chain(Queue::LANES.map(|lane| (lane, "webhook")));
    let mut sources = Template::read().resources("AWS::Lambda::EventSourceMapping");
    for (queue, function) in triggers {
        let arn = arn::queue(&names().queue(queue));
        let found = sources.extract_if(.., |_, source| source["Properties"]["EventSourceArn"] == arn.as_str()).next();
        let source = &found.unwrap_or_else(|| panic!("nothing reads {arn}")).1["Properties"];
        assert_eq!(source["FunctionName"], arn::function(&names().alias(function)));
        assert_eq!(source["FunctionResponseTypes"], json!(["ReportBatchItemFailures"]), "{function}");
        let Batching { messages, window } = Batching::AT_ONCE;
        assert_eq!(source["BatchSize"], messages, "{function}");
        assert_eq!(source["MaximumBatchingWindowInSeconds"].as_u64().unwrap_or(0), window.as_secs(), "{function}");
        let timeout = Template::read().functions[function].properties["Timeout"].as_u64().unwrap();
        let longest_window = if queue == Queue::Feed { Batching::LARGEST.window.as_secs() } else { 0 };
        assert!(queue.visibility_seconds() >= 6 * timeout + longest_window, "{function}");
        // These functions send copies to queues that they read. Lambda would end that as a loop.
        assert_eq!(Template::read().functions[function].properties["RecursiveLoop"], "Allow", "{function}");
    }
    assert!(sources.is_empty(), "{sources:?}");
}

#[test]
fn the_feed_can_have_batches_as_large_as_ingest_takes_and_no_larger() {
    let longest = |name| &Template::read().parameter(name)["MaxValue"];
    assert_eq!(*longest("FeedBatch"), Batching::LARGEST.messages);
    assert_eq!(*longest("FeedBatchWindow"), Batching::LARGEST.window.as_secs());
}

#[test]
fn schedules_trigger_their_functions_as_often_as_the_code_expects() {
    let mut schedules = BTreeSet::new();
    for (name, function) in &Template::read().functions {
        for event in function.events().filter(|event| event["Type"] != "HttpApi") {
            assert_eq!(event["Type"], "Schedule", "{name}");
            schedules.insert((name.as_str(), event["Properties"].to_string()));
        }
    }
    assert_eq!(schedules, [("compact", every(COMPACT_PERIOD)), ("sweep", every(SWEEP_PERIOD))].into());
}

fn every(period: Duration) -> String {
    let (minutes, rest) = (period.as_secs() / 60, period.as_secs() % 60);
    assert_eq!(rest, 0, "a schedule has whole minutes");
    let unit = if minutes == 1 { "minute" } else { "minutes" };
    json!({"Schedule": format!("rate({minutes} {unit})")}).to_string()
}
