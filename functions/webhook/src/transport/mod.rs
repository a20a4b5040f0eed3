//! The one HTTP client that deliveries are sent with. It connects only where the guard allows, and
//! trusts nothing that comes back: neither its length, nor its pace, nor that it ends.

mod answer;
mod connect;
mod error;
mod reach;

use std::time::Duration;

use bytes::Bytes;
use guard::{EndpointUrl, Policy};
use http::{HeaderMap, Method, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::time::{Instant, timeout};

use connect::Connector;
pub use error::{PostError, TlsFailure};
pub use reach::Reach;

/// What a receiver has for its answer (specification, section 6), from the look-up of its name to the
/// last byte of the answer's head.
pub const DEADLINE: Duration = Duration::from_secs(10);
/// How long a connection waits for its next request. Short, because an instance may be frozen while the
/// receiver closes it; one found closed before anything was written is replaced, not failed.
const IDLE: Duration = Duration::from_secs(4);
/// The connections that wait for each scheme, host and port.
const IDLE_PER_HOST: usize = 16;
/// The longest head of an answer, in bytes.
const MAX_HEAD: usize = 32 * 1_024;

/// A pooled client for POSTs to endpoints; clones share the pool.
///
/// HTTP/1.1 over TCP or TLS. It follows no redirect, uses no proxy, asks for no compression and sends
/// nothing twice.
#[derive(Clone)]
pub struct Transport {
    client: Client<Connector, Full<Bytes>>,
    policy: Policy,
    deadline: Duration,
}

/// What became of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The status that was answered, of any class but the informational ones, or why there is none.
    pub outcome: Result<u16, PostError>,
    /// From the beginning to the end of the answer's head, or to the failure.
    pub latency: Duration,
    /// How the body of an answer other than 2xx begins: at most 1,024 bytes, no control characters.
    pub excerpt: Option<String>,
}

impl Posted {
    /// Whether the receiver took the delivery: it answered any 2xx.
    pub fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Ok(200..=299))
    }
}

impl Transport {
    /// A client with an empty pool that answers within [`DEADLINE`].
    ///
    /// # Errors
    /// The TLS library has no protocol version in common with its own cryptography.
    pub fn new(reach: Reach) -> Result<Self, rustls::Error> {
        Self::with_deadline(reach, DEADLINE)
    }

    /// One that gives receivers another time than [`DEADLINE`].
    pub fn with_deadline(reach: Reach, deadline: Duration) -> Result<Self, rustls::Error> {
        let policy = reach.policy;
        let connector = Connector::new(reach, deadline)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD)
            .build(connector);
        Ok(Self { client, policy, deadline })
    }

    /// Sends a body to an endpoint once. The status decides, whatever the answer's body does.
    ///
    /// The URL is checked for each POST, although it was when it was registered: the host may be an
    /// address, which no resolver sees, and the rules may have become stricter. Returns within the
    /// deadline and one more second.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Posted {
        let start = Instant::now();
        let answer = match timeout(self.deadline, self.send(url, headers, body)).await {
            Ok(answer) => answer,
            Err(_) => Err(PostError::NoAnswer(self.deadline)),
        };
        let latency = start.elapsed();
        match answer {
            Ok(answer) => {
                let outcome = Ok(answer.status().as_u16());
                Posted { outcome, latency, excerpt: answer::finish(answer).await }
            }
            Err(error) => Posted { outcome: Err(error), latency, excerpt: None },
        }
    }

    async fn send(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<Response<Incoming>, PostError> {
        let url = EndpointUrl::parse(url, self.policy).map_err(PostError::Url)?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.uri().clone();
        *request.headers_mut() = headers;
        Ok(self.client.request(request).await?)
    }
}
