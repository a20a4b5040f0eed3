//! A webhook receiver on a real socket. It keeps what arrives and answers as the test says.
//!
//! Checks a delivery's signatures without using the code that made them.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use local::server::{Body, Server};
use ring::hmac::{HMAC_SHA256, Key, sign};
use serde_json::Value;
use standardwebhooks::Webhook;
use tokio::sync::watch;
use tokio::time::Instant;
use webhooks::secrets::EndpointSecret;

use crate::guides::SignatureValidity;

/// A delivery that takes longer than this never arrives.
const ARRIVAL_TIMEOUT: Duration = Duration::from_mins(2);

/// A delivery as it arrived.
#[derive(Clone, Debug)]
pub struct Received {
    pub at: Instant,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug)]
pub enum Answer {
    Status(u16),
    /// Answers with this status once the test lets the receiver go on.
    Held(u16),
    /// Never answers.
    Hang,
}

/// A running receiver.
pub struct Receiver {
    pub url: String,
    received: watch::Receiver<Vec<Received>>,
    released: watch::Sender<usize>,
    _server: Server,
}

impl Receiver {
    /// Starts a receiver that answers every request with this status.
    pub async fn answering(status: u16) -> Self {
        Self::start(move |_, _| Answer::Status(status)).await
    }

    /// Starts a receiver that answers each request as `answer` says. `answer` gets the request's number, from 1.
    pub async fn start(answer: impl Fn(usize, &Received) -> Answer + Send + Sync + 'static) -> Self {
        let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
        let (sender, received) = watch::channel(Vec::new());
        let (released, signal) = watch::channel(0);
        let (answer, sender) = (Arc::new(answer), Arc::new(Mutex::new(sender)));
        let server = Server::start(listener, move |request: Request<Incoming>| {
            let (answer, sender, mut signal) = (Arc::clone(&answer), Arc::clone(&sender), signal.clone());
            async move {
                let (at, path, headers) = (Instant::now(), request.uri().path().to_owned(), request.headers().clone());
                let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes);
                let one = Received { at, path, headers, body: body.unwrap_or_default() };
                let mut number = 0;
                sender.lock().unwrap().send_modify(|all| {
                    all.push(one.clone());
                    number = all.len();
                });
                let status = match answer(number, &one) {
                    Answer::Status(status) => status,
                    Answer::Held(status) => {
                        let _ = signal.wait_for(|last| *last >= number).await;
                        status
                    }
                    Answer::Hang => std::future::pending().await,
                };
                let empty: Body = Empty::new().map_err(|never| match never {}).boxed();
                let mut response = Response::new(empty);
                *response.status_mut() = StatusCode::from_u16(status).unwrap();
                response
            }
        });
        let server = server.unwrap();
        Self { url: format!("{}/hook", server.url()), received, released, _server: server }
    }

    /// Releases all held answers, and holds none from now on.
    pub fn release_all(&self) {
        self.release_until(usize::MAX);
    }

    /// Releases the held answers to requests up to this number.
    pub fn release_until(&self, last: usize) {
        self.released.send_replace(last);
    }

    /// Returns what has arrived so far.
    pub fn so_far(&self) -> Vec<Received> {
        self.received.borrow().clone()
    }

    /// Waits until at least `count` requests have arrived. Returns all that have.
    pub async fn received(&self, count: usize) -> Vec<Received> {
        let mut received = self.received.clone();
        let arrived = tokio::time::timeout(ARRIVAL_TIMEOUT, received.wait_for(|all| all.len() >= count)).await;
        let so_far = self.so_far().len();
        arrived.unwrap_or_else(|_| panic!("{so_far} of {count} deliveries arrived")).unwrap().clone()
    }
}

impl Received {
    /// A header's text, empty if absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The delivery's id.
    pub fn id(&self) -> &str {
        self.header("x-service-delivery-id")
    }

    /// Which of its two signatures were made with this secret.
    pub fn signed_with(&self, secret: &EndpointSecret) -> SignatureValidity {
        let text = secret.reveal();
        let service = sign(&Key::new(HMAC_SHA256, text.as_bytes()), &self.body);
        let sent_at = self.header("webhook-timestamp").parse().unwrap();
        let standard = Webhook::new(&text).unwrap().sign(self.header("webhook-id"), sent_at, &self.body).unwrap();
        SignatureValidity {
            service: self.header("x-service-signature") == format!("sha256={}", hex::encode(service)),
            standard: self.header("webhook-signature").split(' ').any(|one| one == standard),
        }
    }
}
