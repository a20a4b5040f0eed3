//! The alarms, the dashboard and the probe that the templates in `infra/monitoring` make.

use std::collections::BTreeSet;
use std::fmt;

use common::resources::{Resources, Table};
use serde_json::{Value, json};

use super::table_parameter;
use super::values::{parse, text};

const ALARMS: &str = "alarms.yaml";
const DASHBOARD: &str = "dashboard.yaml";
const PROBE: &str = "probe.yaml";

/// An alarm, or a graph of the dashboard.
#[derive(Debug)]
pub struct Monitor {
    /// Its file in `infra/monitoring`.
    pub file: &'static str,
    /// The alarm's name without the stack's, or the graph's title.
    pub name: String,
    pub watched: BTreeSet<WatchedMetric>,
}

/// A metric of one resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WatchedMetric {
    pub namespace: String,
    pub metric: String,
    /// The dimension that names a resource, and the resource's name. With several dimensions, their names and values are
    /// joined by `/`. Both are empty for a metric of the whole account.
    pub resource: (String, String),
}

/// Returns all alarms that somebody is told of.
pub fn alarms() -> Vec<Monitor> {
    alarms_in(ALARMS)
}

/// Returns the only alarm of the probe.
pub fn probe_alarm() -> Monitor {
    alarms_in(PROBE).remove(0)
}

/// Returns the properties of a resource of the probe. References become the names of what they refer to.
pub fn probe_properties(id: &str) -> Value {
    nested(PROBE)["Resources"][id]["Properties"].clone()
}

fn alarms_in(file: &'static str) -> Vec<Monitor> {
    let resources = nested(file)["Resources"].as_object().unwrap().clone();
    let alarms = resources.values().filter(|resource| resource["Type"] == "AWS::CloudWatch::Alarm").map(|alarm| {
        let properties = &alarm["Properties"];
        let name = text(&properties["AlarmName"]).strip_prefix("marketplace-").unwrap().to_owned();
        Monitor { file, name, watched: of_alarm(properties) }
    });
    alarms.collect()
}

/// Returns the dashboard's graphs.
pub fn graphs() -> Vec<Monitor> {
    let dashboard = nested(DASHBOARD);
    let body = text(&dashboard["Resources"]["Dashboard"]["Properties"]["DashboardBody"]);
    let body: Value = serde_json::from_str(body).unwrap();
    let graphs = body["widgets"].as_array().unwrap().iter().filter(|widget| widget["type"] == "metric");
    let graphs = graphs.map(|graph| {
        let properties = &graph["properties"];
        let name = text(&properties["title"]).to_owned();
        Monitor { file: DASHBOARD, name, watched: of_graph(properties["metrics"].as_array().unwrap()) }
    });
    graphs.collect()
}

impl fmt::Display for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" in infra/monitoring/{}", self.name, self.file)
    }
}

/// Reads a template as it is deployed for a stack with the default name. References to its other parameters
/// become the parameters' names.
fn nested(file: &str) -> Value {
    let path = format!("{}/../infra/monitoring/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    named(parse(&text))
}

fn of_alarm(alarm: &Value) -> BTreeSet<WatchedMetric> {
    let queries = || alarm["Metrics"].as_array().into_iter().flatten();
    let expressions: String = queries().filter_map(|query| query["Expression"].as_str()).collect();
    let names: Vec<&str> = expressions.split(|c: char| !c.is_alphanumeric()).collect();
    let metrics = queries().filter(|query| query["MetricStat"].is_object()).map(|query| {
        let is_used =
            query["ReturnData"] != false || ["METRICS", text(&query["Id"])].iter().any(|it| names.contains(it));
        assert!(is_used, "no expression has {query}");
        &query["MetricStat"]["Metric"]
    });
    let single = alarm.get("MetricName").map(|_| alarm);
    metrics.chain(single).map(watched).collect()
}

/// Reads the rows of a graph. In a row, `.` repeats one name of the row before it, and `...` repeats all names that the
/// row leaves out. Expressions are left out.
fn of_graph(rows: &[Value]) -> BTreeSet<WatchedMetric> {
    let (mut shown, mut before) = (BTreeSet::new(), Vec::new());
    for columns in rows.iter().filter(|columns| columns[0].is_string()) {
        let columns = columns.as_array().unwrap();
        let mut row: Vec<&str> = columns.iter().filter_map(Value::as_str).collect();
        if let Some(rest) = row.strip_prefix(&["..."]) {
            row = before[..before.len() - rest.len()].iter().chain(rest).copied().collect();
        }
        row = row.iter().enumerate().map(|(at, name)| if *name == "." { before[at] } else { name }).collect();
        let (namespace, metric, dimension, name) = match row[..] {
            [namespace, metric] => (namespace, metric, "", ""),
            [namespace, metric, dimension, name] => (namespace, metric, dimension, name),
            _ => panic!("not a metric of one resource: {row:?}"),
        };
        shown.insert(WatchedMetric {
            namespace: namespace.to_owned(),
            metric: metric.to_owned(),
            resource: (dimension.to_owned(), name.to_owned()),
        });
        before = row;
    }
    shown
}

/// Reads a metric. One of the whole account has no dimensions.
fn watched(metric: &Value) -> WatchedMetric {
    let dimensions: Vec<&Value> = metric["Dimensions"].as_array().into_iter().flatten().collect();
    let joined = |part| dimensions.iter().map(|dimension| text(&dimension[part])).collect::<Vec<_>>().join("/");
    WatchedMetric {
        namespace: text(&metric["Namespace"]).to_owned(),
        metric: text(&metric["MetricName"]).to_owned(),
        resource: (joined("Name"), joined("Value")),
    }
}

/// Puts the stack's name into a document. The parts of the name are the name itself.
fn named(value: Value) -> Value {
    match value {
        Value::Array(values) => values.into_iter().map(named).collect(),
        Value::Object(entries) => {
            let pattern = entries.get("Fn::Sub").map(|argument| argument.get(0).unwrap_or(argument));
            if let Some(Value::String(pattern)) = pattern {
                let table = |pattern: String, table: Table| {
                    pattern.replace(&format!("${{{}}}", table_parameter(table)), table.suffix())
                };
                let pattern = Table::ALL.into_iter().fold(pattern.clone(), table);
                let pattern = pattern.replace("${Stack}", Resources::DEFAULT_STACK);
                return json!(pattern.replace("${Words}", Resources::DEFAULT_STACK).replace("${ApiId}", "ApiId"));
            }
            if let Some(Value::String(parameter)) = entries.get("Ref") {
                return json!(if parameter == "Stack" { Resources::DEFAULT_STACK } else { parameter });
            }
            entries.into_iter().map(|(name, value)| (name, named(value))).collect()
        }
        scalar => scalar,
    }
}
