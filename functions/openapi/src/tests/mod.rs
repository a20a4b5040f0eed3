//! Tests of the description as clients receive it. What stands both there and in the code must agree, so they compare it
//! with the code's values.

mod endpoints;
mod errors;
mod events;
mod page;
mod records;

use api::error::{ApiError, FieldCode, FieldError};
use common::scope::{Budget, Scope};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// Returns the description that is served.
fn description() -> Value {
    serde_json::from_str(crate::OPENAPI).unwrap()
}

/// Visits every JSON object below a value, with the path to it.
fn objects<'a>(value: &'a Value, at: &str, visit: &mut dyn FnMut(&str, &'a Map<String, Value>)) {
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
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => document.pointer(&reference[1..]).unwrap_or_else(|| panic!("{reference} does not resolve")),
        None => value,
    }
}

/// Returns the reasons why a value does not fit a schema of the document; none if it fits.
fn misfits(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let schema = json!({"allOf": [schema], "components": document["components"]});
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    validator.iter_errors(value).map(|error| error.to_string()).collect()
}

/// Returns a reference to a named schema.
fn named(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

/// Returns every operation with its path.
fn operations(document: &Value) -> Vec<(&str, &Value)> {
    document["paths"].as_object().unwrap().iter().map(|(path, item)| (path.as_str(), &item["get"])).collect()
}

/// Returns every error that the service responds with.
fn errors() -> [ApiError; 13] {
    let invalid = FieldError::new("page_size", FieldCode::Duplicate, []);
    let budget = Budget::Scope(Scope::CatalogRead);
    [
        ApiError::Invalid(vec![invalid]),
        ApiError::KeyMissing,
        ApiError::KeyInvalid,
        ApiError::ScopeMissing(Scope::CatalogRead),
        ApiError::ItemNotFound("no-such-item".to_owned()),
        ApiError::PricesNotFound(Uuid::nil().into()),
        ApiError::RouteNotFound(Some("/docs".to_owned())),
        ApiError::MethodNotAllowed("POST".to_owned()),
        ApiError::RateLimited { budget, limit: 60, retry_after: 17 },
        ApiError::Internal(String::new()),
        ApiError::Unavailable(String::new()),
        ApiError::HostNotAllowed,
        ApiError::PositionExpired(4_711),
    ]
}

/// Returns an error's place in [`errors`]. A new variant fails to compile here, so it cannot be left out.
fn place(error: &ApiError) -> usize {
    match error {
        ApiError::Invalid(_) => 0,
        ApiError::KeyMissing => 1,
        ApiError::KeyInvalid => 2,
        ApiError::ScopeMissing(_) => 3,
        ApiError::ItemNotFound(_) => 4,
        ApiError::PricesNotFound(_) => 5,
        ApiError::RouteNotFound(_) => 6,
        ApiError::MethodNotAllowed(_) => 7,
        ApiError::RateLimited { .. } => 8,
        ApiError::Internal(_) => 9,
        ApiError::Unavailable(_) => 10,
        ApiError::HostNotAllowed => 11,
        ApiError::PositionExpired(_) => 12,
    }
}

#[test]
fn every_error_is_in_the_list() {
    let places = errors().map(|error| place(&error));
    assert!(places.iter().copied().eq(0..13));
}
