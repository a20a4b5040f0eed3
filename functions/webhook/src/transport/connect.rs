//! The connector: resolves a host, checks its addresses, connects, and does the TLS handshake.
//!
//! It connects to the very addresses that it has checked, so that a name cannot point elsewhere in between.

use std::net::IpAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use guard::{Policy, Resolve, check_resolved};
use http::Uri;
use http::uri::Scheme;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::crypto::ring;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tower_service::Service;

use super::error::{PostError, TlsFailure};
use super::reach::Reach;

/// How long an address may take to accept a connection if there are others to try.
const NEXT_ADDRESS_AFTER: Duration = Duration::from_secs(1);

/// The most addresses of a name that one attempt tries. All others are checked as well, but not connected to: whoever
/// has the name decides how many addresses it has.
const MAX_ADDRESSES: usize = 8;

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
