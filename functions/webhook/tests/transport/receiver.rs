//! A receiver that handles connections as the test says, canaries, which are ports that nothing may connect to, and a
//! resolver whose answers the test chooses.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener as Canary};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use common::clock::ManualClock;
use common::timestamp::Timestamp;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use rustls::RootCertStore;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

use webhook::transport::{DEADLINE, Posted, Reach, Transport};
use webhooks::guard::{Policy, Resolve, SystemResolver};

pub(crate) const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A listener on a free port of loopback.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    task: AbortHandle,
}

impl Receiver {
    /// Starts a receiver that hands each connection to `handle`.
    pub(crate) async fn start<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> Self
    where
        F: Future<Output = io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind((LOOPBACK, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&accepted);
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(handle(stream));
            }
        });
        Self { address, accepted, task: accepting.abort_handle() }
    }

    /// Starts a receiver that answers every request on every connection with the same bytes.
    pub(crate) async fn answering(answer: impl Into<Bytes>) -> Self {
        let answer = answer.into();
        Self::start(move |stream| answer_all(stream, answer.clone())).await
    }

    /// Starts a receiver that reads one request, writes these bytes and then keeps the connection open.
    pub(crate) async fn writing(bytes: impl Into<Bytes>) -> Self {
        let bytes = bytes.into();
        Self::start(move |mut stream| {
            let bytes = bytes.clone();
            async move {
                read_request(&mut stream).await?;
                stream.write_all(&bytes).await?;
                until_closed(stream).await
            }
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// The receiver's URL with another scheme and host.
    pub(crate) fn url_at(&self, scheme: &str, host: &str) -> String {
        format!("{scheme}://{host}:{}/hook", self.address.port())
    }

    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) async fn answer_all<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: Bytes) -> io::Result<()> {
    loop {
        read_request(&mut stream).await?;
        stream.write_all(&answer).await?;
        stream.flush().await?;
    }
}

/// Reads one request and returns its head and body.
pub(crate) async fn read_request<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8(head).map_err(io::Error::other)?;
    let length = head.to_ascii_lowercase().lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).await?;
    Ok((head, body))
}

/// Reads until the other side closes the connection.
pub(crate) async fn until_closed(mut stream: TcpStream) -> io::Result<()> {
    tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop)
}

/// Returns a listening port that nothing may connect to.
pub(crate) fn canary() -> Canary {
    let canary = Canary::bind((LOOPBACK, 0)).unwrap();
    canary.set_nonblocking(true).unwrap();
    canary
}

/// Whether anything connected to a canary. The kernel queues connections until they are accepted, so none is missed.
pub(crate) fn is_touched(canary: &Canary) -> bool {
    match canary.accept() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
            false
        }
    }
}

/// Returns a client that may connect to loopback.
pub(crate) fn client() -> Transport {
    Transport::new(reach(Arc::new(SystemResolver))).unwrap()
}

/// How long a connection rests before it is used again.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// Returns a client whose clock the test moves. If the test sets only its wall clock, the instance was frozen.
pub(crate) fn client_with_clock(reach: Reach) -> (Transport, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::at(Timestamp::from_millis(1_800_000_000_000)));
    (Transport::with_clock(reach, DEADLINE, Arc::clone(&clock) as _).unwrap(), clock)
}

pub(crate) async fn post(client: &Transport, url: &str) -> Posted {
    client.post(url, HeaderMap::new(), Bytes::from_static(b"{}")).await
}

/// The answers still to give, the answer to everything after them, and the names asked for so far.
pub(crate) struct ScriptedResolver {
    answers: Mutex<VecDeque<io::Result<Vec<IpAddr>>>>,
    always: Vec<IpAddr>,
    asked: Mutex<Vec<String>>,
}

impl ScriptedResolver {
    /// Resolves every name to this address.
    pub(crate) fn all_at(address: IpAddr) -> Arc<Self> {
        Arc::new(Self { always: vec![address], ..Self::in_turn(vec![]) })
    }

    /// Gives these answers one after the other, whatever the name, and after them no addresses.
    pub(crate) fn in_turn(answers: Vec<io::Result<Vec<IpAddr>>>) -> Self {
        Self { answers: Mutex::new(answers.into()), always: vec![], asked: Mutex::default() }
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolve for ScriptedResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().unwrap().push(name.to_owned());
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| Ok(self.always.clone()));
        Box::pin(async move { answer })
    }
}

/// Allows loopback, resolves names with this resolver and trusts no certificate.
pub(crate) fn reach(resolver: Arc<dyn Resolve>) -> Reach {
    Reach { policy: Policy::with_loopback(), resolver, roots: Arc::new(RootCertStore::empty()), ..Reach::public() }
}
