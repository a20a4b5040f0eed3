//! The calls of SDKs: which service they are for, and answers in plain text to those that are not understood.

use http::header::AUTHORIZATION;
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

/// Returns the service that a call is signed for. S3 and STS name their service nowhere else.
pub(super) fn signed_for<B>(request: &Request<B>) -> &str {
    let signature = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    // Its scope is `Credential=KEY/DATE/REGION/SERVICE/aws4_request`.
    let scope = signature.split_once("Credential=").map_or("", |(_, scope)| scope);
    scope.split('/').nth(3).unwrap_or_default()
}

pub(super) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let body = Full::from(text.to_owned()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}
