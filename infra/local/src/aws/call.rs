//! The calls of SDKs: which service they name, and answers in plain text to those that are not understood.

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};

use crate::server::Body;

/// The beginning of the targets of DynamoDB calls.
pub(super) const DYNAMODB_TARGET_PREFIX: &str = "DynamoDB";

/// Returns the service and operation that an SDK call names in its header.
pub(super) fn target<B>(request: &Request<B>) -> &str {
    request.headers().get("x-amz-target").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns the operation alone.
pub(super) fn operation<B>(request: &Request<B>) -> &str {
    target(request).rsplit('.').next().unwrap_or_default()
}

pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::from(text.to_owned()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
