//! What a version of each function is tried with: a real event that changes nothing, and what must come back.

use api::routes::{ROUTES, Route};
use serde_json::{Value, json};

/// An event, and which answers to it pass.
pub(crate) struct Trial {
    pub(crate) event: Value,
    passes: fn(&Value) -> bool,
}

/// A user who has nothing.
const NOBODY: &str = "00000000-0000-0000-0000-000000000000";

impl Trial {
    /// Returns the trial of a version. `None` if its ARN names no function of this stack that is known here.
    pub(crate) fn for_version(arn: &str, stack: &str) -> Option<Self> {
        let function = arn.split(':').nth(6)?.strip_prefix(stack)?.strip_prefix('-')?;
        if let Some(route) = ROUTES.iter().find(|route| route.function == function) {
            let passes = if route.budget.is_some() { asks_for_a_key } else { is_ok };
            return Some(Self { event: request(route), passes });
        }
        let (event, passes): (Value, fn(&Value) -> bool) = match function {
            "ingest" | "webhook" => (json!({ "Records": [] }), has_failed_at_nothing),
            "sweep" | "compact" => (json!({ "resources": [] }), Value::is_null),
            "account" => (json!({ "version": 1, "user_id": NOBODY, "command": "keys.list" }), has_no_keys),
            _ => return None,
        };
        Some(Self { event, passes })
    }

    pub(crate) fn is_passed_by(&self, answer: &Value) -> bool {
        (self.passes)(answer)
    }
}

/// Returns the gateway's event of a request without a key.
fn request(route: &Route) -> Value {
    let key = format!("ANY {}", route.path);
    let (parameters, path): (Vec<_>, Vec<_>) = route
        .path
        .split('/')
        .map(|segment| match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => (Some((name.to_owned(), json!(NOBODY))), NOBODY),
            None => (None, segment),
        })
        .unzip();
    let (parameters, path) = (parameters.into_iter().flatten().collect(), path.join("/"));
    json!({
        "version": "2.0",
        "routeKey": key,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "pathParameters": Value::Object(parameters),
        "isBase64Encoded": false,
        "requestContext": {
            "routeKey": key,
            "stage": "$default",
            "requestId": "pretraffic",
            "timeEpoch": 0,
            "http": { "method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1" },
        },
    })
}

fn is_ok(answer: &Value) -> bool {
    answer["statusCode"] == json!(200)
}

fn asks_for_a_key(answer: &Value) -> bool {
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap_or_default()).unwrap_or_default();
    answer["statusCode"] == json!(401) && body["error"]["code"] == json!("api_keys.missing")
}

fn has_failed_at_nothing(answer: &Value) -> bool {
    answer["batchItemFailures"] == json!([])
}

fn has_no_keys(answer: &Value) -> bool {
    answer["result"]["keys"] == json!([])
}
