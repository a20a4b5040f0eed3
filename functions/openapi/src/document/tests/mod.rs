//! Tests of the document as clients receive it: its JSON, not the types that it is built from.

mod endpoints;
mod events;
mod examples;
mod guide;
mod headers;
mod kept;
mod links;
mod records;
mod structure;

use api::GatewayEvent;
use serde_json::{Map, Value, json};

pub(super) fn document() -> Value {
    serde_json::to_value(super::openapi()).unwrap()
}

/// Visits every JSON object below a value, with the path to it.
pub(super) fn objects<'a>(value: &'a Value, at: &str, visit: &mut dyn FnMut(&str, &'a Map<String, Value>)) {
    match value {
        Value::Object(object) => {
            visit(at, object);
            object.iter().for_each(|(name, value)| objects(value, &format!("{at}/{name}"), visit));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(n, value)| objects(value, &format!("{at}/{n}"), visit));
        }
        _ => {}
    }
}

/// Returns what a reference points to, or the value itself if it is not a reference.
pub(super) fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} does not resolve")),
        None => value,
    }
}

/// Returns the reasons why a value does not fit a schema of the document; none if it fits.
pub(super) fn misfits(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let schema = json!({"allOf": [schema], "components": document["components"]});
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

/// Returns every operation with its path.
pub(super) fn operations(document: &Value) -> Vec<(&str, &Value)> {
    document["paths"].as_object().unwrap().iter().map(|(path, item)| (path.as_str(), &item["get"])).collect()
}

/// Returns a request as the gateway passes it on.
pub(super) fn request() -> GatewayEvent {
    let mut event = GatewayEvent::default();
    event.request_context.request_id = Some("JKJaXmPLvHcESHA=".to_owned());
    event
}
