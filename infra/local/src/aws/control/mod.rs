//! Lambda and EventBridge, as far as an operator uses them to stop and to start what triggers the functions of the
//! default stack.

mod functions;
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
use crate::server::Body;
use crate::switches::Switches;

/// Answers a call to Lambda.
pub(super) async fn lambda(switches: &Switches, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_matches('/').to_owned();
    let query = head.uri.query().unwrap_or_default().to_owned();
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
    let bytes: Bytes = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
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
