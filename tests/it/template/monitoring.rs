//! Compares alarms and dashboard with the metrics and resources that exist, and with the operator's guide.

use std::collections::BTreeSet;

use platform::resources::{Queue, Table};
use tests::Template;
use tests::monitoring::{Watched, nested, of_alarm, of_dashboard};

use super::names;

const ALARMS: [&str; 2] = ["api-alarms.yaml", "queue-alarms.yaml"];

/// The module that lists all metrics in a table: names, unit, functions.
const METRICS: &str = include_str!("../../../shared/platform/src/metrics/mod.rs");
const GUIDE: &str = include_str!("../../../docs/operations.md");

/// Returns the alarms by their names, without the stack's name.
fn alarms() -> Vec<(String, BTreeSet<Watched>)> {
    let files = ALARMS.into_iter().map(nested);
    let resources = files.flat_map(|file| file["Resources"].as_object().unwrap().clone());
    let named = resources.map(|(_, alarm)| {
        let properties = &alarm["Properties"];
        let name = properties["AlarmName"].as_str().unwrap().strip_prefix("marketplace-").unwrap().to_owned();
        (name, of_alarm(properties))
    });
    named.collect()
}

#[test]
fn alarms_and_dashboard_watch_only_what_exists() {
    let dashboard = nested("dashboard.yaml");
    let body = dashboard["Resources"]["Dashboard"]["Properties"]["DashboardBody"].as_str().unwrap();
    let all = alarms().into_iter().flat_map(|(_, watched)| watched).chain(of_dashboard(body));
    for watched in all.collect::<BTreeSet<_>>() {
        let (dimension, name) = &watched.resource;
        let function = name.strip_prefix("marketplace-").unwrap_or_default();
        let is_there = match (watched.namespace.as_str(), dimension.as_str()) {
            ("Marketplace", "FunctionName") => Template::read().publishes(function, &watched.metric),
            ("AWS/Lambda", "FunctionName") => Template::read().functions.contains_key(function),
            ("AWS/SQS", "QueueName") => Queue::ALL.iter().any(|queue| names().queue(*queue) == *name),
            ("AWS/DynamoDB", "TableName") => Table::ALL.iter().any(|table| names().table(*table) == *name),
            ("AWS/DynamoDB", "TableName/GlobalSecondaryIndexName") => Table::ALL.iter().any(|table| {
                table.indexes().iter().any(|index| format!("{}/{}", names().table(*table), index.name) == *name)
            }),
            ("AWS/ApiGateway", "ApiId") => ["ApiId", "${ApiId}"].contains(&name.as_str()),
            _ => false,
        };
        assert!(is_there, "{watched:?}");
    }
}

#[test]
fn the_operators_guide_explains_each_alarm() {
    let section = GUIDE.split("\n## ").find(|section| section.starts_with("Alarms\n")).unwrap();
    let explained: BTreeSet<_> = section.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let alarms = alarms();
    assert_eq!(explained, alarms.iter().map(|(name, _)| name.as_str()).collect());
    let watched: usize = alarms.iter().map(|(_, watched)| watched.len()).sum();
    assert!(GUIDE.contains(&format!("they look at {watched} metrics")), "{watched}");
}
