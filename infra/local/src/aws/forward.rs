//! Forwards calls to an upstream. DynamoDB calls can be delayed.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

use super::call::{DYNAMODB_TARGET_PREFIX, plain, target};
use crate::server::Body;

/// The body of a call: one that still arrives, or one that was read.
type CallBody = Either<Incoming, Full<Bytes>>;

/// A client of one upstream, with a connection pool.
pub struct Forwarder {
    client: Client<HttpConnector, CallBody>,
    upstream: String,
    delay_millis: AtomicU64,
}

impl Forwarder {
    /// Forwards to this base URL, at first without a delay.
    pub fn new(upstream: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        Self { client, upstream: upstream.trim_end_matches('/').to_owned(), delay_millis: AtomicU64::new(0) }
    }

    /// Delays every DynamoDB call from now on.
    pub fn delay(&self, by: Duration) {
        self.delay_millis.store(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Forwards one call and returns its answer.
    pub async fn forward(&self, request: Request<Incoming>) -> Response<Body> {
        self.send(request.map(Either::Left)).await
    }

    /// Forwards one call, which may have been read, and returns its answer.
    pub(super) async fn send(&self, mut request: Request<CallBody>) -> Response<Body> {
        let delay = self.delay_millis.load(Ordering::Relaxed);
        if delay > 0 && target(&request).starts_with(DYNAMODB_TARGET_PREFIX) {
            tokio::time::sleep(Duration::from_millis(delay)).await;
        }
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        match format!("{}{path}", self.upstream).parse::<Uri>() {
            Ok(uri) => *request.uri_mut() = uri,
            Err(error) => return plain(StatusCode::BAD_REQUEST, &error.to_string()),
        }
        match self.client.request(request).await {
            Ok(response) => response.map(|body| body.map_err(io::Error::other).boxed()),
            Err(error) => plain(StatusCode::BAD_GATEWAY, &error.to_string()),
        }
    }
}
