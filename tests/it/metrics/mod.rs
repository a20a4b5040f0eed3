//! The metrics that functions publish: one line per request, batch or run, read as CloudWatch reads it.

mod requests;
mod workers;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tests::LogLine;

/// Returns the metrics of a line without the ones in `times`, whose values depend on time. Asserts that these are
/// there and not negative.
fn timeless_metrics<'a>(line: &'a LogLine, function: &str, times: &[&'a str]) -> BTreeMap<&'a str, &'a Value> {
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
