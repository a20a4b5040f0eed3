//! Answers of the inbox. A browser may neither store them nor guess another type for them.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde::Serialize;

use crate::server::Body;

/// Answers with plain text, which may be empty.
pub(super) fn text(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = with_content_type("text/plain; charset=utf-8", full(text.to_owned()));
    *response.status_mut() = status;
    response
}

/// Answers with a page.
pub(super) fn html(html: String) -> Response<Body> {
    with_content_type("text/html; charset=utf-8", full(html))
}

/// Answers with a value as JSON.
pub(super) fn json<T: Serialize>(value: &T) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(json) => with_content_type("application/json", full(json)),
        Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, &error.to_string()),
    }
}

/// Answers with a body of this type.
pub(super) fn with_content_type(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    for (name, value) in
        [(CONTENT_TYPE, content_type), (CACHE_CONTROL, "no-store"), (X_CONTENT_TYPE_OPTIONS, "nosniff")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed()
}
