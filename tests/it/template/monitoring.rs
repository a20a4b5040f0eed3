//! Alarms, dashboard and probe watch only metrics and resources that exist, and every function that no client calls is
//! watched.

use std::collections::BTreeSet;

use api::routes::DESCRIPTION;
use common::metrics::{Metric, NAMESPACE_VARIABLE};
use common::resources::{Queue, Table};
use serde_json::{Value, json};
use tests::monitoring::{Monitor, WatchedMetric, alarms, graphs, probe_alarm, probe_properties};
use tests::{Function, NAMESPACE, Stack, Template};
use webhooks::ATTEMPTS;

use super::names;

/// The metrics of AWS's own that are watched, as its documentation spells them, by namespace and dimension. Those of the
/// whole account have no dimension.
const AWS_METRICS: [(&str, &str, &[&str]); 5] = [
    ("AWS/ApiGateway", "ApiId", &["4xx", "5xx", "Count", "Latency"]),
    ("AWS/DynamoDB", "TableName", &["ReadThrottleEvents", "WriteThrottleEvents"]),
    ("AWS/Lambda", "FunctionName", &["Duration", "Errors", "Invocations"]),
    ("AWS/Lambda", "", &["ConcurrentExecutions", "Errors", "Throttles"]),
    ("AWS/SQS", "QueueName", &["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"]),
];

fn is_there(dimension: &str, name: &str) -> bool {
    match dimension {
        "FunctionName" => Template::read().functions.keys().any(|function| names().function(function) == name),
        "TableName" => Table::ALL.iter().any(|table| names().table(*table) == name),
        "QueueName" => Queue::ALL.iter().any(|queue| names().queue(*queue) == name),
        "ApiId" => name == "ApiId",
        _ => dimension.is_empty() && name.is_empty(),
    }
}

/// Returns whether a resource has a metric.
fn has(WatchedMetric { namespace, metric, resource: (dimension, name) }: &WatchedMetric) -> bool {
    if namespace == NAMESPACE {
        let function = name.strip_prefix("marketplace-").filter(|_| dimension == "FunctionName");
        return function.is_some_and(|function| Template::read().publishes(function, metric));
    }
    AWS_METRICS
        .iter()
        .any(|(space, of, metrics)| *space == namespace && *of == dimension && metrics.contains(&metric.as_str()))
}

fn sides() -> [(&'static str, Vec<Monitor>); 2] {
    [("alarms", alarms()), ("graphs", graphs())]
}

#[test]
fn alarms_and_dashboard_watch_only_what_exists() {
    for monitor in sides().iter().flat_map(|(_, monitors)| monitors) {
        for watched in &monitor.watched {
            let (dimension, name) = &watched.resource;
            assert!(is_there(dimension, name), "{monitor} watches {watched:?}: no such resource");
            assert!(has(watched), "{monitor} watches {watched:?}: no such metric");
        }
    }
}

#[test]
fn every_function_without_a_route_has_an_alarm_and_a_graph() {
    for (side, monitors) in sides() {
        let watched: BTreeSet<_> =
            monitors.iter().flat_map(|monitor| &monitor.watched).map(|one| &one.resource.1).collect();
        // A hook that fails fails its deployment, which nobody misses.
        let unrouted = |function: &Function| !function.is_hook() && !function.is_triggered_by("HttpApi");
        for function in Template::read().functions_that(unrouted) {
            assert!(watched.contains(&names().function(function)), "{side} watch nothing of {function}");
        }
    }
}

/// What only an operator of several functions can compare, so a new function must not be forgotten there.
#[test]
fn alarm_and_graphs_of_replicas_watch_each_function_that_has_one() {
    let watching = |monitors: Vec<Monitor>, metric: Metric| -> BTreeSet<String> {
        let watched = monitors.into_iter().flat_map(|monitor| monitor.watched);
        watched.filter(|one| one.metric == metric.as_str()).map(|one| one.resource.1).collect()
    };
    for (monitors, metric) in
        [(alarms(), Metric::MemoryUsed), (graphs(), Metric::MemoryUsed), (graphs(), Metric::ReplicaLag)]
    {
        let publishers = Template::read().publishers(metric).into_iter();
        let publishers: BTreeSet<String> = publishers.map(|function| names().function(function)).collect();
        assert_eq!(watching(monitors, metric), publishers, "{metric:?}");
    }
}

#[test]
fn every_function_publishes_into_the_namespace_that_is_watched() {
    for (name, function) in &Template::read().functions {
        assert_eq!(function.properties["Environment"]["Variables"][NAMESPACE_VARIABLE], NAMESPACE, "{name}");
    }
}

#[test]
fn costs_count_what_is_published_and_attempted() {
    let inputs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../infra/costs/inputs.json")).unwrap();
    let inputs: Value = serde_json::from_str(&inputs).unwrap();
    let value = |name: &str| inputs[name]["value"].as_u64().unwrap();
    let published = |metric: Metric| Template::read().publishers(metric).len() as u64;
    let keyed = published(Metric::RateLimited);
    let busy = value("idle_metrics") + 2 * keyed + published(Metric::ReplicaLag) + published(Metric::MemoryUsed);
    assert_eq!((value("busy_metrics"), value("attempts")), (busy, u64::from(ATTEMPTS)));
}

/// Route 53 looks for the text only in this much of a body. Taken from AWS's documentation.
const SEARCHED_BYTES: usize = 5_120;

#[tokio::test(flavor = "multi_thread")]
async fn the_probe_finds_what_it_looks_for_on_a_route_that_needs_no_key() {
    let check = probe_properties("HealthCheck")["HealthCheckConfig"].clone();
    assert_eq!(
        (&check["Type"], &check["Port"], &check["EnableSNI"]),
        (&json!("HTTPS_STR_MATCH"), &json!(443), &json!(true))
    );
    assert_eq!(check["ResourcePath"], DESCRIPTION.path);
    assert_eq!(DESCRIPTION.budget, None);
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let reply = running.client.send("GET", DESCRIPTION.path, &[]).await;
    assert_eq!(reply.status, 200);
    let searched = String::from_utf8_lossy(&reply.bytes[..SEARCHED_BYTES.min(reply.bytes.len())]);
    assert!(searched.contains(check["SearchString"].as_str().unwrap()), "{searched}");
}

const RUNBOOK: &str = include_str!("../../../docs/runbook.md");

#[test]
fn the_runbook_has_a_section_for_each_alarm() {
    let sections: BTreeSet<_> = RUNBOOK.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms: Vec<_> = alarms().into_iter().chain([probe_alarm()]).collect();
    assert_eq!(sections, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
}
