//! A proxy in front of the AWS side. It records calls, and can be made to fail in all the ways in which a store
//! fails.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// What the proxy does to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Forward it.
    None,
    /// Forward it after a pause.
    Slow(Duration),
    /// Close the connection without an answer, and without forwarding.
    Refuse,
    /// Never answer.
    Hang,
    /// Forward it once [`Proxy::while_held`] lets it go.
    Hold,
    /// Answer with the error that has this code, as DynamoDB or, to calls about objects, as S3 writes it.
    Error(&'static str),
    /// Answer that the call is invalid if this text is in its body. Forward it otherwise.
    Invalid(&'static str),
    /// Answer that the transaction was cancelled, with this code as the reason of its first part.
    Cancelled(&'static str),
    /// Answer with this JSON, without forwarding.
    Answer(&'static str),
    /// Answer with a page of HTML instead of DynamoDB's JSON.
    Garbage,
    /// Forward it, then close the connection instead of answering.
    LoseAnswer,
    /// Forward it, and never answer.
    HangAfter,
}

/// One call that reached the proxy.
#[derive(Clone, Debug)]
pub struct AwsCall {
    /// The operation, such as `UpdateItem`, `GetObject` or `Invoke`.
    pub operation: String,
    pub body: Bytes,
    /// The status of the answer. `None` if there was none.
    pub status: Option<u16>,
    pub began: Instant,
    pub ended: Instant,
}

/// Decides what happens to a call, by its operation.
type FaultPlan = Box<dyn FnMut(&str) -> Fault + Send>;

/// A running proxy.
pub struct Proxy {
    pub url: String,
    state: Arc<ProxyState>,
    accepting: JoinHandle<()>,
}

struct ProxyState {
    upstream: String,
    client: Client<HttpConnector, Full<Bytes>>,
    plan: Mutex<FaultPlan>,
    calls: watch::Sender<Vec<AwsCall>>,
    connections: AtomicUsize,
    /// How many calls have hung since the plan was set.
    stuck: watch::Sender<usize>,
    /// Whether a call is held.
    is_holding: watch::Sender<bool>,
}

impl Proxy {
    pub async fn start(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(ProxyState {
            upstream: upstream.to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
            plan: Mutex::new(Box::new(|_| Fault::None)),
            calls: watch::Sender::default(),
            connections: AtomicUsize::default(),
            stuck: watch::Sender::default(),
            is_holding: watch::Sender::default(),
        });
        let accepting = tokio::spawn(accept(listener, state.clone()));
        Self { url, state, accepting }
    }

    /// Treats every call from now on the same way.
    pub fn set_fault(&self, fault: Fault) {
        self.plan(move |_| fault.clone());
    }

    /// Decides about each call from now on by its operation.
    pub fn plan(&self, plan: impl FnMut(&str) -> Fault + Send + 'static) {
        *self.state.plan.lock().unwrap() = Box::new(plan);
        self.state.stuck.send_replace(0);
    }

    /// Waits until a call hangs under the current plan.
    pub async fn wait_until_stuck(&self) {
        self.state.stuck.subscribe().wait_for(|calls| *calls > 0).await.unwrap();
    }

    /// Holds one call, the `number`th of this operation from now on, until `meanwhile` has ended. Forwards all others.
    pub fn while_held<T>(
        &self,
        operation: &'static str,
        number: usize,
        meanwhile: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        let mut calls = 0;
        self.plan(move |called| {
            calls += usize::from(called == operation);
            if called == operation && calls == number { Fault::Hold } else { Fault::None }
        });
        let is_holding = self.state.is_holding.clone();
        async move {
            is_holding.subscribe().wait_for(|is_holding| *is_holding).await.unwrap();
            let output = meanwhile.await;
            is_holding.send_replace(false);
            output
        }
    }

    /// Returns the calls since the last time this was asked, and forgets them.
    pub fn take_calls(&self) -> Vec<AwsCall> {
        self.state.calls.send_replace(Vec::new())
    }

    /// Waits until there are this many calls to take. A call is there once it has ended.
    pub async fn wait_for_calls(&self, number: usize) {
        self.state.calls.subscribe().wait_for(|calls| calls.len() >= number).await.unwrap();
    }

    /// Returns the operations of these calls, in their order.
    pub fn take_operations(&self) -> Vec<String> {
        self.take_calls().into_iter().map(|call| call.operation).collect()
    }

    /// How many connections have been opened so far.
    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }
}

impl AwsCall {
    /// Counts the calls of an operation.
    pub fn count(calls: &[Self], operation: &str) -> usize {
        calls.iter().filter(|call| call.operation == operation).count()
    }

    /// Counts round trips: the length of the longest chain of calls in which each began after the one before had
    /// ended.
    pub fn round_trips(calls: &[Self]) -> usize {
        let mut by_end = calls.to_vec();
        by_end.sort_by_key(|call| call.ended);
        let (mut trips, mut free) = (0, None);
        for call in by_end {
            if free.is_none_or(|free| call.began >= free) {
                trips += 1;
                free = Some(call.ended);
            }
        }
        trips
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, state: Arc<ProxyState>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        state.connections.fetch_add(1, Ordering::Relaxed);
        let state = state.clone();
        let service = service_fn(move |request| {
            let state = state.clone();
            async move { state.answer(request).await }
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

impl ProxyState {
    /// Answers a call as planned. An error closes the connection without an answer.
    async fn answer(&self, request: Request<Incoming>) -> io::Result<Response<Full<Bytes>>> {
        let began = Instant::now();
        let operation = operation(&request);
        let fault = (self.plan.lock().unwrap())(&operation);
        let (parts, body) = request.into_parts();
        let request = Request::from_parts(parts, body.collect().await.map_err(io::Error::other)?.to_bytes());
        let body = request.body().clone();
        let outcome = match fault {
            Fault::Invalid(text) if request.body().windows(text.len()).any(|part| part == text.as_bytes()) => {
                Ok(error("ValidationException"))
            }
            Fault::None | Fault::Invalid(_) => self.forward(request).await,
            Fault::Slow(pause) => {
                tokio::time::sleep(pause).await;
                self.forward(request).await
            }
            Fault::Refuse => Err(io::Error::other("refused")),
            Fault::Hang => self.hang().await,
            Fault::Hold => {
                self.is_holding.send_replace(true);
                let released = self.is_holding.subscribe().wait_for(|is_holding| !is_holding).await.map(drop);
                released.map_err(io::Error::other)?;
                self.forward(request).await
            }
            Fault::Error(code) if operation.ends_with("Object") => Ok(object_error(code)),
            Fault::Error(code) => Ok(error(code)),
            Fault::Cancelled(code) => {
                let reasons = format!(r#"[{{"Code":"{code}","Message":"injected"}},{{"Code":"None"}}]"#);
                let name = "com.amazonaws.dynamodb.v20120810#TransactionCanceledException";
                let body = format!(r#"{{"__type":"{name}","Message":"injected","CancellationReasons":{reasons}}}"#);
                Ok(answer(StatusCode::BAD_REQUEST, body))
            }
            Fault::Answer(json) => Ok(answer(StatusCode::OK, json.to_owned())),
            Fault::Garbage => Ok(answer(StatusCode::OK, "<html>It works!</html>".to_owned())),
            Fault::LoseAnswer => {
                self.forward(request).await?;
                Err(io::Error::other("lost"))
            }
            Fault::HangAfter => {
                self.forward(request).await?;
                self.hang().await
            }
        };
        let status = outcome.as_ref().ok().map(|answer| answer.status().as_u16());
        let call = AwsCall { operation, body, status, began, ended: Instant::now() };
        self.calls.send_modify(|calls| calls.push(call));
        outcome
    }

    async fn hang<T>(&self) -> T {
        self.stuck.send_modify(|calls| *calls += 1);
        std::future::pending().await
    }

    async fn forward(&self, request: Request<Bytes>) -> io::Result<Response<Full<Bytes>>> {
        let (mut parts, body) = request.into_parts();
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
        parts.uri = format!("{}{path}", self.upstream).parse().map_err(io::Error::other)?;
        let request = Request::from_parts(parts, Full::new(body));
        let response = self.client.request(request).await.map_err(io::Error::other)?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
        Ok(Response::from_parts(parts, Full::new(body)))
    }
}

/// An answer with the DynamoDB error that has this code.
fn error(code: &str) -> Response<Full<Bytes>> {
    let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"injected"}}"#);
    answer(StatusCode::BAD_REQUEST, body)
}

/// Returns the operation of a call. Calls about objects and functions do not name theirs: it follows from the method.
fn operation(request: &Request<Incoming>) -> String {
    let target = request.headers().get("x-amz-target").and_then(|value| value.to_str().ok());
    let target = target.and_then(|target| target.split('.').next_back());
    let implied = match request.method().as_str() {
        "GET" if request.uri().path().ends_with("/configuration") => "GetFunctionConfiguration",
        "GET" => "GetObject",
        "PUT" => "PutObject",
        "POST" if request.uri().path().ends_with("/invocations") => "Invoke",
        _ => "",
    };
    target.unwrap_or(implied).to_owned()
}

fn object_error(code: &str) -> Response<Full<Bytes>> {
    let status = if code == "SlowDown" { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::FORBIDDEN };
    answer(status, format!("<Error><Code>{code}</Code><Message>injected</Message></Error>"))
}

fn answer(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("application/x-amz-json-1.0"));
    response
}
