use serde_json::{Map, Value, json};

use super::super::errors;
use super::{document, misfits, objects};
use api::error::ApiError;

/// Returns each example in an object with the schema that it must fit. This is the object's `schema`, or the object
/// itself if it is a schema.
fn examples(object: &Map<String, Value>) -> Vec<(Value, &Value)> {
    let own = Value::Object(object.clone());
    let schema = object.get("schema").unwrap_or(&own);
    let one = object.get("example").filter(|_| object.contains_key("schema"));
    let all: Vec<&Value> = match object.get("examples") {
        Some(Value::Array(values)) => values.iter().collect(),
        Some(Value::Object(named)) => named.values().map(|example| &example["value"]).collect(),
        _ => Vec::new(),
    };
    one.into_iter().chain(all).map(|example| (schema.clone(), example)).collect()
}

#[test]
fn every_example_fits_its_schema() {
    let document = document();
    let mut checked = 0;
    objects(&document, "", &mut |at, object| {
        for (schema, example) in examples(object) {
            let misfits = misfits(&document, &schema, example);
            assert!(misfits.is_empty(), "{at}: {example}: {misfits:?}");
            checked += 1;
        }
    });
    assert!(checked > 150, "{checked}");
}

#[test]
fn the_schemas_refuse_what_is_no_answer() {
    let document = document();
    let refused = |name: &str, value: Value| {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        assert!(!misfits(&document, &schema, &value).is_empty(), "{name}: {value}");
    };
    let line = json!({"listing_id": "0b0e7b1e-63f1-4b6a-8f0e-3f1a7d0c9b21", "price_usd": "12.50", "item_id": null});
    let schema = json!({"$ref": "#/components/schemas/PublicOrderLine"});
    assert_eq!(misfits(&document, &schema, &line), Vec::<String>::new());
    for (field, bad) in [("price_usd", json!(12.5)), ("price_usd", json!("12.5")), ("listing_id", json!("x"))] {
        let mut line = line.clone();
        line[field] = bad;
        refused("PublicOrderLine", line);
    }
    let mut short = line;
    short.as_object_mut().unwrap().remove("item_id");
    refused("PublicOrderLine", short);
    refused("Tier", json!("gold"));
    refused("ErrorEnvelope", json!({"error": {"code": "service.internal"}}));
}

#[test]
fn errors_are_shown_under_their_own_status_and_code() {
    let document = document();
    let mut codes: Vec<String> = Vec::new();
    let known = errors::catalogue().map(|(error, _)| (error.status().to_string(), error.code()));
    objects(&document, "", &mut |at, object| {
        let Some(Value::Object(named)) = object.get("examples") else { return };
        for (code, example) in named {
            assert_eq!(example["value"]["error"]["code"], *code, "{at}");
            codes.push(code.clone());
        }
    });
    for (path, operation) in super::operations(&document) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = super::resolved(&document, response);
            let named = response.pointer("/content/application~1json/examples").and_then(Value::as_object);
            for code in named.into_iter().flat_map(Map::keys) {
                assert!(known.contains(&(status.clone(), code.as_str())), "{path} {status} {code}");
            }
        }
    }
    // No operation responds with the error of an unknown path, or of another host.
    let missing = known.iter().map(|(_, code)| *code).filter(|code| !codes.iter().any(|shown| shown == code));
    assert_eq!(missing.collect::<Vec<_>>(), ["routes.not_found", "hosts.not_allowed"]);
}

/// Returns an error's place in the catalogue. A new variant fails to compile here, so it cannot be left out.
fn place(error: &ApiError) -> usize {
    match error {
        ApiError::Invalid(_) => 0,
        ApiError::KeyMissing => 1,
        ApiError::KeyInvalid => 2,
        ApiError::ScopeMissing(_) => 3,
        ApiError::ItemNotFound(_) => 4,
        ApiError::PricesNotFound(_) => 5,
        ApiError::RouteNotFound => 6,
        ApiError::MethodNotAllowed(_) => 7,
        ApiError::RateLimited { .. } => 8,
        ApiError::Internal(_) => 9,
        ApiError::Unavailable(_) => 10,
        ApiError::HostNotAllowed => 11,
    }
}

#[test]
fn every_error_is_in_the_catalogue() {
    let places = errors::catalogue().map(|(error, _)| place(&error));
    assert!(places.iter().copied().eq(0..12));
}
