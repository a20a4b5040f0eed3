//! A small HTTP/1.1 server, shared by the gateway and the AWS side, and the simplest answers. Every request to one of our
//! ports arrives in `serve_connection`.

use std::convert::{Infallible, identity};
use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use http::header::{HOST, ORIGIN};
use http::uri::Authority;
use http::{Request, Response, StatusCode, Uri};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
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
        Ok(Self { address, _accepting: BackgroundTask::start(accept(listener, identity, answer)) })
    }

    /// Does what [`start`](Self::start) does, but refuses what a web page of another site has sent. `wrap` sees all that
    /// is read and written.
    pub fn start_for_this_machine<W, S, F, Fut>(listener: TcpListener, wrap: W, answer: F) -> io::Result<Self>
    where
        W: Fn(TcpStream) -> S + Send + 'static,
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
        F: Fn(Request<Incoming>) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Response<Body>> + Send + 'static,
    {
        let address = listener.local_addr()?;
        let answer = move |request| {
            let answer = refusal(&request, address.ip()).ok_or_else(|| answer(request));
            async move {
                match answer {
                    Ok(refusal) => refusal,
                    Err(answer) => answer.await,
                }
            }
        };
        Ok(Self { address, _accepting: BackgroundTask::start(accept(listener, wrap, answer)) })
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

async fn accept<W, S, F, Fut>(listener: TcpListener, wrap: W, answer: F)
where
    W: Fn(TcpStream) -> S,
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
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
        connections.spawn(serve_connection(wrap(stream), answer.clone()));
        while connections.try_join_next().is_some() {}
    }
}

/// Answers each request of one connection with `answer`, until the client closes the connection.
pub async fn serve_connection<S, F, Fut>(stream: S, answer: F)
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

/// Refuses a request that a web page of another site has sent to a server on this address. A page that binds its own name
/// to our address sends that name as `Host`, any other page its name as `Origin`.
fn refusal<B>(request: &Request<B>, listen: IpAddr) -> Option<Response<Body>> {
    let host = header(request, HOST.as_str()).parse::<Authority>();
    let Some(host) = host.ok().filter(|host| is_ours(host.host(), listen)) else {
        let text = "Only localhost, loopback addresses and the address of --listen are served here.\n";
        return Some(plain(StatusCode::MISDIRECTED_REQUEST, text));
    };
    if request.headers().contains_key(ORIGIN) {
        let origin = header(request, ORIGIN.as_str()).parse::<Uri>();
        let is_local = |page: &str| page == host.host() || is_ours(page, Ipv4Addr::LOCALHOST.into());
        if !origin.is_ok_and(|origin| origin.host().is_some_and(is_local)) {
            return Some(plain(StatusCode::FORBIDDEN, "Pages of other sites are not served here.\n"));
        }
    }
    None
}

/// Returns whether a host is this machine. No page can bind an address of its own to ours, so a server that listens on all
/// addresses takes every address for its own.
fn is_ours(host: &str, listen: IpAddr) -> bool {
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.is_loopback() || address == listen || listen.is_unspecified(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    }
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
pub fn plain(status: StatusCode, text: &str) -> Response<Body> {
    let mut response = Response::new(full(text.to_owned()));
    *response.status_mut() = status;
    response
}
