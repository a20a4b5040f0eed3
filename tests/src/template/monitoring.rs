//! The metrics that the nested stacks in `infra/monitoring` watch.

use std::collections::BTreeSet;

use platform::resources::Resources;
use serde_json::{Value, json};

use super::values::text;
use super::yaml;

/// A metric of one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Watched {
    pub namespace: String,
    pub metric: String,
    /// The dimension that names the resource, and the resource's name. With several dimensions, their names and
    /// values are joined by `/`.
    pub resource: (String, String),
}

/// Reads a nested stack as it is deployed for a stack with the default name. References to its other parameters
/// become the parameters' names.
pub fn nested(file: &str) -> Value {
    let path = format!("{}/../infra/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    named(yaml::parse(&text))
}

/// Returns the metrics that an alarm watches.
pub fn of_alarm(alarm: &Value) -> BTreeSet<Watched> {
    let queries = alarm["Metrics"].as_array().into_iter().flatten();
    let metrics = queries.map(|query| &query["MetricStat"]["Metric"]).filter(|metric| metric.is_object());
    let single = alarm.get("MetricName").map(|_| alarm);
    metrics.chain(single).map(watched).collect()
}

/// Returns the metrics that a dashboard shows. In a row, `.` repeats one name of the row before it, and `...` repeats
/// all names that the row leaves out.
pub fn of_dashboard(body: &str) -> BTreeSet<Watched> {
    let body: Value = serde_json::from_str(body).unwrap();
    let mut shown = BTreeSet::new();
    for widget in body["widgets"].as_array().unwrap() {
        let mut before = Vec::new();
        for row in widget["properties"]["metrics"].as_array().into_iter().flatten() {
            let mut row: Vec<&str> = row.as_array().unwrap().iter().filter_map(Value::as_str).collect();
            if let Some(rest) = row.strip_prefix(&["..."]) {
                row = before[..before.len() - rest.len()].iter().chain(rest).copied().collect();
            }
            row = row.iter().enumerate().map(|(at, name)| if *name == "." { before[at] } else { name }).collect();
            let [namespace, metric, dimension, name] = row[..] else { panic!("not a metric of one resource: {row:?}") };
            before = row.clone();
            let resource = (dimension.to_owned(), name.to_owned());
            shown.insert(Watched { namespace: namespace.to_owned(), metric: metric.to_owned(), resource });
        }
    }
    shown
}

fn watched(metric: &Value) -> Watched {
    let dimensions = metric["Dimensions"].as_array().unwrap();
    let joined = |part| dimensions.iter().map(|dimension| text(&dimension[part])).collect::<Vec<_>>().join("/");
    let resource = (joined("Name"), joined("Value"));
    Watched {
        namespace: text(&metric["Namespace"]).to_owned(),
        metric: text(&metric["MetricName"]).to_owned(),
        resource,
    }
}

/// Puts the stack's name into a document.
fn named(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(named).collect(),
        Value::Object(entries) => {
            if let Some(Value::String(pattern)) = entries.get("Fn::Sub") {
                return json!(pattern.replace("${Stack}", Resources::DEFAULT_STACK));
            }
            if let Some(Value::String(parameter)) = entries.get("Ref") {
                return json!(if parameter == "Stack" { Resources::DEFAULT_STACK } else { parameter });
            }
            entries.into_iter().map(|(name, value)| (name, named(value))).collect()
        }
        scalar => scalar,
    }
}
