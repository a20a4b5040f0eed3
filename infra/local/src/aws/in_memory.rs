//! An AWS side without sockets, for paused clocks. Such a clock jumps to the next timer as soon as nothing else can go
//! on. While a call is on its way through the operating system, the clock would jump to the call's own time-out.

use std::convert::Infallible;
use std::fmt;
use std::future::{Ready, ready};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextMut;
use aws_sdk_dynamodb::config::retry::RetryPartition;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use common::aws::{Environment, Missing, client_over};
use dynoxide::Database;
use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tower_service::Service;

use super::faults::FaultInjector;
use super::limits::Limiter;
use super::services::Services;
use crate::environment::Variables;
use crate::server::serve_connection;

/// The address in its URLs. Nothing listens there, and nobody connects to it.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);
/// How much a connection holds in each direction until the other side reads.
const BUFFER_BYTES: usize = 64 * 1_024;

/// An AWS side that keeps everything in memory, and whose clients are in the same process.
pub struct InMemoryAws(Arc<Services>);

impl InMemoryAws {
    /// Makes an empty one.
    pub async fn new() -> io::Result<Self> {
        let database = Database::memory().map_err(|error| io::Error::other(error.to_string()))?;
        Ok(Self(Arc::new(Services::open(ADDRESS, database, None).await?)))
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
        Ok(environment.reached_by(client_over(Connector(Arc::clone(&self.0)))))
    }

    /// The limits of DynamoDB and S3. At first there are none.
    pub fn limits(&self) -> &Arc<Limiter> {
        &self.0.limiter
    }

    /// What goes wrong between clients and AWS. At first nothing does.
    pub fn faults(&self) -> &FaultInjector {
        &self.0.faults
    }

    /// Lets each write reach the indexes of its table after a time of its own within `lag`, from now on.
    pub fn delay_indexes(&self, lag: RangeInclusive<Duration>, seed: u64) -> Result<(), String> {
        self.0.dynamodb.delay_indexes(lag, seed)
    }
}

/// Gives the clients that it intercepts a quota of retries of their own. The SDK keeps one in a process, for all clients
/// of a service. Simulated instances must not share it, because each would use up the retries of the others.
#[derive(Debug)]
struct RetryQuota(RetryPartition);

impl RetryQuota {
    /// Makes a full quota.
    fn new() -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        Self(RetryPartition::new(format!("instance {}", MADE.fetch_add(1, Ordering::Relaxed))))
    }
}

impl Intercept for RetryQuota {
    fn name(&self) -> &'static str {
        "retry quota"
    }

    fn modify_before_serialization(
        &self,
        _: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        config: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        config.interceptor_state().store_put(self.0.clone());
        Ok(())
    }
}

/// Connects to the AWS side, whatever the address.
#[derive(Clone)]
struct Connector(Arc<Services>);

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
        let services = Arc::clone(&self.0);
        tokio::spawn(serve_connection(server, move |request| {
            let services = Arc::clone(&services);
            async move { services.answer(request).await }
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
