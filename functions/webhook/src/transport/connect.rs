//! The connector resolves a host, checks its addresses, connects, and does the TLS handshake. It connects to the very
//! addresses that it has checked, so that a name cannot point elsewhere in between.
//!
//! The pool keeps connections. It is emptied once the instance has been frozen: a pool measures idle times by the
//! monotonic clock, which may stand still meanwhile. The receivers' clocks go on, so a connection that looks new may be
//! closed at the other side, or forgotten by a firewall. A request on it would be lost, and a healthy receiver would have
//! failed an attempt.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use common::clock::{Clock, Moment};
use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;
use webhooks::guard::{Policy, Resolve, SystemResolver, check_resolved};

use super::exchange::{NotingBody, PostError, TlsFailure};

/// How long an address may take to accept a connection if there are others to try.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(1);

/// The most addresses of a name that one attempt tries. All others are checked as well, but not connected to: whoever
/// has the name decides how many addresses it has.
const MAX_ADDRESSES: usize = 8;

/// Which addresses a client may connect to, how it resolves names, and whose certificates it accepts.
#[derive(Clone)]
pub struct Reach {
    /// The addresses that the client may connect to.
    pub policy: Policy,
    /// Resolves names to addresses. It need not be trusted, because its answers are checked.
    pub resolver: Arc<dyn Resolve>,
    /// The authorities whose certificates are accepted.
    pub roots: Arc<RootCertStore>,
}

impl Reach {
    /// Returns the reach of the deployed function: the public internet, the system's resolver, and the root
    /// certificates of the web.
    pub fn public() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self { policy: Policy::public(), resolver: Arc::new(SystemResolver), roots: Arc::new(roots) }
    }
}

/// A TCP connection, with TLS inside if the URL is `https`.
type MaybeTlsStream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Connects to addresses that the policy allows.
#[derive(Clone)]
pub(super) struct Connector(Arc<Parts>);

struct Parts {
    policy: Policy,
    resolver: Arc<dyn Resolve>,
    tls: TlsConnector,
    deadline: Duration,
}

impl Connector {
    pub(super) fn new(reach: Reach, deadline: Duration) -> Result<Self, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(reach.roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self(Arc::new(Parts { policy: reach.policy, resolver: reach.resolver, tls, deadline })))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeTlsStream;
    type Error = PostError;
    type Future = BoxFuture<'static, Result<MaybeTlsStream, PostError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), PostError>> {
        Poll::Ready(Ok(()))
    }

    /// Connects within a deadline of its own. If another connection becomes free first, the pool goes on connecting in
    /// the background, and the request's deadline no longer applies there.
    fn call(&mut self, uri: Uri) -> Self::Future {
        let parts = Arc::clone(&self.0);
        Box::pin(async move {
            let connecting = timeout(parts.deadline, parts.connect(&uri));
            connecting.await.unwrap_or(Err(PostError::NoAnswer(parts.deadline)))
        })
    }
}

impl Parts {
    async fn connect(&self, uri: &Uri) -> Result<MaybeTlsStream, PostError> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });

        let addresses = self.addresses(host).await?;
        let tcp = connect_to_one(check_resolved(&addresses, self.policy)?, port).await?;
        self.prepare(&tcp).map_err(|_| PostError::Unreachable)?;
        if !secure {
            return Ok(TokioIo::new(tcp).into());
        }
        let name = ServerName::try_from(host.strip_suffix('.').unwrap_or(host).to_owned());
        let name = name.map_err(|_| PostError::Tls(TlsFailure::Name))?;
        let tls = self.tls.connect(name, TokioIo::new(TokioIo::new(tcp))).await;
        Ok(tls.map_err(|error| TlsFailure::from_io(&error).unwrap_or(TlsFailure::Handshake))?.into())
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, PostError> {
        match host.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => self.resolver.resolve(host).await.map_err(|_| PostError::Unresolved),
        }
    }

    /// Sets the socket's options. The TCP user time-out ends a connection whose receiver never reads. Without it, the
    /// last bytes of TLS that wait to be written could keep the connection open for ever.
    fn prepare(&self, tcp: &TcpStream) -> std::io::Result<()> {
        tcp.set_nodelay(true)?;
        #[cfg(target_os = "linux")]
        socket2::SockRef::from(tcp).set_tcp_user_timeout(Some(self.deadline))?;
        Ok(())
    }
}

/// Connects to the first address that accepts, trying at most [`MAX_ADDRESSES`] in order.
async fn connect_to_one(addresses: &[IpAddr], port: u16) -> Result<TcpStream, PostError> {
    let mut left = addresses.len().min(MAX_ADDRESSES);
    for address in addresses.iter().take(MAX_ADDRESSES) {
        left -= 1;
        let limit = if left == 0 { Duration::MAX } else { NEXT_ADDRESS_AFTER };
        if let Ok(Ok(stream)) = timeout(limit, TcpStream::connect((*address, port))).await {
            return Ok(stream);
        }
    }
    Err(PostError::Unreachable)
}

/// How long an idle connection is kept by the monotonic clock. The time is short because receivers close idle
/// connections, many after five seconds. If a connection is found closed before anything was written, a new one is made
/// and the attempt does not fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(3);
/// How long the instance may have been frozen, in all, before the pool is emptied. So no connection is used again that
/// has been idle for four seconds by the wall clock.
const MAX_FROZEN: Duration = Duration::from_secs(1);
/// The most idle connections that are kept for each scheme, host and port.
const MAX_IDLE_PER_HOST: usize = 16;
/// The longest head of an answer, in bytes (specification 6.7.3).
const MAX_HEAD_BYTES: usize = 32 * 1_024;

pub(super) type HttpClient = Client<Connector, NotingBody>;

/// Connections to receivers, shared by all requests of an instance.
pub(super) struct Pool {
    connector: Connector,
    clock: Arc<dyn Clock>,
    current: Mutex<Current>,
}

struct Current {
    client: HttpClient,
    /// When its pool was empty.
    began: Moment,
}

impl Pool {
    pub(super) fn new(connector: Connector, clock: Arc<dyn Clock>) -> Self {
        let current = Mutex::new(Current::new(&connector, &*clock));
        Self { connector, clock, current }
    }

    /// Returns the client for the next request. Requests that are under way keep theirs, and their connections.
    pub(super) fn client(&self) -> HttpClient {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.began.drift(&*self.clock) > MAX_FROZEN {
            *current = Current::new(&self.connector, &*self.clock);
        }
        current.client.clone()
    }
}

impl Current {
    fn new(connector: &Connector, clock: &dyn Clock) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(MAX_IDLE_PER_HOST)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            .build(connector.clone());
        Self { client, began: Moment::now(clock) }
    }
}
