//! Resolves a host, checks its addresses, connects, and does the TLS handshake. It connects to the very addresses that it
//! has checked, so that a name cannot point elsewhere in between.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use http::Uri;
use http::uri::Scheme;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use webhooks::guard::{Policy, Resolve, SystemResolver, check_resolved};

use super::error::{PostError, TlsFailure};

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
    /// Connects to addresses.
    pub dialer: Arc<dyn Dial>,
}

/// Connects to addresses: over TCP, or to receivers within the process.
pub trait Dial: Send + Sync {
    /// Connects to an address that the policy allows.
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connection>>;
}

/// Connects over TCP.
struct Tcp;

impl Dial for Tcp {
    fn dial(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let tcp = TcpStream::connect(address).await?;
            tcp.set_nodelay(true)?;
            Ok(Box::new(tcp) as Connection)
        })
    }
}

impl Reach {
    /// Returns the reach of the deployed function: the public internet, the system's resolver, and the root
    /// certificates of the web.
    pub fn public() -> Self {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        Self {
            policy: Policy::public(),
            resolver: Arc::new(SystemResolver),
            roots: Arc::new(roots),
            dialer: Arc::new(Tcp),
        }
    }
}

/// A connection, with TLS inside if the URL is `https`.
pub type Connection = Box<dyn Stream>;

/// What a connection reads and writes.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Connects to addresses that the policy allows.
pub(super) struct Connector {
    policy: Policy,
    resolver: Arc<dyn Resolve>,
    dialer: Arc<dyn Dial>,
    tls: TlsConnector,
}

impl Connector {
    pub(super) fn new(reach: Reach) -> Result<Self, rustls::Error> {
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(reach.roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let tls = TlsConnector::from(Arc::new(config));
        Ok(Self { policy: reach.policy, resolver: reach.resolver, dialer: reach.dialer, tls })
    }

    pub(super) async fn connect(&self, uri: &Uri) -> Result<Connection, PostError> {
        let secure = uri.scheme() == Some(&Scheme::HTTPS);
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });

        let addresses = self.addresses(host).await?;
        let connection = self.connect_to_one(check_resolved(&addresses, self.policy)?, port).await?;
        if !secure {
            return Ok(connection);
        }
        let name = ServerName::try_from(host.strip_suffix('.').unwrap_or(host).to_owned());
        let name = name.map_err(|_| PostError::Tls(TlsFailure::Name))?;
        let tls = self.tls.connect(name, connection).await;
        Ok(Box::new(tls.map_err(|error| TlsFailure::from_io(&error).unwrap_or(TlsFailure::Handshake))?))
    }

    async fn addresses(&self, host: &str) -> Result<Vec<IpAddr>, PostError> {
        match host.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => self
                .resolver
                .resolve(host)
                .await
                .map_err(|error| if is_exhausted(&error) { PostError::Exhausted } else { PostError::Unresolved }),
        }
    }

    /// Connects to the first address that accepts, trying at most [`MAX_ADDRESSES`] in order.
    async fn connect_to_one(&self, addresses: &[IpAddr], port: u16) -> Result<Connection, PostError> {
        let mut left = addresses.len().min(MAX_ADDRESSES);
        for address in addresses.iter().take(MAX_ADDRESSES) {
            left -= 1;
            let limit = if left == 0 { Duration::MAX } else { NEXT_ADDRESS_AFTER };
            match timeout(limit, self.dialer.dial((*address, port).into())).await {
                Ok(Ok(connection)) => return Ok(connection),
                Ok(Err(error)) if is_exhausted(&error) => return Err(PostError::Exhausted),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(PostError::Unreachable)
    }
}

/// Returns whether a call failed because the process or the machine has no file descriptors, memory or ports left.
fn is_exhausted(error: &io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EADDRNOTAVAIL];
    error.raw_os_error().is_some_and(|code| lacks.contains(&code))
}
