//! The receiver of webhooks, in a process of its own. It never answers what is sent to `/hang`, and acknowledges everything
//! else at once. It records how long after its event each delivery arrived.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::clock::{Clock, SystemClock};
use common::timestamp::Timestamp;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use local::server::{Body, Server};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::process::Child;

use crate::figures::text;
use crate::process::child_time;
use crate::stack::{parent_ended, start_child};

const SUBCOMMAND: &str = "receiver";
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// How long to wait for the next delivery before the rest counts as lost.
const MAX_PAUSE: Duration = Duration::from_mins(1);

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
    /// Milliseconds from each event's `created_at` to the first arrival of its delivery.
    pub(super) millis: Vec<i64>,
    /// The number of requests to `/hang`.
    pub(super) hanging: u64,
}

#[derive(Deserialize)]
struct Envelope {
    created_at: Timestamp,
}

impl Receiver {
    pub(super) async fn start() -> Result<Self, String> {
        let (process, mut lines) = start_child([SUBCOMMAND])?;
        let url = lines.next_line().await.map_err(text)?.ok_or("the receiver did not start")?;
        let client = reqwest::Client::builder().no_proxy().build().map_err(text)?;
        Ok(Self { url, client, process })
    }

    /// Returns its CPU time so far.
    pub(super) fn cpu(&self) -> Duration {
        child_time(&self.process)
    }

    /// Waits until this many deliveries have arrived. Fails if none arrives for a minute.
    pub(super) async fn wait_for_arrivals(&self, count: u64) -> Result<(), String> {
        let (mut arrived, mut latest) = (0, Instant::now());
        loop {
            let so_far: u64 = self.get("count").await?;
            if so_far >= count {
                return Ok(());
            }
            if so_far > arrived {
                (arrived, latest) = (so_far, Instant::now());
            }
            if latest.elapsed() > MAX_PAUSE {
                return Err(format!("{arrived} of {count} deliveries arrived, and none for {MAX_PAUSE:?}"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Takes what has arrived.
    pub(super) async fn take(&self) -> Result<Arrived, String> {
        self.get("take").await
    }

    async fn get<A: serde::de::DeserializeOwned>(&self, path: &str) -> Result<A, String> {
        let answer = self.client.get(format!("{}/{path}", self.url)).send().await.map_err(text)?;
        serde_json::from_str(&answer.text().await.map_err(text)?).map_err(text)
    }
}

/// Runs as the receiver until standard input ends.
pub(crate) async fn run() -> Result<(), String> {
    let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.map_err(text)?;
    let log = Arc::new(Mutex::new(Arrived::default()));
    let clock = Arc::new(SystemClock::new());
    let server = Server::start(listener, move |request| {
        let (log, clock) = (Arc::clone(&log), Arc::clone(&clock));
        async move { answer(request, &log, clock.as_ref()).await }
    });
    let server = server.map_err(text)?;
    println!("{}", server.url());
    parent_ended().await
}

async fn answer(request: Request<Incoming>, log: &Mutex<Arrived>, clock: &dyn Clock) -> Response<Body> {
    let now = clock.now();
    let log = || log.lock().unwrap_or_else(PoisonError::into_inner);
    let (head, body) = request.into_parts();
    match (head.method, head.uri.path()) {
        (Method::GET, "/take") => return reply(StatusCode::OK, json!(std::mem::take(&mut *log())).to_string()),
        (Method::GET, _) => return reply(StatusCode::OK, log().millis.len().to_string()),
        (_, "/hang") => {
            log().hanging += 1;
            return std::future::pending().await;
        }
        _ => {}
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    if let Ok(envelope) = serde_json::from_slice::<Envelope>(&body) {
        log().millis.push(now.millis() - envelope.created_at.millis());
    }
    reply(StatusCode::NO_CONTENT, String::new())
}

fn reply(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Full::from(body).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}
