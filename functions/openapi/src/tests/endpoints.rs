//! The description has the routes, the closed lists, the parameters' bounds and the headers of the code. A test of the local
//! instance compares each operation with its endpoint.

use std::collections::BTreeSet;

use api::auth::Rate;
use api::error::{ApiError, FieldCode};
use api::gateway::{Event, Request};
use api::reply::{JSON, respond};
use api::routes::{CHANGES, DESCRIPTION, ME, ROUTES};
use api::{CacheControl, Reply, Response, State, params};
use common::clock::{Moment, SystemClock};
use common::event::{CancelledBy, WithdrawalStatus};
use common::names::ClosedEnum;
use common::paging::{ItemInclude, Sort};
use common::records::{ListingKind, OrderSource};
use common::scope::{Budget, Scope, Tier};
use common::timestamp::Timestamp;
use http::HeaderMap;
use serde_json::{Map, Value, json};

use super::{description, errors, misfits, operations, resolved};

#[test]
fn the_paths_are_those_of_the_routes() {
    let document = description();
    let described: BTreeSet<_> = operations(&document).into_iter().map(|(path, _)| path).collect();
    assert_eq!(described, ROUTES.iter().map(|route| route.path).collect());
}

#[test]
fn the_lists_are_those_of_the_code() {
    fn names<T: ClosedEnum>() -> Value {
        T::MEMBERS.iter().map(|member| member.name()).collect()
    }
    let document = description();
    for (schema, expected) in [
        ("ListingKind", names::<ListingKind>()),
        ("OrderSource", names::<OrderSource>()),
        ("CancelledBy", names::<CancelledBy>()),
    ] {
        assert_eq!(document["components"]["schemas"][schema]["enum"], expected, "{schema}");
    }
    for (open, expected) in [
        ("Scope", names::<Scope>()),
        ("Tier", names::<Tier>()),
        ("WithdrawalStatus", names::<WithdrawalStatus>()),
        ("FieldCode", names::<FieldCode>()),
    ] {
        assert_eq!(document["components"]["schemas"][open]["x-extensible-enum"], expected, "{open}");
    }
    assert_eq!(parameter(&document, "/v1/public/items/{id}", "include")["const"], names::<ItemInclude>()[0]);
    let sort = parameter(&document, "/v1/public/listings", "sort");
    assert_eq!((&sort["enum"], &sort["default"]), (&names::<Sort>(), &json!(Sort::DEFAULT)));
}

/// Returns the schema of a parameter.
fn parameter<'a>(document: &'a Value, path: &str, name: &str) -> &'a Value {
    let parameters = document["paths"][path]["get"]["parameters"].as_array().unwrap();
    &parameters.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"]
}

#[test]
fn every_operation_can_end_as_the_design_says() {
    let document = description();
    for (path, operation) in operations(&document) {
        let mut expected = BTreeSet::from(["200", "304", "405"]);
        if path != DESCRIPTION.path {
            expected.extend(["400", "401", "429", "500", "503"]);
        }
        if operation.get("x-required-scope").is_some() {
            expected.insert("403");
        }
        if path.contains('{') {
            expected.insert("404");
        }
        if path == CHANGES.path {
            expected.insert("410");
        }
        let described = operation["responses"].as_object().unwrap().keys().map(String::as_str);
        assert_eq!(described.collect::<BTreeSet<_>>(), expected, "{path}");
    }
}

#[test]
fn the_scope_is_a_security_requirement() {
    let document = description();
    assert_eq!(document["components"]["securitySchemes"]["ApiKey"]["scheme"], "bearer");
    for (path, operation) in operations(&document) {
        let expected = match (path, operation.get("x-required-scope")) {
            (path, None) if path == DESCRIPTION.path => json!([]),
            (path, None) if path == ME.path => json!([{"ApiKey": []}]),
            (_, scope) => json!([{"ApiKey": [scope.unwrap()]}]),
        };
        assert_eq!(operation["security"], expected, "{path}");
    }
}

