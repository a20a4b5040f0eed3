//! Answers requests for objects under the limits of S3.

use std::future::Future;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use tokio::time::sleep;

use super::limiter::Limiter;
use super::objects::ObjectRequest;
use super::usage::Access;

/// The answer of S3 to requests that come too fast.
const SLOW_DOWN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message><RequestId>local</RequestId></Error>"#;

/// Performs a request if its prefix admits it, in the time that S3 takes for it.
pub(in crate::aws) async fn answer(
    limiter: &Limiter,
    request: &ObjectRequest<'_>,
    perform: impl Future<Output = Response<Bytes>>,
) -> Response<Bytes> {
    sleep(limiter.begin_object()).await;
    if !limiter.take_object(request) {
        return slow_down();
    }
    let answer = perform.await;
    if answer.status().is_success() {
        let bytes = match request.access {
            Access::Read => answer.body().len(),
            Access::Write => request.bytes,
        };
        sleep(limiter.move_bytes(request.access, bytes)).await;
    }
    answer
}

fn slow_down() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(SLOW_DOWN.as_bytes()));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/xml"));
    response
}
