//! Lambda and EventBridge, as far as an operator uses them to stop and to start what triggers the functions of the
//! default stack, and as far as the marketplace uses them to invoke a function.

use std::sync::Arc;

use bytes::Bytes;
use common::resources::{ALIAS, Queue, Resources};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::environment::{ACCOUNT_ID, REGION};
use crate::server::{Body, full};
use crate::switches::{Invocations, Switch, Switches, Trigger};

/// The name of an error, and its message.
type Refused = (&'static str, String);
type Answered = Result<Value, Refused>;

/// Answers a call to Lambda by its method and path.
pub(super) async fn lambda(
    switches: &Switches,
    invocations: &Invocations,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/');
    let query = head.uri.query().unwrap_or_default();
    let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
    let payload = bytes(body).await;
    let body = || serde_json::from_slice::<Value>(&payload).unwrap_or_default();
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let answered = match (&head.method, parts.as_slice()) {
        (&Method::POST, ["functions", name, "invocations"]) => {
            return match invoke(switches, invocations, name, parameter("Qualifier"), &payload).await {
                Ok(Err(error)) => {
                    let failed = json!({ "errorType": "Runtime.Error", "errorMessage": error });
                    let mut response = response(Ok(failed));
                    response.headers_mut().insert("x-amz-function-error", HeaderValue::from_static("Unhandled"));
                    response
                }
                Ok(Ok(returned)) => response(Ok(returned)),
                Err(refused) => response(Err(refused)),
            };
        }
        (&Method::GET, ["event-source-mappings"]) => list_mappings(switches, parameter("FunctionName")),
        (&Method::GET, ["event-source-mappings", id]) => describe_mapping(switches, id, None),
        (&Method::PUT, ["event-source-mappings", id]) => describe_mapping(switches, id, body()["Enabled"].as_bool()),
        (&Method::GET, ["functions", name, "configuration"]) => configuration(switches, name),
        (&Method::GET, ["functions", name, "concurrency"]) => requests(switches, name)
            .map(|switch| if switch.is_on() { json!({}) } else { json!({ "ReservedConcurrentExecutions": 0 }) }),
        (&Method::PUT, ["functions", name, "concurrency"]) => requests(switches, name).map(|switch| {
            switch.set(body()["ReservedConcurrentExecutions"] != json!(0));
            body()
        }),
        (&Method::DELETE, ["functions", name, "concurrency"]) => requests(switches, name).map(|switch| {
            switch.set(true);
            json!({})
        }),
        (method, _) => Err(("InvalidParameterValueException", format!("{method} {path} is not served here"))),
    };
    response(answered)
}

/// Answers a call to EventBridge. A rule that is being disabled is off once no invocation runs any more.
pub(super) async fn events(switches: &Switches, operation: &str, request: Request<Incoming>) -> Response<Body> {
    let request: Value = serde_json::from_slice(&bytes(request.into_body()).await).unwrap_or_default();
    let name = request["Name"].as_str().unwrap_or_default();
    let rule = |function: &str| format!("{}-every-minute", deployed(function));
    let schedules = || {
        switches.iter().filter_map(|(trigger, switch)| match trigger {
            Trigger::Schedule(function) => Some((function, switch)),
            Trigger::Queue(_) | Trigger::Requests(_) => None,
        })
    };
    let found = schedules().find(|(function, _)| rule(function) == name).map(|(_, switch)| switch);
    let answered = match (operation, found) {
        ("ListRuleNamesByTarget", _) => {
            let target = request["TargetArn"].as_str().unwrap_or_default();
            let found = schedules().filter(|(function, _)| alias_arn(function) == target);
            Ok(json!({ "RuleNames": found.map(|(function, _)| rule(function)).collect::<Vec<_>>() }))
        }
        ("DescribeRule", Some(switch)) => {
            Ok(json!({ "Name": name, "State": if switch.is_on() { "ENABLED" } else { "DISABLED" } }))
        }
        ("EnableRule", Some(switch)) => {
            switch.set(true);
            Ok(json!({}))
        }
        ("DisableRule", Some(switch)) => {
            switch.set(false);
            switch.wait_until_idle().await;
            Ok(json!({}))
        }
        ("DescribeRule" | "EnableRule" | "DisableRule", None) => Err(not_found(name)),
        _ => Err(("ValidationException", format!("{operation} is not among the operations served here"))),
    };
    response(answered)
}

/// Invokes a function that is named by its name or its ARN, whose colons may be encoded. The alias or the version stands
/// behind the name, or in the query. The inner error is what the function failed with.
async fn invoke(
    switches: &Switches,
    invocations: &Invocations,
    name: &str,
    qualifier: Option<&str>,
    payload: &[u8],
) -> Result<Result<Value, String>, Refused> {
    let function = function(name).filter(|_| qualifier.is_none_or(is_known)).ok_or_else(|| not_found(name))?;
    let is_it = |trigger: Trigger| matches!(trigger, Trigger::Requests(known) if known == function);
    let switch = switches.iter().find(|(trigger, _)| is_it(*trigger)).map(|(_, switch)| switch);
    let throttled = || ("TooManyRequestsException", "Rate Exceeded.".to_owned());
    let _pass = switch.map(|switch| switch.try_enter().ok_or_else(throttled)).transpose()?;
    let event = serde_json::from_slice(payload)
        .map_err(|error| ("InvalidRequestContentException", format!("The payload is no JSON: {error}")))?;
    invocations.invoke(&function, event).await.ok_or_else(|| not_found(name))
}

fn list_mappings(switches: &Switches, function: Option<&str>) -> Answered {
    let wanted = percent_decode_str(function.unwrap_or_default()).decode_utf8_lossy();
    // A mapping is found only by what it calls, which is the alias.
    let found = mappings(switches).filter(|(_, queue, _)| alias_arn(Trigger::Queue(*queue).function()) == wanted);
    let found: Vec<Value> = found.map(|(id, queue, switch)| mapping(id, queue, switch)).collect();
    if found.is_empty() { Err(not_found(&wanted)) } else { Ok(json!({ "EventSourceMappings": found })) }
}

/// Describes a mapping, after it was switched on or off if that is wanted.
fn describe_mapping(switches: &Switches, id: &str, is_on: Option<bool>) -> Answered {
    let found = mappings(switches).find(|(known, _, _)| known.to_string() == id);
    let (id, queue, switch) = found.ok_or_else(|| not_found(id))?;
    if let Some(is_on) = is_on {
        switch.set(is_on);
    }
    Ok(mapping(id, queue, switch))
}

fn mappings(switches: &Switches) -> impl Iterator<Item = (Uuid, Queue, &Arc<Switch>)> {
    let queues = switches.iter().filter_map(|(trigger, switch)| match trigger {
        Trigger::Queue(queue) => Some((queue, switch)),
        Trigger::Schedule(_) | Trigger::Requests(_) => None,
    });
    queues.zip(1..).map(|((queue, switch), number)| (Uuid::from_u128(number), queue, switch))
}

/// A mapping is disabled once no invocation runs any more.
fn mapping(id: Uuid, queue: Queue, switch: &Switch) -> Value {
    let state = match (switch.is_on(), switch.is_idle()) {
        (true, _) => "Enabled",
        (false, false) => "Disabling",
        (false, true) => "Disabled",
    };
    let queue_name = Resources::new(Resources::DEFAULT_STACK).queue(queue);
    json!({
        "UUID": id,
        "FunctionArn": alias_arn(Trigger::Queue(queue).function()),
        "EventSourceArn": format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{queue_name}"),
        "State": state,
    })
}

/// Says that functions end after a second: whatever triggers them is off only once none of them runs.
fn configuration(switches: &Switches, name: &str) -> Answered {
    let function = switches.iter().map(|(trigger, _)| trigger.function()).find(|function| deployed(function) == name);
    let function = function.ok_or_else(|| not_found(name))?;
    Ok(json!({ "FunctionName": name, "FunctionArn": function_arn(function), "Timeout": 1 }))
}

fn requests<'s>(switches: &'s Switches, name: &str) -> Result<&'s Arc<Switch>, Refused> {
    let is_it = |trigger: Trigger| matches!(trigger, Trigger::Requests(function) if deployed(function) == name);
    let found = switches.iter().find(|(trigger, _)| is_it(*trigger));
    found.map(|(_, switch)| switch).ok_or_else(|| not_found(name))
}