/// A parameter's schema accepts a value if and only if the endpoint accepts it.
#[test]
fn the_schemas_draw_the_line_where_the_parser_does() {
    let document = description();
    let parameters = document["paths"]["/v1/public/listings"]["get"]["parameters"].as_array().unwrap();
    for parameter in parameters {
        let Some(name) = parameter["name"].as_str() else { continue };
        let schema = &parameter["schema"];
        for text in [
            "",
            "0",
            "1",
            "100",
            "101",
            "-1",
            "1.5",
            "1.50",
            "1.234",
            ".5",
            "1.",
            "1e3",
            "newest",
            "price_asc",
            "oldest",
            "9999999999999",
            "4f2c1f4e-6a57-5c0e-9d3a-0f6f0a3c7a11",
            "4F2C1F4E-6A57-5C0E-9D3A-0F6F0A3C7A11",
            "4f2c1f4e6a575c0e9d3a0f6f0a3c7a11",
        ] {
            let number = text.parse::<i64>().ok().filter(|_| schema["type"] == "integer");
            let value = number.map_or_else(|| json!(text), |number| json!(number));
            let fits = misfits(&document, schema, &value).is_empty();
            let taken = params::parse::<listings::ListingsInput>(&[], &format!("{name}={text}")).is_ok();
            assert_eq!(fits, taken, "{name}={text}");
        }
    }
}

const PRIVATE: &str = "/v1/public/catalog";
const DATED: &str = "/v1/public/prices/{variant_id}";
const NO_STORE: &str = "/v1/public/orders";
const PUBLIC: &str = "/v1/openapi.json";

/// A response to a request with a key, unless the path or the outcome needs none.
fn sent(path: &str, outcome: Result<Reply, ApiError>, given: &[(&'static str, &str)]) -> Response {
    let is_keyless =
        matches!(outcome, Err(ApiError::KeyMissing | ApiError::KeyInvalid | ApiError::MethodNotAllowed(_)));
    let budget = Some(Budget::Scope(Scope::CatalogRead)).filter(|_| !is_keyless && path != PUBLIC);
    let rate = Rate { limit: 60, remaining: 59, reset: 17, known: true };
    let headers: Map<String, Value> = given.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
    let context = json!({ "requestId": "JKJaXmPLvHcESHA=", "http": { "method": "GET" } });
    let event = json!({ "rawPath": path, "headers": headers, "requestContext": context });
    let request = Request::try_from(serde_json::from_value::<Event>(event).unwrap()).unwrap();
    respond(&request, outcome, rate, budget)
}

/// Checks that the document's response names exactly the headers that were sent, and that their values fit the schemas.
fn check_headers(path: &str, response: &Response) {
    let document = description();
    let described = &document["paths"][path]["get"]["responses"][response.status().as_str()];
    let headers = resolved(&document, described)["headers"].as_object().unwrap();
    let names: BTreeSet<_> = headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    let sent = response.headers().keys().map(|name| name.as_str().to_owned()).filter(|name| name != "content-type");
    assert_eq!(sent.collect::<BTreeSet<_>>(), names, "{path} {}", response.status());
    for (name, header) in headers {
        let schema = &resolved(&document, header)["schema"];
        let text = response.headers()[name].to_str().unwrap();
        let value = if schema["type"] == "integer" { Value::from(text.parse::<i64>().unwrap()) } else { text.into() };
        let misfits = misfits(&document, schema, &value);
        assert!(misfits.is_empty(), "{path} {name}: {misfits:?}");
    }
}

fn reply(cache: CacheControl, state: State) -> Reply {
    Reply { body: vec![b' '; 2_000], content_type: JSON, cache, state, headers: HeaderMap::new() }
}

#[test]
fn the_headers_of_a_success() {
    let newest = Timestamp::from_millis(0);
    for (path, cache, state) in [
        (PRIVATE, CacheControl::PrivateNoCache, State::LogPosition { seq: 7, as_of: Moment::now(&SystemClock::new()) }),
        (DATED, CacheControl::PrivateNoCache, State::Modified { newest, changed: newest }),
        (NO_STORE, CacheControl::NoStore, State::Untold),
        (PUBLIC, CacheControl::Public, State::Untold),
    ] {
        let ok = sent(path, Ok(reply(cache, state)), &[("accept-encoding", "gzip")]);
        assert_eq!(ok.status().as_u16(), 200);
        check_headers(path, &ok);
        let unchanged = sent(path, Ok(reply(cache, state)), &[("if-none-match", "*")]);
        assert_eq!(unchanged.status().as_u16(), 304);
        check_headers(path, &unchanged);
    }
}

#[test]
fn the_headers_of_every_error() {
    for error in errors() {
        let path = match error {
            ApiError::RouteNotFound(_) | ApiError::HostNotAllowed => continue,
            ApiError::ItemNotFound(_) => "/v1/public/items/{id}",
            ApiError::PricesNotFound(_) => "/v1/public/prices/{variant_id}",
            ApiError::PositionExpired(_) => CHANGES.path,
            _ => PRIVATE,
        };
        check_headers(path, &sent(path, Err(error), &[]));
    }
}
