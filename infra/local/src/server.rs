//! A small HTTP/1.1 server, shared by the gateway and the AWS side, and the simplest answers. Every request to one of our
//! ports arrives in `serve_connection`.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// A response body of any origin.
pub type Body = BoxBody<Bytes, io::Error>;

/// A server. It stops and closes its connections when it is dropped.
#[derive(Debug)]
pub struct Server {
    /// The address that it listens on.
    pub address: SocketAddr,
    _accepting: BackgroundTask,
}

/// Work that goes on in the background, such as a poller or a schedule. It stops when this is dropped.
#[derive(Debug)]
pub struct BackgroundTask(JoinHandle<()>);

impl Server {
    /// Binds an address; port 0 picks a free one.
    pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
        let listener = TcpListener::bind(address).await;
        listener.map_err(|error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}")))
    }

    /// Answers each request of each connection with `answer`.
    pub fn start<F, Fut>(listener: TcpListener, answer: F) -> io::Result<Self>
    where
        F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        Ok(Self { address, _accepting: BackgroundTask::start(accept(listener, answer)) })
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl BackgroundTask {
    pub(crate) fn start(forever: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(forever))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn accept<F, Fut>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Response<Body>> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
                continue;
            }
        };
        // Small answers are sent without delay.
        let _ = stream.set_nodelay(true);
        connections.spawn(serve_connection(stream, answer.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers each request of one connection with `answer`, until the client closes the connection.
pub(crate) async fn serve_connection<S, F, Fut>(stream: S, answer: F)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    F: Fn(Request<Incoming>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Response<Body>> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    // A client that disconnects in the middle is not worth logging.
    connection.await.unwrap_or_default();
}

/// Returns a header of a request as text, which is empty if there is none.
pub(crate) fn header<'r, B>(request: &'r Request<B>, name: &str) -> &'r str {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns a body that is at hand.
pub(crate) fn full(body: impl Into<Bytes>) -> Body {
    Full::new(body.into()).map_err(|never| match never {}).boxed()
}

/// Answers with text.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(text.to_owned()));
    *response.status_mut() = status;
    response
}
