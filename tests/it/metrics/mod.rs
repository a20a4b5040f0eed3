//! What functions publish: the one line of each request, batch and run as CloudWatch takes it.

mod requests;
mod workers;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use tests::{Line, NAMESPACE};

/// The metrics of a line of a function but for those that time decides.
fn of<'a>(line: &'a Line, function: &str, times: &[&'a str]) -> BTreeMap<&'a str, &'a Value> {
    let mut metrics = line.metrics(function);
    for name in times {
        let value = metrics.remove(name).unwrap_or_else(|| panic!("no {name}: {}", line.json));
        let samples = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        assert!(samples.iter().all(|sample| sample.as_f64().unwrap() >= 0.0), "{name}: {value}");
    }
    metrics
}

#[track_caller]
fn assert_metrics(found: &BTreeMap<&str, &Value>, expected: &Value) {
    assert_eq!(json!(found), *expected);
}

/// What alarms and dashboard look at is published.
#[test]
fn every_metric_that_is_watched_is_in_the_list() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let list = read("shared/src/metrics/mod.rs");
    let listed: BTreeSet<&str> = list.split('`').skip(1).step_by(2).collect();
    let mut watched = BTreeSet::new();
    for file in ["api-alarms.yaml", "queue-alarms.yaml", "dashboard.yaml"] {
        let text = read(&format!("infra/monitoring/{file}"));
        for after in text.split(NAMESPACE).skip(1) {
            let after = after.trim_start_matches([',', '"', ' ', '\n']).trim_start_matches("MetricName: ");
            let name = after.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
            watched.insert(name.to_owned());
        }
    }
    let unknown: Vec<_> = watched.iter().filter(|name| !listed.contains(name.as_str())).collect();
    assert!(unknown.is_empty() && watched.len() >= 15, "{unknown:?} of {watched:?}");
}
