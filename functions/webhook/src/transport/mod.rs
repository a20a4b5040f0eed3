//! The only HTTP client that sends deliveries. It connects only where the guard allows. It trusts nothing about an
//! answer: not its headers, not its length, not its pace, not even that it ends.

mod connect;
mod error;
mod exchange;
mod head;
mod pool;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use common::clock::{Clock, SystemClock};
use http::HeaderMap;
use tokio::task::yield_now;
use tokio::time::{Instant, timeout};
use webhooks::guard::{EndpointUrl, Policy};

use connect::Connector;
pub use connect::{Connection, Dial, Reach};
pub use error::{PostError, TlsFailure};
pub use exchange::Written;
use exchange::{Answer, exchange};
use head::Head;
use pool::Pool;

/// How long a receiver has for its answer (specification 6.7.1). The time runs from the look-up of its host name to the
/// last byte of the answer's head (specification 6.7.2).
pub const DEADLINE: Duration = Duration::from_secs(10);

/// A pooled client for POSTs to endpoints. Clones share the pool.
///
/// It speaks HTTP/1.1 over TCP or TLS. It follows no redirects, uses no proxy and asks for no compression. It sends a
/// request again only if a used connection ends without an answer: then the receiver may not have read it.
#[derive(Clone)]
pub struct Transport {
    connector: Arc<Connector>,
    pool: Arc<Pool>,
    policy: Policy,
    deadline: Duration,
}

/// The result of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The answer's final status, which is never 1xx except 101, or why there is no answer.
    pub outcome: Result<u16, PostError>,
    /// The time from the start to the end of the answer's head, or to the failure.
    pub latency: Duration,
    /// The beginning of the body if the status is not 2xx: at most 1,024 bytes, without control characters.
    pub excerpt: Option<String>,
}

impl Posted {
    /// Returns whether the receiver acknowledged the delivery: any 2xx does.
    pub fn is_acknowledged(&self) -> bool {
        matches!(self.outcome, Ok(200..=299))
    }
}

impl Transport {
    /// Creates a client with an empty pool, which gives receivers [`DEADLINE`] to answer.
    ///
    /// # Errors
    /// Fails if the TLS library has no protocol version in common with its own cryptography.
    pub fn new(reach: Reach) -> Result<Self, rustls::Error> {
        Self::with_deadline(reach, DEADLINE)
    }

    /// Creates a client that gives receivers another time than [`DEADLINE`].
    pub fn with_deadline(reach: Reach, deadline: Duration) -> Result<Self, rustls::Error> {
        Self::with_clock(reach, deadline, Arc::new(SystemClock::new()))
    }

    /// Creates a client that knows by this clock how long a connection was idle, even while its instance was frozen.
    pub fn with_clock(reach: Reach, deadline: Duration, clock: Arc<dyn Clock>) -> Result<Self, rustls::Error> {
        let policy = reach.policy;
        let connector = Arc::new(Connector::new(reach)?);
        Ok(Self { connector, pool: Arc::new(Pool::new(clock)), policy, deadline })
    }

    /// Sends a body to an endpoint. Only the status decides the outcome, neither the headers nor the body of the answer.
    /// Returns at most one second after the deadline.
    ///
    /// The URL is checked for each POST, although it was checked when it was registered. Its host may be an address,
    /// which is never resolved, and the rules may have become stricter since.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Posted {
        self.post_noting(url, headers, body, &Written::default()).await
    }

    /// Sends a body as [`Self::post`] does, and notes when the request is written.
    pub async fn post_noting(&self, url: &str, headers: HeaderMap, body: Bytes, written: &Written) -> Posted {
        let start = Instant::now();
        let failed = |error| Posted { outcome: Err(error), latency: start.elapsed(), excerpt: None };
        let url = match EndpointUrl::parse(url, self.policy) {
            Ok(url) => url,
            Err(refusal) => return failed(PostError::Url(refusal)),
        };
        let mut head = Head::default();
        let request = request(&url, &headers, &body);
        match timeout(self.deadline, self.send(&url, &request, written, &mut head)).await {
            Ok(Ok(answer)) => {
                let (outcome, latency) = (Ok(answer.status), start.elapsed());
                let (excerpt, connection) = answer.finish().await;
                if let Some(connection) = connection {
                    self.pool.put(origin(&url), connection);
                }
                Posted { outcome, latency, excerpt }
            }
            Ok(Err(error)) => failed(error),
            Err(_) => failed(head.status.map_or(PostError::NoAnswer(self.deadline), PostError::HeadIncomplete)),
        }
    }

    async fn send(
        &self,
        url: &EndpointUrl,
        request: &[u8],
        written: &Written,
        head: &mut Head,
    ) -> Result<Answer, PostError> {
        // What has arrived on idle connections is seen only then.
        yield_now().await;
        if let Some(connection) = self.pool.take(&origin(url)) {
            match exchange(connection, request, written, head).await {
                Ok(answer) if !answer.is_early && answer.status != 408 => return Ok(answer),
                Err(error @ (PostError::HeadIncomplete(_) | PostError::HeadTooLong(_))) => return Err(error),
                // The receiver ended the connection (RFC 9110, section 15.5.9), or went on with its answer before.
                Ok(_) | Err(_) => written.set(None),
            }
        }
        exchange(self.connector.connect(url.uri()).await?, request, written, head).await
    }
}

/// Returns what two URLs have in common that may share connections: the scheme, the host and the port.
fn origin(url: &EndpointUrl) -> String {
    let uri = url.uri();
    format!("{}://{}", uri.scheme_str().unwrap_or_default(), host(url))
}

fn host(url: &EndpointUrl) -> &str {
    url.uri().authority().map_or("", http::uri::Authority::as_str)
}

fn request(url: &EndpointUrl, headers: &HeaderMap, body: &[u8]) -> Vec<u8> {
    let target = url.uri().path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    let mut request = Vec::with_capacity(1_024 + target.len() + body.len());
    request.extend(format!("POST {target} HTTP/1.1\r\nhost: {}\r\n", host(url)).into_bytes());
    for (name, value) in headers {
        request.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend(format!("content-length: {}\r\n\r\n", body.len()).into_bytes());
    request.extend(body);
    request
}
