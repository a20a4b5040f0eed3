//! The answers 200 and 304.

use api::CacheControl;
use serde_json::Value;
use utoipa::openapi::{ContentBuilder, RefOr, Response, ResponseBuilder, Schema};

use super::{JSON, headers};

/// A 200 with its body.
pub(super) fn ok(description: &str, schema: RefOr<Schema>, example: Value, cache: CacheControl) -> Response {
    let content = ContentBuilder::new().schema(Some(schema)).example(Some(example)).build();
    let response = ResponseBuilder::new().description(description).content(JSON, content);
    headers::add(cacheable(response, cache), &["Content-Encoding"]).build()
}

/// The 304 for a client that has the answer already.
pub(super) fn not_modified(cache: CacheControl) -> Response {
    let response = ResponseBuilder::new().description("The answer that `If-None-Match` names still holds. No body.");
    cacheable(response, cache).build()
}

fn cacheable(response: ResponseBuilder, cache: CacheControl) -> ResponseBuilder {
    let response = headers::add(response, &headers::EVERY);
    headers::add(response, &["ETag", headers::cache_control(cache), "Vary"])
}
