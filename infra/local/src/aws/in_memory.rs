//! An AWS side without sockets, for paused clocks. Such a clock jumps to the next timer as soon as nothing else can go
//! on. While a call is on its way through the operating system, the clock would jump to the call's own time-out.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aws_sdk_dynamodb::config::SharedInterceptor;
use dynoxide::Database;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use platform::aws::{Environment, Missing, client_over};
use tokio::io::DuplexStream;
use tower_service::Service;

use super::limits::Limiter;
use super::retry_quota::RetryQuota;
use super::router::Router;
use super::services::EmulatedServices;
use crate::environment::Variables;
use crate::server::serve_connection;

/// The address in its URLs. Nothing listens there, and nobody connects to it.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
/// How much a connection holds in each direction until the other side reads.
const BUFFER_BYTES: usize = 64 * 1_024;

/// An AWS side that keeps everything in memory, and whose clients are in the same process.
pub struct InMemoryAws {
    router: Arc<Router>,
    limiter: Arc<Limiter>,
}

impl InMemoryAws {
    /// Makes an empty one.
    pub async fn new() -> io::Result<Self> {
        let database = Database::memory().map_err(|error| io::Error::other(error.to_string()))?;
        let limiter = Arc::new(Limiter::default());
        let services = EmulatedServices::open(ADDRESS, None, Arc::clone(&limiter)).await?;
        let router = Arc::new(Router::new(database, None, Arc::clone(&limiter), services));
        Ok(Self { router, limiter })
    }

    /// The endpoint URL for SDKs. Only clients of [`InMemoryAws::environment`] find anything there.
    pub fn endpoint_url() -> String {
        format!("http://{ADDRESS}")
    }

    /// Returns an environment as a process of its own has it: its clients share connections and a quota of retries
    /// with no other environment.
    pub fn environment(&self) -> Result<Environment, Missing> {
        let variables = Variables::new(&Self::endpoint_url());
        let environment = Environment::read(&|name| variables.get(name))?;
        let environment = environment.watched_by(SharedInterceptor::new(RetryQuota::new()));
        Ok(environment.reached_by(client_over(Connector(Arc::clone(&self.router)))))
    }

    /// The limits of DynamoDB and S3. At first there are none.
    pub fn limits(&self) -> &Arc<Limiter> {
        &self.limiter
    }
}

/// Connects to the AWS side, whatever the address.
#[derive(Clone)]
struct Connector(Arc<Router>);

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector(…)")
    }
}

impl Service<Uri> for Connector {
    type Response = ClientEnd;
    type Error = Infallible;
    type Future = Ready<Result<ClientEnd, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let (client, server) = tokio::io::duplex(BUFFER_BYTES);
        let router = Arc::clone(&self.0);
        tokio::spawn(serve_connection(server, move |request| {
            let router = Arc::clone(&router);
            async move { router.route(request).await }
        }));
        ready(Ok(ClientEnd(TokioIo::new(client))))
    }
}

/// The client's end of a connection.
struct ClientEnd(TokioIo<DuplexStream>);

impl Connection for ClientEnd {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for ClientEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl Write for ClientEnd {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
