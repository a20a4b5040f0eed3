//! The 200 and 304 responses.

use api::CacheControl;
use utoipa::openapi::{ContentBuilder, Response, ResponseBuilder};

use super::body::ResponseBody;
use super::constants::JSON;
use super::headers;

/// Returns the 200 with its body. `extra` are the headers that only this operation has.
pub(super) fn ok(description: &str, body: ResponseBody, cache: CacheControl, extra: &[&str]) -> Response {
    let content = ContentBuilder::new().schema(Some(body.schema)).example(Some(body.example)).build();
    let response = ResponseBuilder::new().description(description).content(JSON, content);
    headers::add(cacheable(response, cache, extra), &["Content-Encoding"]).build()
}

/// Returns the 304 for a client whose copy is still current.
pub(super) fn not_modified(cache: CacheControl, extra: &[&str]) -> Response {
    let response = ResponseBuilder::new().description("The copy that you have is still current. No body.");
    cacheable(response, cache, extra).build()
}

fn cacheable(response: ResponseBuilder, cache: CacheControl, extra: &[&str]) -> ResponseBuilder {
    let response = headers::add(headers::add(response, &headers::EVERY), extra);
    headers::add(response, &["ETag", headers::cache_control(cache), "Vary"])
}
