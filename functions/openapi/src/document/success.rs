//! The 200 and 304 responses.

use api::CacheControl;
use utoipa::openapi::{ContentBuilder, Response, ResponseBuilder};

use super::body::ResponseBody;
use super::constants::JSON;
use super::headers;

/// Returns the 200 with its body.
pub(super) fn ok(description: &str, body: ResponseBody, cache: CacheControl) -> Response {
    let content = ContentBuilder::new().schema(Some(body.schema)).example(Some(body.example)).build();
    let response = ResponseBuilder::new().description(description).content(JSON, content);
    headers::add(cacheable(response, cache), &["Content-Encoding"]).build()
}

/// Returns the 304 for a client whose copy is still current.
pub(super) fn not_modified(cache: CacheControl) -> Response {
    let response = ResponseBuilder::new().description("The copy that `If-None-Match` names is still current. No body.");
    cacheable(response, cache).build()
}

fn cacheable(response: ResponseBuilder, cache: CacheControl) -> ResponseBuilder {
    let response = headers::add(response, &headers::EVERY);
    headers::add(response, &["ETag", headers::cache_control(cache), "Vary"])
}
