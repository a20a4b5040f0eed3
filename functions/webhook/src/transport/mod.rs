//! The only HTTP client that sends deliveries. It connects only where the guard allows. It trusts nothing about an
//! answer: not its length, not its pace, not even that it ends.

mod connect;
mod exchange;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use common::clock::{Clock, SystemClock};
use http::{HeaderMap, Method, Request, Response};
use hyper::body::Incoming;
use hyper::ext::on_informational;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use webhooks::guard::{EndpointUrl, Policy};

pub use connect::Reach;
use connect::{Connector, Pool};
use exchange::NotingBody;
pub use exchange::{PostError, TlsFailure, Written};

/// How long a receiver has for its answer (specification 6.7.1). The time runs from the look-up of its host name to the
/// last byte of the answer's head (specification 6.7.2).
pub const DEADLINE: Duration = Duration::from_secs(10);

/// How many informational answers (1xx) may come before the answer. A receiver that sends them without end would keep the
/// instance busy for as long as the deadline.
const MAX_INFORMATIONAL: usize = 32;

/// A pooled client for POSTs to endpoints. Clones share the pool.
///
/// It speaks HTTP/1.1 over TCP or TLS. It follows no redirects, uses no proxy, asks for no compression, and sends no
/// request twice.
#[derive(Clone)]
pub struct Transport {
    pool: Arc<Pool>,
    policy: Policy,
    deadline: Duration,
}

/// The result of a POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Posted {
    /// The answer's final status, which is never 1xx, or why there is no answer.
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

    /// Creates a client that knows by this clock for how long its instance was frozen. Connections from before are not
    /// used again.
    pub fn with_clock(reach: Reach, deadline: Duration, clock: Arc<dyn Clock>) -> Result<Self, rustls::Error> {
        let policy = reach.policy;
        let pool = Arc::new(Pool::new(Connector::new(reach, deadline)?, clock));
        Ok(Self { pool, policy, deadline })
    }

    /// Sends a body to an endpoint once. Only the status decides the outcome, not the answer's body. Returns at most
    /// one second after the deadline.
    ///
    /// The URL is checked for each POST, although it was checked when it was registered. Its host may be an address,
    /// which is never resolved, and the rules may have become stricter since.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Posted {
        self.post_noting(url, headers, body, &Written::default()).await
    }

    /// Sends a body as [`Self::post`] does, and notes when the request is written.
    pub async fn post_noting(&self, url: &str, headers: HeaderMap, body: Bytes, written: &Written) -> Posted {
        let start = Instant::now();
        let answer = match timeout(self.deadline, self.send(url, headers, written.noted_by(body))).await {
            Ok(answer) => answer,
            Err(_) => Err(PostError::NoAnswer(self.deadline)),
        };
        let latency = start.elapsed();
        match answer {
            Ok(answer) => {
                let outcome = Ok(answer.status().as_u16());
                Posted { outcome, latency, excerpt: exchange::finish(answer).await }
            }
            Err(error) => Posted { outcome: Err(error), latency, excerpt: None },
        }
    }

    async fn send(&self, url: &str, headers: HeaderMap, body: NotingBody) -> Result<Response<Incoming>, PostError> {
        let url = EndpointUrl::parse(url, self.policy).map_err(PostError::Url)?;
        let mut request = Request::new(body);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.uri().clone();
        *request.headers_mut() = headers;
        let too_many = Arc::new(Notify::new());
        let (told, seen) = (Arc::clone(&too_many), AtomicUsize::new(0));
        on_informational(&mut request, move |_| {
            if seen.fetch_add(1, Ordering::Relaxed) == MAX_INFORMATIONAL {
                told.notify_one();
            }
        });
        tokio::select! {
            answer = self.pool.client().request(request) => Ok(answer?),
            () = too_many.notified() => Err(PostError::HeadTooLong),
        }
    }
}