/// Returns the name of a deployed function.
fn deployed(function: &str) -> String {
    Resources::new(Resources::DEFAULT_STACK).function(function)
}

fn function_arn(function: &str) -> String {
    format!("arn:aws:lambda:{REGION}:{ACCOUNT_ID}:function:{}", deployed(function))
}

/// Returns the ARN of a function's alias, which is what triggers call.
fn alias_arn(function: &str) -> String {
    format!("{}:{ALIAS}", function_arn(function))
}

/// Returns a function's name without that of the stack. It may be named by its name or its ARN, percent-encoded, with or
/// without its alias or a version. `None` if the default stack has no such function or alias.
fn function(named: &str) -> Option<String> {
    let named = percent_decode_str(named).decode_utf8_lossy();
    let named = named.strip_prefix(&function_arn("")).or_else(|| named.strip_prefix(&deployed("")))?;
    let (function, qualifier) = named.split_once(':').unwrap_or((named, ALIAS));
    is_known(qualifier).then(|| function.to_owned())
}

/// Returns whether a function has this alias or may have this version.
fn is_known(qualifier: &str) -> bool {
    qualifier == ALIAS || qualifier.parse::<u32>().is_ok_and(|version| version > 0)
}

fn not_found(what: &str) -> Refused {
    ("ResourceNotFoundException", format!("There is no {what}."))
}

async fn bytes(body: Incoming) -> Bytes {
    body.collect().await.map(Collected::to_bytes).unwrap_or_default()
}

fn response(answered: Answered) -> Response<Body> {
    let (status, error, body) = match answered {
        Ok(body) => (StatusCode::OK, None, body),
        Err((name, message)) => {
            let body = json!({ "__type": name, "message": message, "Message": message });
            (StatusCode::BAD_REQUEST, Some(name), body)
        }
    };
    let mut response = Response::new(full(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(error) = error {
        response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(error));
    }
    response
}
