//! The Lambda Runtime API on loopback. It hands out the same event again and again.

use std::convert::Infallible;
use std::time::Instant;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::output::text;

/// What a program has sent, and when.
pub(super) enum ProgramMessage {
    /// It asked for an event and was given one.
    Ready(Instant),
    /// It has answered with this body.
    Answered(Instant, Bytes),
}

/// The API for one program. It stops when this is dropped.
pub(super) struct RuntimeApi {
    /// Its address, in the form that a program is given.
    pub(super) address: String,
    messages: UnboundedReceiver<ProgramMessage>,
    _serving: JoinSet<()>,
}

impl RuntimeApi {
    pub(super) async fn start(event: &Value) -> Result<Self, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(text)?;
        let address = listener.local_addr().map_err(text)?.to_string();
        let (sender, messages) = unbounded_channel();
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Bytes::from(event.to_string()), sender));
        Ok(Self { address, messages, _serving: serving })
    }

    /// Waits for what the program sends next.
    pub(super) async fn next(&mut self) -> Result<ProgramMessage, String> {
        self.messages.recv().await.ok_or_else(|| "the Runtime API has stopped".to_owned())
    }
}

async fn serve(listener: TcpListener, event: Bytes, sender: UnboundedSender<ProgramMessage>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // Without this, each small answer would wait for the acknowledgement of the one before.
        let _ = stream.set_nodelay(true);
        let (event, sender) = (event.clone(), sender.clone());
        let service = service_fn(move |request| answer(request, event.clone(), sender.clone()));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

async fn answer(
    request: Request<Incoming>,
    event: Bytes,
    sender: UnboundedSender<ProgramMessage>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    if path.ends_with("/invocation/next") {
        // If nobody receives this any more, the measurement is over.
        let _ = sender.send(ProgramMessage::Ready(Instant::now()));
        let response = Response::builder()
            .header("lambda-runtime-aws-request-id", "8476a536-e9f4-11e8-9739-2dfe598c3fcd")
            .header("lambda-runtime-deadline-ms", "4000000000000")
            .header("lambda-runtime-invoked-function-arn", "arn:aws:lambda:us-east-1:123456789012:function:bench");
        return Ok(response.body(Full::new(event)).unwrap_or_default());
    }
    let is_answer = path.ends_with("/response");
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let answer = if is_answer { body } else { Bytes::from_static(b"{\"statusCode\":500}") };
    let _ = sender.send(ProgramMessage::Answered(Instant::now(), answer));
    Ok(Response::builder().status(202).body(Full::default()).unwrap_or_default())
}
