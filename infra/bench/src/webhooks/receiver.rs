//! The receiver of webhooks, in a process of its own. It never answers what is sent below `/hang`, and answers 500 to
//! what is sent below `/fail`. Below `/again` it answers 500 to the first attempt of each delivery. It acknowledges
//! everything else at once. It records how long after its event, or after its failure, each delivery arrived.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use local::server::{Body, Server};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

use crate::child::{child_command, parent_ended};
use crate::cpu;
use crate::output::text;

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
    /// Milliseconds from each failure below `/again` to the next arrival of the same delivery.
    pub(super) retry_millis: Vec<i64>,
    /// The number of requests to `/hang` and `/fail`.
    pub(super) hanging: u64,
}

/// How much has arrived since it was last taken, without requests to `/hang` and `/fail`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct ArrivalCount {
    pub(super) first: u64,
    pub(super) retries: u64,
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

    /// Returns how much has arrived since it was last taken.
    pub(super) async fn count(&self) -> Result<ArrivalCount, String> {
        let answer = self.client.get(format!("{}/count", self.url)).send().await.map_err(text)?;
        serde_json::from_str(&answer.text().await.map_err(text)?).map_err(text)
    }

    /// Waits until this many first attempts have arrived. Fails if none arrives for a minute.
    pub(super) async fn wait_for_arrivals(&self, count: u64) -> Result<(), String> {
        let (mut arrived, mut latest) = (0, Instant::now());
        loop {
            let ArrivalCount { first, .. } = self.count().await?;
            if first >= count {
                return Ok(());
            }
            if first > arrived {
                (arrived, latest) = (first, Instant::now());
            }
            if latest.elapsed() > MAX_PAUSE {
                return Err(format!("{arrived} of {count} deliveries arrived, and none for {MAX_PAUSE:?}"));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits until this much has arrived, or until the time has passed.
    pub(super) async fn wait_at_most(&self, time: Duration, expected: ArrivalCount) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            let ArrivalCount { first, retries } = self.count().await?;
            if (first >= expected.first && retries >= expected.retries) || begun.elapsed() >= time {
                return Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Takes what has arrived.
    pub(super) async fn take(&self) -> Result<Arrived, String> {
        let answer = self.client.get(format!("{}/take", self.url)).send().await.map_err(text)?;
        serde_json::from_str(&answer.text().await.map_err(text)?).map_err(text)
    }
}

/// What the receiver remembers.
#[derive(Debug, Default)]
struct Log {
    arrived: Arrived,
    /// When each delivery below `/again` failed, by the value of its header `webhook-id`.
    failures: HashMap<String, Timestamp>,
}

impl Log {
    /// Records a delivery below `/again`. Returns whether it is a retry.
    fn retry(&mut self, delivery: String, now: Timestamp) -> bool {
        match self.failures.entry(delivery) {
            Entry::Occupied(failure) => {
                self.arrived.retry_millis.push(now.millis() - failure.get().millis());
                true
            }
            Entry::Vacant(first) => {
                first.insert(now);
                false
            }
        }
    }

    fn count(&self) -> ArrivalCount {
        ArrivalCount { first: self.arrived.millis.len() as u64, retries: self.arrived.retry_millis.len() as u64 }
    }
}

/// Runs as the receiver until standard input ends.
pub(crate) async fn run() -> Result<(), String> {
    let listener = Server::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.map_err(text)?;
    let log = Arc::new(Mutex::new(Log::default()));
    let clock = Arc::new(SystemClock::new());
    let server = Server::start(listener, move |request| {
        let (log, clock) = (Arc::clone(&log), Arc::clone(&clock));
        async move { answer(request, &log, clock.as_ref()).await }
    });
    let server = server.map_err(text)?;
    println!("{}", server.url());
    parent_ended().await
}

async fn answer<B: hyper::body::Body>(request: Request<B>, log: &Mutex<Log>, clock: &dyn Clock) -> Response<Body> {
    let now = clock.now();
    let log = || log.lock().unwrap_or_else(PoisonError::into_inner);
    let (head, body) = request.into_parts();
    let folder = head.uri.path().split('/').nth(1).unwrap_or_default();
    if head.method == Method::GET {
        let is_take = folder == "take";
        let answer = if is_take { json!(std::mem::take(&mut log().arrived)) } else { json!(log().count()) };
        return reply(StatusCode::OK, answer.to_string());
    }
    if folder == "hang" {
        log().arrived.hanging += 1;
        return std::future::pending().await;
    }
    if folder == "fail" {
        log().arrived.hanging += 1;
        return reply(StatusCode::INTERNAL_SERVER_ERROR, String::new());
    }
    let body = body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let id = head.headers.get("webhook-id").and_then(|id| id.to_str().ok()).unwrap_or_default();
    let is_again = folder == "again";
    if is_again && log().retry(id.to_owned(), now) {
        return reply(StatusCode::NO_CONTENT, String::new());
    }
    if let Ok(envelope) = serde_json::from_slice::<Envelope>(&body) {
        log().arrived.millis.push(now.millis() - envelope.created_at.millis());
    }
    let status = if is_again { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::NO_CONTENT };
    reply(status, String::new())
}

fn reply(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Full::from(body).map_err(|never| match never {}).boxed());
    *response.status_mut() = status;
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn post(path: &str, id: &str) -> Request<Full<bytes::Bytes>> {
        let body = r#"{"created_at":"2026-11-20T10:00:00.000Z"}"#;
        Request::post(path).header("webhook-id", id).body(Full::from(body)).unwrap()
    }

    #[tokio::test]
    async fn below_again_the_first_attempt_of_each_delivery_fails() {
        let (log, clock) = (Mutex::new(Log::default()), SystemClock::new());
        let mut statuses = Vec::new();
        for (path, id) in [("/again/1", "a"), ("/again/1", "b"), ("/again/1", "a"), ("/again/1", "a"), ("/1", "a")] {
            statuses.push(answer(post(path, id), &log, &clock).await.status().as_u16());
        }
        assert_eq!(statuses, [500, 500, 204, 204, 204]);
        let ArrivalCount { first, retries } = log.lock().unwrap().count();
        assert_eq!((first, retries), (3, 2));
    }
}
