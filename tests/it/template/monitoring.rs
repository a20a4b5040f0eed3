//! Compares alarms, dashboard and probe with the metrics and resources that exist. None may name anything that does not
//! exist. Together they leave out nothing of a kind that they watch. The operator's pages name what exists.
//!
//! Endpoints are watched all together: by the gateway's metrics, and by searches of the dashboard.

use std::collections::{BTreeMap, BTreeSet};

use api::routes::DESCRIPTION;
use common::metrics::NAMESPACE_VARIABLE;
use common::resources::{Queue, Table};
use serde_json::json;
use tests::monitoring::{Monitor, Resource, WatchedMetric, alarms, graphs, probe_alarms, probe_properties};
use tests::{Function, NAMESPACE, Stack, Template, arn};

use super::names;

/// The dimension of metrics of the whole account: none.
const ACCOUNT: &str = "";

/// The metrics of AWS's own that are watched, as its documentation spells them, by namespace and dimension.
const AWS_METRICS: [(&str, &str, &[&str]); 5] = [
    ("AWS/ApiGateway", "ApiId", &["4xx", "5xx", "Count", "Latency"]),
    ("AWS/DynamoDB", "TableName", &["ReadThrottleEvents", "WriteThrottleEvents"]),
    ("AWS/Lambda", "FunctionName", &["Duration", "Errors", "Invocations"]),
    ("AWS/Lambda", ACCOUNT, &["ConcurrentExecutions", "Errors", "Throttles"]),
    ("AWS/SQS", "QueueName", &["ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"]),
];

/// Returns all resources, kind by kind. Resources of one kind are watched together.
fn kinds() -> [BTreeSet<Resource>; 9] {
    let template = Template::read();
    let functions = |event: &str| -> BTreeSet<Resource> {
        template.functions_that(|function| function.is_triggered_by(event)).into_iter().map(lambda).collect()
    };
    let sources = template.resources("AWS::Lambda::EventSourceMapping").into_values();
    let readers = sources.map(|source| source["Properties"]["FunctionName"].as_str().unwrap().to_owned());
    let is_called = |name: &str, called: &str| called == arn::function(&names().alias(name));
    let readers: Vec<String> = readers.collect();
    let readers = template.functions.keys().filter(|name| readers.iter().any(|called| is_called(name, called)));
    let readers: BTreeSet<Resource> = readers.map(|name| lambda(name)).collect();
    let is_triggered =
        |name: &str, function: &Function| function.events().next().is_some() || readers.contains(&lambda(name));
    let invoked =
        template.functions.iter().filter(|(name, function)| !is_triggered(name, function) && !function.is_hook());
    let invoked = invoked.map(|(name, _)| lambda(name)).collect();
    let is_dead = |queue: &Queue| Queue::ALL.iter().any(|other| other.dead_letters() == Some(*queue));
    let (dead, live): (Vec<Queue>, Vec<Queue>) = Queue::ALL.into_iter().partition(is_dead);
    [
        functions("HttpApi"),
        functions("Schedule"),
        readers,
        invoked,
        all("TableName", Table::ALL.map(|table| names().table(table))),
        all("QueueName", live.into_iter().map(|queue| names().queue(queue))),
        all("QueueName", dead.into_iter().map(|queue| names().queue(queue))),
        all("ApiId", ["ApiId".to_owned()]),
        all(ACCOUNT, [String::new()]),
    ]
}

fn all(dimension: &str, names: impl IntoIterator<Item = String>) -> BTreeSet<Resource> {
    names.into_iter().map(|name| (dimension.to_owned(), name)).collect()
}

fn lambda(function: &str) -> Resource {
    ("FunctionName".to_owned(), format!("marketplace-{function}"))
}

/// Returns whether a resource has a metric.
fn has(resource: &Resource, namespace: &str, metric: &str) -> bool {
    let (dimension, name) = (resource.0.as_str(), resource.1.as_str());
    if namespace == NAMESPACE {
        let function = name.strip_prefix("marketplace-").filter(|_| dimension == "FunctionName");
        return function.is_some_and(|function| Template::read().publishes(function, metric));
    }
    AWS_METRICS.iter().any(|(space, of, metrics)| (*space, *of) == (namespace, dimension) && metrics.contains(&metric))
}

/// Returns the alarms and the graphs, and where they are.
fn sides() -> [(&'static str, Vec<Monitor>); 2] {
    [("infra/monitoring/*.yaml", alarms()), ("infra/monitoring/dashboard.yaml", graphs())]
}

fn monitors() -> Vec<Monitor> {
    sides().into_iter().flat_map(|(_, monitors)| monitors).collect()
}

/// Returns a message about each resource whose metric is not watched, although it is watched for others of its kind.
fn left_out<'a>(place: &str, watched: impl IntoIterator<Item = &'a WatchedMetric>) -> Vec<String> {
    let mut found = BTreeMap::<_, BTreeSet<&Resource>>::new();
    for WatchedMetric { namespace, metric, resource } in watched {
        found.entry((namespace, metric)).or_default().insert(resource);
    }
    let (kinds, mut messages) = (kinds(), Vec::new());
    for ((namespace, metric), resources) in found {
        for kind in kinds.iter().filter(|kind| kind.iter().any(|resource| resources.contains(resource))) {
            let having = kind.iter().filter(|resource| has(resource, namespace, metric));
            let missing = having.filter(|resource| !resources.contains(*resource));
            messages
                .extend(missing.map(|(_, name)| format!("{place} watches {namespace} {metric}, but not of {name}")));
        }
    }
    messages
}

