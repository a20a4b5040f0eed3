//! Tries a version of a function: with a real event that changes nothing. An answer says whether it passes.

use std::time::Duration;

use api::routes::{ROUTES, Route};
use aws_sdk_lambda::Client;
use aws_sdk_lambda::config::Builder;
use aws_sdk_lambda::config::retry::RetryConfig;
use aws_sdk_lambda::config::timeout::TimeoutConfig;
use aws_sdk_lambda::error::ProvideErrorMetadata;
use aws_sdk_lambda::operation::invoke::InvokeOutput;
use aws_sdk_lambda::primitives::Blob;
use aws_sdk_lambda::types::InvocationType;
use common::aws::{Environment, Patience};
use common::runtime::Error;
use common::store::explain;
use serde_json::{Map, Value, json};

use crate::deployment::HookEvent;

/// The longest time for connecting to Lambda.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest time for an answer. A version that starts may load a base, and Lambda starts one that failed a second
/// time.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// A client of Lambda. The caller repeats what fails.
pub(crate) struct Invoker(Client);

/// How a try of a version went.
pub(crate) enum Attempt {
    Passed,
    /// It ended in init, failed, or gave another answer than it should have.
    Failed(String),
    /// It cannot be invoked yet.
    NotNow(String),
    /// The account has no concurrency left.
    Throttled,
}

impl Invoker {
    pub(crate) fn new(environment: &Environment) -> Self {
        let timeouts = TimeoutConfig::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .operation_attempt_timeout(ANSWER_TIMEOUT)
            .operation_timeout(ANSWER_TIMEOUT);
        let mut config = Builder::from(&environment.config(Patience::Bulk));
        config.set_timeout_config(Some(timeouts.build()));
        config.set_retry_config(Some(RetryConfig::disabled()));
        config.set_interceptors(environment.interceptors());
        Self(Client::from_conf(config.build()))
    }

    /// Tries a version, which is named by its ARN.
    pub(crate) async fn invoke(&self, version: &str, trial: &Trial) -> Attempt {
        let payload = Blob::new(trial.event.to_string());
        match self.0.invoke().function_name(version).payload(payload).send().await {
            Ok(output) => judge(output, trial),
            Err(error) => match error.code() {
                Some("TooManyRequestsException") => Attempt::Throttled,
                Some("AccessDeniedException" | "ResourceNotFoundException") => Attempt::Failed(explain(&error)),
                _ => Attempt::NotNow(explain(&error)),
            },
        }
    }

    /// Has Lambda invoke a function with an event as soon as it can. It queues the event for hours if it has to.
    pub(crate) async fn invoke_later(&self, function: &str, event: &HookEvent) -> Result<(), Error> {
        let invoke = self.0.invoke().function_name(function).invocation_type(InvocationType::Event);
        let payload = Blob::new(serde_json::to_vec(event)?);
        invoke.payload(payload).send().await.map(drop).map_err(|error| explain(&error).into())
    }
}

fn judge(output: InvokeOutput, trial: &Trial) -> Attempt {
    let answer = output.payload.map(Blob::into_inner).unwrap_or_default();
    let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
    match output.function_error {
        None if trial.is_passed_by(&answer) => Attempt::Passed,
        None => Attempt::Failed(format!("gave an answer that it should not: {answer}")),
        Some(_) => Attempt::Failed(format!("failed: {answer}")),
    }
}

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
