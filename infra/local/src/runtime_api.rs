//! The Lambda Runtime API on loopback, under which tests and benchmarks run a function's own binary.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Collected};
use hyper::body::Incoming;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::server::{Body, Server, full, plain};

/// Hands one binary one event after another. It stops when this is dropped.
pub struct RuntimeApi {
    events: UnboundedSender<Bytes>,
    steps: UnboundedReceiver<Step>,
    server: Server,
}

/// What the binary does, and when.
#[derive(Debug)]
pub enum Step {
    /// It asks for an event.
    Ready(Instant),
    /// It has answered an event with this body.
    Answered(Instant, Bytes),
    /// It reports an error, of an event or of its own start.
    Failed(Bytes),
}

struct State {
    events: Mutex<UnboundedReceiver<Bytes>>,
    steps: UnboundedSender<Step>,
}

impl RuntimeApi {
    /// Starts on a free port.
    pub async fn start() -> io::Result<Self> {
        let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let (events, received) = unbounded_channel();
        let (sender, steps) = unbounded_channel();
        let state = Arc::new(State { events: Mutex::new(received), steps: sender });
        let server = Server::start(listener, move |request| {
            let state = Arc::clone(&state);
            async move { state.answer(request).await }
        })?;
        Ok(Self { events, steps, server })
    }

    /// Returns what the binary needs as `AWS_LAMBDA_RUNTIME_API`.
    pub fn address(&self) -> String {
        self.server.address.to_string()
    }

    /// Queues an event, which the binary gets when it asks.
    pub fn send(&self, event: &Value) {
        // The receiver lives as long as the server.
        let _ = self.events.send(event.to_string().into());
    }

    /// Waits for the binary's next step.
    pub async fn step(&mut self) -> io::Result<Step> {
        self.steps.recv().await.ok_or_else(|| io::Error::other("the Runtime API has stopped"))
    }
}

impl State {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().to_owned();
        if path.ends_with("/invocation/next") {
            self.note(Step::Ready(Instant::now()));
            // Without a further event, the binary waits until it is ended.
            let Some(event) = self.events.lock().await.recv().await else { return std::future::pending().await };
            let response = Response::builder()
                .header("lambda-runtime-aws-request-id", "invocation-1")
                .header("lambda-runtime-deadline-ms", "4000000000000")
                .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:x")
                .header("lambda-runtime-trace-id", "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700;Sampled=1");
            return response.body(full(event)).unwrap_or_else(|error| refusal(&error));
        }
        let body = request.into_body().collect().await.map(Collected::to_bytes);
        match body {
            Ok(body) if path.ends_with("/response") => self.note(Step::Answered(Instant::now(), body)),
            Ok(body) if path.ends_with("/error") => self.note(Step::Failed(body)),
            Ok(_) => {}
            Err(error) => return refusal(&error),
        }
        plain(StatusCode::ACCEPTED, "")
    }

    fn note(&self, step: Step) {
        // If nobody receives this any more, nobody waits for the binary.
        let _ = self.steps.send(step);
    }
}

fn refusal(error: &dyn std::error::Error) -> Response<Body> {
    plain(StatusCode::BAD_REQUEST, &error.to_string())
}

/// Returns a request as API Gateway hands it over (payload format 2.0).
pub fn http_event(route: &str, path: &str, query: &str, headers: &Value) -> Value {
    json!({
        "version": "2.0", "routeKey": format!("ANY {route}"), "rawPath": path, "rawQueryString": query,
        "headers": headers, "isBase64Encoded": false,
        "requestContext": {
            "accountId": "123456789012", "apiId": "api", "domainName": "api.execute-api.us-east-1.amazonaws.com",
            "domainPrefix": "api", "requestId": "gateway-request-1", "routeKey": format!("ANY {route}"),
            "stage": "$default", "time": "20/Nov/2026:12:00:00 +0000", "timeEpoch": 1_795_176_000_000_u64,
            "http": {"method": "GET", "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1", "userAgent": "t"},
        },
    })
}
