//! What a version of each function is tried with: a real event that changes nothing, and what must come back.

use api::routes::{ROUTES, Route};
use serde_json::{Map, Value, json};

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
    let parameters: Map<String, Value> = parameters.into_iter().flatten().collect();
    let path = path.join("/");
    json!({
        "version": "2.0",
        "routeKey": key,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {},
        "pathParameters": parameters,
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
    answer["statusCode"] == json!(200) || asks_for_the_edge(answer)
}

fn asks_for_a_key(answer: &Value) -> bool {
    is_refused(answer, 401, "api_keys.missing") || asks_for_the_edge(answer)
}

/// Returns whether the function refuses requests that do not come through the deployment's edge. The hook does not know
/// the edge's secret, and this answer shows as well that the function works.
fn asks_for_the_edge(answer: &Value) -> bool {
    is_refused(answer, 403, "hosts.not_allowed")
}

fn is_refused(answer: &Value, status: u16, code: &str) -> bool {
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap_or_default()).unwrap_or_default();
    answer["statusCode"] == json!(status) && body["error"]["code"] == json!(code)
}

fn has_failed_at_nothing(answer: &Value) -> bool {
    answer["batchItemFailures"] == json!([])
}

fn has_no_keys(answer: &Value) -> bool {
    answer["result"]["keys"] == json!([])
}
