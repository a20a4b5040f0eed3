//! The document describes the headers that are sent.

use std::collections::BTreeSet;

use api::error::ApiError;
use api::reply::{JSON, respond};
use api::{CacheControl, Reply, Response, State};
use auth::Rate;
use http::HeaderMap;
use serde_json::Value;
use types::scope::{Budget, Scope};
use types::timestamp::Timestamp;

use super::super::errors;
use super::{document, misfits, request, resolved};

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
    let mut event = request();
    for (name, value) in given {
        event.headers.insert(*name, value.parse().unwrap());
    }
    respond(&event, outcome, rate, budget)
}

/// Checks that the document's response names exactly the headers that were sent, and that their values fit the schemas.
fn check(path: &str, response: &Response) {
    let document = document();
    let told = &document["paths"][path]["get"]["responses"][response.status_code.to_string()];
    let headers = resolved(&document, told)["headers"].as_object().unwrap();
    let names: BTreeSet<_> = headers.keys().map(|name| name.to_ascii_lowercase()).collect();
    let sent = response.headers.keys().map(|name| name.as_str().to_owned()).filter(|name| name != "content-type");
    assert_eq!(sent.collect::<BTreeSet<_>>(), names, "{path} {}", response.status_code);
    for (name, header) in headers {
        let schema = &resolved(&document, header)["schema"];
        let text = response.headers[name].to_str().unwrap();
        let value = if schema["type"] == "integer" { Value::from(text.parse::<i64>().unwrap()) } else { text.into() };
        let misfits = misfits(&document, schema, &value);
        assert!(misfits.is_empty(), "{path} {name}: {misfits:?}");
    }
}

fn reply(cache: CacheControl, state: State) -> Reply {
    Reply { body: vec![b' '; 2_000], content_type: JSON, cache, state, headers: HeaderMap::new() }
}

#[test]
fn of_a_success() {
    let newest = Timestamp::from_millis(0);
    for (path, cache, state) in [
        (PRIVATE, CacheControl::PrivateNoCache, State::LogPosition(7)),
        (DATED, CacheControl::PrivateNoCache, State::Modified { newest, changed: newest }),
        (NO_STORE, CacheControl::NoStore, State::Untold),
        (PUBLIC, CacheControl::Public, State::Untold),
    ] {
        let ok = sent(path, Ok(reply(cache, state)), &[("accept-encoding", "gzip")]);
        assert_eq!(ok.status_code, 200);
        check(path, &ok);
        let unchanged = sent(path, Ok(reply(cache, state)), &[("if-none-match", "*")]);
        assert_eq!(unchanged.status_code, 304);
        check(path, &unchanged);
    }
}

#[test]
fn of_every_error() {
    for (error, _) in errors::catalogue() {
        let path = match error {
            ApiError::RouteNotFound | ApiError::HostNotAllowed => continue,
            ApiError::ItemNotFound(_) => "/v1/public/items/{id}",
            ApiError::PricesNotFound(_) => "/v1/public/prices/{variant_id}",
            _ => PRIVATE,
        };
        check(path, &sent(path, Err(error), &[]));
    }
}
