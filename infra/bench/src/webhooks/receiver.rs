//! The receiver of webhooks, in a process of its own. It never answers what is sent to `/hang`, answers 500 to what is
//! sent to `/fail`, and acknowledges everything else at once. It records how long after its event each acknowledged
//! delivery arrived.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use local::server::{Body, Server};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

use crate::child::{child_command, parent_ended};
use crate::cpu;
use crate::output::text;

const SUBCOMMAND: &str = "receiver";
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// A running receiver. It stops when this is dropped.
pub(super) struct Receiver {
    /// The base URL.
    pub(super) url: String,
    client: reqwest::Client,
    process: Child,
}

/// What has arrived since it was last taken.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Arrived {
    /// Milliseconds from each event's `created_at` to the arrival of its delivery.
    pub(super) millis: Vec<i64>,
    /// The number of requests to `/hang` and `/fail`.
    pub(super) hanging: u64,
}

#[derive(Deserialize)]
struct Envelope {
    created_at: Timestamp,
}

impl Receiver {
    pub(super) async fn start() -> Result<Self, String> {
        let mut process =
            child_command(SUBCOMMAND)?.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(text)?;
        let stdout = process.stdout.take().ok_or("the receiver has no standard output")?;
        let line = BufReader::new(stdout).lines().next_line().await.map_err(text)?;
        let url = line.ok_or("the receiver did not start")?;
        let client = reqwest::Client::builder().no_proxy().build().map_err(text)?;
        Ok(Self { url, client, process })
    }

    /// Returns its CPU time so far.
    pub(super) fn cpu(&self) -> Duration {
        cpu::child_time(&self.process)
    }

    /// Returns how many acknowledged deliveries have arrived since they were last taken.
    pub(super) async fn count(&self) -> Result<u64, String> {
        let answer = self.client.get(format!("{}/count", self.url)).send().await.map_err(text)?;
        answer.text().await.map_err(text)?.parse().map_err(text)
    }

    /// Waits until this many acknowledged deliveries have arrived.
    pub(super) async fn wait_for_arrivals(&self, count: u64) -> Result<(), String> {
        while self.count().await? < count {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    /// Takes what has arrived.
    pub(super) async fn take(&self) -> Result<Arrived, String> {
        let answer = self.client.get(format!("{}/take", self.url)).send().await.map_err(text)?;
        serde_json::from_str(&answer.text().await.map_err(text)?).map_err(text)
    }
}

/// Runs as the receiver until standard input ends.
pub(crate) async fn run() -> Result<(), String> {
    let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.map_err(text)?;
    let arrived = Arc::new(Mutex::new(Arrived::default()));
    let clock = Arc::new(SystemClock::new());
    let server = Server::start(listener, move |request| {
        let (arrived, clock) = (Arc::clone(&arrived), Arc::clone(&clock));
        async move { answer(request, &arrived, clock.as_ref()).await }
    });
    let server = server.map_err(text)?;
    println!("{}", server.url());
    parent_ended().await
}

async fn answer<B: hyper::body::Body>(
    request: Request<B>,
    arrived: &Mutex<Arrived>,
    clock: &dyn Clock,
) -> Response<Body> {
    let now = clock.now();
    let lock = || arrived.lock().unwrap_or_else(PoisonError::into_inner);
    if request.method() == Method::GET {
        let is_take = request.uri().path() == "/take";
        let body = if is_take {
            serde_json::json!(std::mem::take(&mut *lock())).to_string()
        } else {
            lock().millis.len().to_string()
        };
        return reply(StatusCode::OK, body);
    }
    if request.uri().path() == "/hang" {
        lock().hanging += 1;
        return std::future::pending().await;
    }
    if request.uri().path() == "/fail" {
        lock().hanging += 1;
        return reply(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    }
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if let Ok(envelope) = serde_json::from_slice::<Envelope>(&body) {
        lock().millis.push(now.millis() - envelope.created_at.millis());
    }
    reply(StatusCode::NO_CONTENT, String::new())
}

fn reply(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Full::from(body).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}
