//! Reads the metrics in a function's log as CloudWatch does, and checks them against the embedded metric format.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::{Debug, Write as _};
use std::marker::PhantomData;
use std::sync::Once;

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::secrets;
use crate::template::Template;

/// The namespace that functions are given.
pub const NAMESPACE: &str = "Marketplace";

/// A line of a log: a JSON object in which no name is repeated.
pub struct LogLine {
    pub json: Value,
}

impl LogLine {
    pub fn parse(text: &str) -> Self {
        let Unrepeated = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        Self { json: serde_json::from_str(text).unwrap() }
    }

    /// Returns the metrics that CloudWatch takes from the line, or none if it has no `_aws` member. Asserts that they
    /// are well-formed, and that the list of metrics names the function as their publisher.
    pub fn metrics(&self, function: &str) -> BTreeMap<&str, &Value> {
        let Some(metadata) = self.json.get("_aws") else { return BTreeMap::new() };
        let validator = jsonschema::validator_for(&schema()).unwrap();
        let problems: Vec<_> = validator.iter_errors(&self.json).map(|error| error.to_string()).collect();
        assert!(problems.is_empty(), "{problems:?} in {}", self.json);
        let directive = &metadata["CloudWatchMetrics"][0];
        assert_eq!((&directive["Namespace"], &self.json["FunctionName"]), (&json!(NAMESPACE), &json!(function)));
        let names = directive["Metrics"].as_array().unwrap().iter().map(|metric| metric["Name"].as_str().unwrap());
        let count = names.clone().count();
        let metrics: BTreeMap<_, _> = names.map(|name| (name, &self.json[name])).collect();
        assert_eq!(metrics.len(), count, "a metric is named twice: {}", self.json);
        for (name, value) in &metrics {
            assert!(
                Template::read().publishes(function, name),
                "{function} publishes {name}, but `Metric` does not say so"
            );
            let samples = value.as_array().map_or(std::slice::from_ref(*value), Vec::as_slice);
            assert!((1..=100).contains(&samples.len()), "{name}: {value}");
            assert!(samples.iter().all(Value::is_number), "{name}: {value}");
        }
        metrics
    }
}

/// The schema of the embedded metric format, narrowed to what we use: one directive with one dimension.
fn schema() -> Value {
    let text = |most: u32| json!({"type": "string", "minLength": 1, "maxLength": most});
    let metric = json!({
        "type": "object", "required": ["Name", "Unit"], "additionalProperties": false,
        "properties": {"Name": text(1_024), "Unit": {"enum": ["Count", "Milliseconds", "Percent"]}},
    });
    let directive = json!({
        "type": "object", "required": ["Namespace", "Dimensions", "Metrics"], "additionalProperties": false,
        "properties": {
            "Namespace": text(1_024),
            "Dimensions": {"const": [["FunctionName"]]},
            "Metrics": {"type": "array", "minItems": 1, "maxItems": 100, "items": metric},
        },
    });
    json!({
        "type": "object", "required": ["_aws", "FunctionName"],
        "properties": {
            "FunctionName": text(1_024),
            "_aws": {
                "type": "object", "required": ["Timestamp", "CloudWatchMetrics"], "additionalProperties": false,
                "properties": {
                    "Timestamp": {"type": "integer", "minimum": 1_577_836_800_000_u64},
                    "CloudWatchMetrics": {"type": "array", "minItems": 1, "maxItems": 1, "items": directive},
                },
            },
        },
    })
}

/// Accepts a JSON object in which no name is repeated.
struct Unrepeated;

impl<'de> Deserialize<'de> for Unrepeated {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self)
    }
}

impl<'de> Visitor<'de> for Unrepeated {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = std::collections::BTreeSet::new();
        while let Some((name, _)) = map.next_entry::<String, Value>()? {
            if !names.insert(name.clone()) {
                return Err(serde::de::Error::custom(format!("{name} twice")));
            }
        }
        Ok(self)
    }
}

thread_local! {
    /// The lines that this thread has logged since a `Listener` started; none without a listener.
    static LOGGED_LINES: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// Collects the lines of metrics that the test's own thread logs while this lives. One global subscriber hears all
/// threads. Subscribers that come and go with tests would not do: `tracing` caches whether anybody is interested, and
/// may take one subscriber's lack of interest for everybody's.
pub struct Listener(PhantomData<*const ()>);

impl Listener {
    pub fn start() -> Self {
        hear_all_lines();
        LOGGED_LINES.set(Some(Vec::new()));
        Self(PhantomData)
    }

    /// Returns the lines since the last call.
    pub fn take(&self) -> Vec<LogLine> {
        let heard = LOGGED_LINES.replace(Some(Vec::new())).unwrap_or_default();
        heard.iter().map(|members| LogLine::parse(&format!("{{{members}}}"))).collect()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        LOGGED_LINES.set(None);
    }
}

/// Searches each line that is logged from now on for secrets.
pub(crate) fn hear_all_lines() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(LineCollector).unwrap());
}

struct LineCollector;

impl Subscriber for LineCollector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut AllFields(&mut text));
        secrets::search(text.as_bytes(), "a line of the log");
        if event.metadata().target() != "wide" {
            return;
        }
        LOGGED_LINES.with_borrow_mut(|heard| {
            if let Some(heard) = heard {
                event.record(&mut MemberNames(heard));
            }
        });
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

struct AllFields<'a>(&'a mut String);

impl Visit for AllFields<'_> {
    fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
        let _ = write!(self.0, "{value:?} ");
    }
}

struct MemberNames<'a>(&'a mut Vec<String>);

impl Visit for MemberNames<'_> {
    fn record_str(&mut self, _: &Field, value: &str) {
        self.0.push(value.to_owned());
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}
