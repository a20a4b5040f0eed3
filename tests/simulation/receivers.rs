//! Receivers within the process, and the connections to them. Each keeps what it got, and when.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use common::ids::DeliveryId;
use fastrand::Rng;
use futures_util::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use local::server::{Body, serve_connection};
use std::pin::Pin;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::time::{Instant, sleep, timeout};
use webhook::transport::{Connection, Dial};

/// How a receiver answers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// With 204 after this many milliseconds.
    Steady(u64),
    /// Never.
    Hanging,
    /// In periods of this many seconds: never to what comes in the first second, and with 204 to the rest.
    Flapping(u64),
    /// With 500 after this many milliseconds, until this time, and then with 204.
    DownUntil(u64, Duration),
    /// After this many milliseconds, with 500 in this share of all cases.
    Failing(u64, f64),
    /// Connecting to it makes the sender panic in this share of all cases.
    Poisonous(u64, f64),
}

/// A POST as its receiver saw it. Times run from the start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Post {
    pub(crate) receiver: usize,
    pub(crate) delivery: DeliveryId,
    pub(crate) begun: Duration,
    /// When it was answered, or its sender gave up.
    pub(crate) ended: Option<Duration>,
    pub(crate) status: Option<u16>,
}

impl Post {
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.status.is_some_and(|status| status < 300)
    }
}

/// All receivers.
pub(crate) struct Receivers {
    started: Instant,
    behaviours: Vec<Behaviour>,
    posts: Mutex<Vec<Post>>,
    random: Mutex<Rng>,
    /// How many connections could not be made, because their instance had no file descriptor left.
    pub(crate) undialled: AtomicUsize,
}

impl Receivers {
    pub(crate) fn new(behaviours: Vec<Behaviour>, seed: u64) -> Arc<Self> {
        let random = Mutex::new(Rng::with_seed(seed));
        let (started, posts, undialled) = (Instant::now(), Mutex::default(), AtomicUsize::default());
        Arc::new(Self { started, behaviours, posts, random, undialled })
    }

    /// Returns the URL of the receiver with this number.
    pub(crate) fn url(number: usize) -> String {
        format!("http://127.0.0.1:{}/", 1 + number)
    }

    pub(crate) fn behaviour(&self, receiver: usize) -> Behaviour {
        self.behaviours[receiver]
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Returns all POSTs so far, in the order in which they began.
    pub(crate) fn posts(&self) -> Vec<Post> {
        self.posts.lock().unwrap().clone()
    }

    async fn answer(self: Arc<Self>, receiver: usize, request: Request<Incoming>) -> Response<Body> {
        let id = request.headers()["x-service-delivery-id"].to_str().unwrap().parse().unwrap();
        let begun = self.elapsed();
        request.into_body().collect().await.unwrap();
        let number = {
            let mut posts = self.posts.lock().unwrap();
            posts.push(Post { receiver, delivery: id, begun, ended: None, status: None });
            posts.len() - 1
        };
        let _end = EndOfPost { receivers: Arc::clone(&self), number };
        let (latency, status) = match self.behaviours[receiver] {
            Behaviour::Steady(millis) | Behaviour::Poisonous(millis, _) => (millis, 204),
            Behaviour::Flapping(seconds) if !begun.as_secs().is_multiple_of(seconds) => (5, 204),
            Behaviour::Hanging | Behaviour::Flapping(_) => (u64::from(u32::MAX), 204),
            Behaviour::DownUntil(millis, until) => (millis, if begun < until { 500 } else { 204 }),
            Behaviour::Failing(millis, share) => (millis, if self.draws(share) { 500 } else { 204 }),
        };
        sleep(Duration::from_millis(latency)).await;
        self.posts.lock().unwrap()[number].status = Some(status);
        let mut response = Response::new(Empty::<Bytes>::new().map_err(|never| match never {}).boxed());
        *response.status_mut() = StatusCode::from_u16(status).unwrap();
        response
    }

    fn draws(&self, share: f64) -> bool {
        self.random.lock().unwrap().f64() < share
    }
}

/// Notes when a POST ends, however it does.
struct EndOfPost {
    receivers: Arc<Receivers>,
    number: usize,
}

impl Drop for EndOfPost {
    fn drop(&mut self) {
        let now = self.receivers.elapsed();
        self.receivers.posts.lock().unwrap()[self.number].ended = Some(now);
    }
}

/// Connects an instance to the receivers, until it has no file descriptors left.
pub(crate) struct Dialer {
    receivers: Arc<Receivers>,
    most: usize,
    open: Arc<AtomicUsize>,
}

impl Dialer {
    /// The instance can have this many connections open.
    pub(crate) fn new(receivers: &Arc<Receivers>, most: usize) -> Self {
        Self { receivers: Arc::clone(receivers), most, open: Arc::default() }
    }
}

impl Dial for Dialer {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        assert_eq!(address.ip(), Ipv4Addr::LOCALHOST);
        let receiver = usize::from(address.port()) - 1;
        Box::pin(async move {
            if let Behaviour::Poisonous(_, share) = self.receivers.behaviours[receiver] {
                assert!(!self.receivers.draws(share), "a receiver that makes its sender panic");
            }
            if self.open.load(Ordering::Relaxed) == self.most {
                self.receivers.undialled.fetch_add(1, Ordering::Relaxed);
                return Err(io::Error::from_raw_os_error(24));
            }
            self.open.fetch_add(1, Ordering::Relaxed);
            let (client, server) = tokio::io::duplex(64 * 1_024);
            let receivers = Arc::clone(&self.receivers);
            let answer = move |request| Arc::clone(&receivers).answer(receiver, request);
            // A connection ends at last when its sender could not go on any more.
            tokio::spawn(timeout(Duration::from_mins(10), serve_connection(server, answer)));
            Ok(Box::new(Counted { stream: client, open: Arc::clone(&self.open) }) as Connection)
        })
    }
}

/// A connection that counts as open until it is dropped.
struct Counted {
    stream: DuplexStream,
    open: Arc<AtomicUsize>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