#[test]
fn alarms_and_dashboard_watch_only_what_exists() {
    let kinds = kinds();
    for monitor in monitors() {
        for WatchedMetric { namespace, metric, resource } in &monitor.watched {
            assert!(
                kinds.iter().any(|kind| kind.contains(resource)),
                "{monitor} watches {resource:?}: no such resource"
            );
            assert!(
                has(resource, namespace, metric),
                "{monitor} watches {namespace} {metric} of {resource:?}: no such metric"
            );
        }
    }
}

/// A search for endpoints finds every function of the stack, so it has to leave out those without a route.
#[test]
fn graphs_of_endpoints_search_for_what_lambda_publishes_of_each_function_with_a_route() {
    let searches: Vec<String> = graphs().into_iter().flat_map(|graph| graph.searches).collect();
    assert!(!searches.is_empty());
    let others = Template::read().functions_that(|function| !function.is_triggered_by("HttpApi"));
    let others: String = others.into_iter().flat_map(|name| [" NOT ", name]).collect();
    for search in searches {
        let inner = search.strip_prefix("SEARCH('{AWS/Lambda,FunctionName} MetricName=\"");
        let (metric, rest) = inner.and_then(|inner| inner.split_once("\" ")).unwrap_or_else(|| panic!("{search}"));
        assert!(has(&lambda("me"), "AWS/Lambda", metric), "{search}");
        assert!(rest.starts_with(&format!("marketplace{others}', '")), "{search}");
    }
}

#[test]
fn what_alarms_or_graphs_watch_of_one_resource_they_watch_of_all_of_its_kind() {
    for (file, monitors) in sides() {
        let messages = left_out(file, monitors.iter().flat_map(|monitor| &monitor.watched));
        assert!(messages.is_empty(), "{}", messages.join("\n"));
    }
}

#[test]
fn every_function_without_a_route_has_an_alarm_and_a_graph() {
    for (file, monitors) in sides() {
        let watched: BTreeSet<_> =
            monitors.iter().flat_map(|monitor| &monitor.watched).map(|one| &one.resource).collect();
        // A hook that fails fails its deployment, which nobody misses.
        let unrouted = |function: &Function| !function.is_hook() && !function.is_triggered_by("HttpApi");
        for function in Template::read().functions_that(unrouted) {
            assert!(watched.contains(&lambda(function)), "{file} watches nothing of {function}");
        }
    }
}

#[test]
fn every_function_publishes_into_the_namespace_that_is_watched() {
    for (name, function) in &Template::read().functions {
        assert_eq!(function.properties["Environment"]["Variables"][NAMESPACE_VARIABLE], NAMESPACE, "{name}");
    }
}

#[test]
fn every_parameter_of_the_alarms_can_be_set_from_the_service() {
    let resource = Template::read().service().remove("AlarmStack").unwrap();
    let given = resource["Properties"]["Parameters"].as_object().unwrap();
    let given: BTreeSet<&str> = given.keys().map(String::as_str).collect();
    let file = resource["Properties"]["TemplateURL"].as_str().unwrap();
    let path = format!("{}/../{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let parameters = text.split("\nParameters:\n").nth(1).unwrap().split("\nResources:\n").next().unwrap();
    let names = parameters.lines().filter_map(|line| line.strip_prefix("  ")?.strip_suffix(':'));
    let names: BTreeSet<&str> = names.filter(|name| !name.starts_with(' ')).collect();
    assert_eq!(given, names, "{file}");
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

#[test]
fn the_probe_fires_if_its_health_check_fails_or_reports_nothing() {
    let status = WatchedMetric {
        namespace: "AWS/Route53".to_owned(),
        metric: "HealthCheckStatus".to_owned(),
        resource: ("HealthCheckId".to_owned(), "HealthCheck".to_owned()),
    };
    let alarms = probe_alarms();
    assert_eq!(alarms.len(), 1);
    assert_eq!(alarms[0].watched, BTreeSet::from([status]));
    let alarm = probe_properties("Probe");
    // The metric is 1 while the API answers, and 0 otherwise.
    assert_eq!((&alarm["Statistic"], &alarm["Threshold"]), (&json!("Minimum"), &json!(1)));
    assert_eq!(alarm["ComparisonOperator"], "LessThanThreshold");
    assert_eq!(alarm["TreatMissingData"], "breaching");
    assert_eq!((&alarm["AlarmActions"], &alarm["OKActions"]), (&json!(["TopicArn"]), &json!(["TopicArn"])));
}

#[test]
fn the_service_brings_no_probe_of_its_own() {
    let nested = Template::read().resources("AWS::CloudFormation::Stack");
    assert!(nested.contains_key("AlarmStack"));
    for (id, stack) in nested {
        assert_ne!(stack["Properties"]["TemplateURL"], "infra/monitoring/probe.yaml", "{id}");
    }
}

const RUNBOOK: &str = include_str!("../../../docs/runbook.md");

#[test]
fn the_runbook_has_a_section_for_each_alarm() {
    let sections: BTreeSet<_> = RUNBOOK.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms: Vec<_> = alarms().into_iter().chain(probe_alarms()).collect();
    assert_eq!(sections, alarms.iter().map(|alarm| alarm.name.as_str()).collect());
}
