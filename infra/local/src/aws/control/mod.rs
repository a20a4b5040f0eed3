//! Lambda and EventBridge, as far as an operator uses them to stop and to start what triggers the functions of the
//! default stack, and as far as the marketplace uses them to invoke a function.

mod functions;
mod invoke;
mod names;
mod rules;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected, Full};
use hyper::body::Incoming;
use serde_json::{Value, json};

use names::Answered;

use super::call::operation;
use crate::invocations::Invocations;
use crate::server::Body;
use crate::switches::Switches;

/// Answers a call to Lambda.
pub(super) async fn lambda(
    switches: &Switches,
    invocations: &Invocations,
    request: Request<Incoming>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/').to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
    if let Some(name) = invoke::invoked(&head.method, &path) {
        let outcome = invoke::invoke(switches, invocations, (name, query.as_str()), &bytes(body).await).await;
        return invocation_response(outcome);
    }
    let body = read(body).await;
    response(functions::answer(switches, &head.method, &path, &query, &body))
}

/// Answers a call to EventBridge.
pub(super) async fn events(switches: &Switches, request: Request<Incoming>) -> Response<Body> {
    let operation = operation(&request).to_owned();
    let body = read(request.into_body()).await;
    response(rules::answer(switches, &operation, &body).await)
}

async fn read(body: Incoming) -> Value {
    serde_json::from_slice(&bytes(body).await).unwrap_or_default()
}

async fn bytes(body: Incoming) -> Bytes {
    body.collect().await.map(Collected::to_bytes).unwrap_or_default()
}

/// Answers an invocation. A header says if the function failed.
fn invocation_response(outcome: Result<invoke::Outcome, names::Refused>) -> Response<Body> {
    let failed = matches!(outcome, Ok(Err(_)));
    let mut response = response(outcome.map(|returned| returned.unwrap_or_else(|error| error)));
    if failed {
        response.headers_mut().insert("x-amz-function-error", HeaderValue::from_static("Unhandled"));
    }
    response
}

fn response(answered: Answered) -> Response<Body> {
    let (status, error, body) = match answered {
        Ok(body) => (StatusCode::OK, None, body),
        Err((name, message)) => {
            let body = json!({ "__type": name, "message": message, "Message": message });
            (StatusCode::BAD_REQUEST, Some(name), body)
        }
    };
    let body = Full::from(body.to_string()).map_err(|never| match never {}).boxed();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(error) = error {
        response.headers_mut().insert("x-amzn-errortype", HeaderValue::from_static(error));
    }
    response
}
