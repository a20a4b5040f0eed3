//! Lambda: event source mappings, and the concurrency of functions.

use std::sync::Arc;

use http::Method;
use percent_encoding::percent_decode_str;
use platform::resources::{Queue, Resources};
use serde_json::{Value, json};
use uuid::Uuid;

use super::names::{Answered, Refused, alias_arn, deployed, function_arn, not_found};
use crate::environment::{ACCOUNT_ID, REGION};
use crate::switches::{Switch, Switches, Trigger};

/// Where the ids of the mappings begin.
const FIRST_MAPPING: u128 = 1;

/// Answers a call by its method and path.
pub(super) fn answer(switches: &Switches, method: &Method, path: &str, query: &str, body: &Value) -> Answered {
    let parts: Vec<&str> = path.split('/').collect();
    match (method, parts.as_slice()) {
        (&Method::GET, [_, "event-source-mappings"]) => list(switches, query),
        (&Method::GET, [_, "event-source-mappings", id]) => describe(switches, id),
        (&Method::PUT, [_, "event-source-mappings", id]) => {
            let (_, _, switch) = mapping(switches, id)?;
            if let Some(is_on) = body["Enabled"].as_bool() {
                switch.set(is_on);
            }
            describe(switches, id)
        }
        (&Method::GET, [_, "functions", name, "configuration"]) => configuration(switches, name),
        (&Method::GET, [_, "functions", name, "concurrency"]) => {
            let switch = requests(switches, name)?;
            Ok(if switch.is_on() { json!({}) } else { json!({ "ReservedConcurrentExecutions": 0 }) })
        }
        (&Method::PUT, [_, "functions", name, "concurrency"]) => {
            requests(switches, name)?.set(body["ReservedConcurrentExecutions"] != json!(0));
            Ok(body.clone())
        }
        (&Method::DELETE, [_, "functions", name, "concurrency"]) => {
            requests(switches, name)?.set(true);
            Ok(json!({}))
        }
        _ => Err(("InvalidParameterValueException", format!("{method} {path} is not served here"))),
    }
}

fn list(switches: &Switches, query: &str) -> Answered {
    let wanted = query.split('&').find_map(|pair| pair.strip_prefix("FunctionName=")).unwrap_or_default();
    let wanted = percent_decode_str(wanted).decode_utf8_lossy();
    // A mapping is found only by what it calls, which is the alias.
    let found = mappings(switches).filter(|(_, queue, _)| alias_arn(Trigger::Queue(*queue).function()) == wanted);
    let found: Vec<Value> = found.map(|(id, queue, switch)| document(id, queue, switch)).collect();
    if found.is_empty() { Err(not_found(&wanted)) } else { Ok(json!({ "EventSourceMappings": found })) }
}

fn describe(switches: &Switches, id: &str) -> Answered {
    let (id, queue, switch) = mapping(switches, id)?;
    Ok(document(id, queue, switch))
}

fn mappings(switches: &Switches) -> impl Iterator<Item = (Uuid, Queue, &Arc<Switch>)> {
    let queues = switches.iter().filter_map(|(trigger, switch)| match trigger {
        Trigger::Queue(queue) => Some((queue, switch)),
        Trigger::Schedule(_) | Trigger::Requests(_) => None,
    });
    queues.zip(FIRST_MAPPING..).map(|((queue, switch), number)| (Uuid::from_u128(number), queue, switch))
}

fn mapping<'s>(switches: &'s Switches, id: &str) -> Result<(Uuid, Queue, &'s Arc<Switch>), Refused> {
    mappings(switches).find(|(known, _, _)| known.to_string() == id).ok_or_else(|| not_found(id))
}

/// A mapping is disabled once no invocation runs any more.
fn document(id: Uuid, queue: Queue, switch: &Switch) -> Value {
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
    let of_requests = |trigger: Trigger| matches!(trigger, Trigger::Requests(_));
    let mut found = switches.iter().filter(|(trigger, _)| of_requests(*trigger));
    let found = found.find(|(trigger, _)| deployed(trigger.function()) == name);
    found.map(|(_, switch)| switch).ok_or_else(|| not_found(name))
}
