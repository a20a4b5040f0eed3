//! The log line of requests: who asked for what, how it ended, and how long it took. It never holds the key or the query.
//!
//! A line is much of what a request costs. So requests share one if they are alike: of one key, method, route and status,
//! fast, and without a failure. The first is logged at once. Those of the second after it wait until it has passed, or
//! until they are eighty. Then the instance's next request writes their line, at its own time and with its own
//! `lambda_request_id`. The line has the id and the latency of each.

use std::mem::take;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use common::clock::{Clock, Moment};
use common::ids::KeyId;
use common::metrics::{Meter, Metric, StoreUse};
use common::runtime::Service;
use serde_json::Value;

use crate::error::ApiError;
use crate::gateway::{Request, Response, context};
use crate::reply::Reply;

/// An instance's log of requests. Those that wait for a line are lost if the instance ends.
pub struct RequestLog {
    waiting: Mutex<Waiting>,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// What is known about a request beside itself and its response.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The key that the request was made with, if it is known.
    pub key_id: Option<KeyId>,
    /// Why the request failed, if it ended in a 5xx.
    pub cause: Option<String>,
    /// How long the function took.
    pub duration: Duration,
    /// For how long the replica that the answer came from may have been out of date, if it came from one.
    pub replica_age: Option<Duration>,
}

/// Returns why a request ended in a 5xx. Any other outcome has no cause.
pub fn cause(outcome: &Result<Reply, ApiError>) -> Option<String> {
    outcome.as_ref().err().filter(|error| error.status().is_server_error()).map(ToString::to_string)
}

impl RequestLog {
    /// Makes the log of an instance.
    pub fn new(clock: Arc<dyn Clock>, meter: Arc<Meter>) -> Self {
        Self { waiting: Mutex::default(), clock, meter }
    }

    /// Makes the log of a function's instance.
    pub fn from_service(service: &Service<'_>) -> Self {
        Self::new(Arc::clone(&service.clock), Arc::clone(&service.meter))
    }

    /// Takes a request that has ended. Writes every line that is due.
    pub fn add(&self, request: &Request, response: &Response, facts: Facts) {
        let context = context(request);
        let ended = Ended {
            kind: Kind {
                method: request.method().to_string(),
                route: context.and_then(|context| context.route_key.clone()),
                status: response.status().as_u16(),
                key_id: facts.key_id,
            },
            request_id: context.and_then(|context| context.request_id.clone()),
            store: self.meter.take(),
            facts,
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        for requests in waiting.add(ended, &*self.clock) {
            self.write(&requests);
        }
    }

    /// Writes the line of requests of one kind.
    fn write(&self, requests: &[Ended]) {
        let Some(Ended { kind, facts, .. }) = requests.last() else { return };
        let sum = |count: fn(&StoreUse) -> u64| requests.iter().map(|request| count(&request.store)).sum();
        let store = StoreUse { calls: sum(|store| store.calls), retries: sum(|store| store.retries) };
        let ids: Vec<&str> = requests.iter().filter_map(|request| request.request_id.as_deref()).collect();
        let latencies = requests.iter().map(|request| milliseconds(request.facts.duration)).collect();
        let ages: Vec<_> = requests.iter().filter_map(|request| request.facts.replica_age).map(milliseconds).collect();

        let mut line = self.meter.line_with("request", store);
        line.member("request_id", &ids.join(" "));
        line.member("requests", &requests.len());
        line.member("method", &kind.method);
        line.known("route", kind.route.as_ref());
        line.member("status", &kind.status);
        line.known("key_id", kind.key_id.as_ref());
        line.known("cause", facts.cause.as_ref());
        line.member("latency_ms", &one_or_all(latencies));
        line.store_calls();
        if kind.status == 429 {
            line.count(Metric::RateLimited, requests.len() as u64);
        }
        if !ages.is_empty() {
            line.gauge(Metric::ReplicaLag, one_or_all(ages));
        }
        line.log(kind.status >= 500);
    }
}

/// Converts to milliseconds, rounded to the microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// Returns a list, or the value itself if there is only one.
fn one_or_all(values: Vec<f64>) -> Value {
    if let [one] = values[..] { one.into() } else { values.into() }
}

/// For how long requests wait for a line.
const WINDOW: Duration = Duration::from_secs(1);
/// A request that takes longer has a line of its own.
const FAST: Duration = Duration::from_millis(100);
/// The most requests of one line. Logs Insights reads 200 fields of it, and each latency and each age of the replica is
/// one (AWS's documentation). `CloudWatch` takes 100 ages.
const MOST: usize = 80;

/// A request that has ended.
#[derive(Clone)]
struct Ended {
    kind: Kind,
    request_id: Option<String>,
    store: StoreUse,
    facts: Facts,
}

/// What requests of one line have in common.
#[derive(Clone, Debug, PartialEq)]
struct Kind {
    method: String,
    route: Option<String>,
    status: u16,
    key_id: Option<KeyId>,
}

impl Ended {
    /// Returns whether the request may share a line: it was fast, did not fail and repeated no call.
    fn may_share(&self) -> bool {
        self.kind.status < 500 && self.store.retries == 0 && self.facts.duration < FAST
    }
}

/// The requests that wait for a line, by what they have in common. A kind is forgotten once a second has passed without
/// a request of it.
#[derive(Default)]
struct Waiting(Vec<Alike>);

struct Alike {
    kind: Kind,
    /// When such requests were logged last.
    logged: Option<Moment>,
    requests: Vec<Ended>,
}

impl Waiting {
    /// Takes a request. Returns the requests of each line that is due.
    fn add(&mut self, ended: Ended, clock: &dyn Clock) -> Vec<Vec<Ended>> {
        let mut lines = Vec::new();
        if !ended.may_share() {
            lines.push(vec![ended]);
        } else if let Some(alike) = self.0.iter_mut().find(|alike| alike.kind == ended.kind) {
            alike.requests.push(ended);
        } else {
            self.0.push(Alike { kind: ended.kind.clone(), logged: None, requests: vec![ended] });
        }
        self.0.retain_mut(|alike| {
            let is_early = alike.logged.is_some_and(|logged| logged.is_within(WINDOW, clock));
            if alike.requests.is_empty() || (is_early && alike.requests.len() < MOST) {
                return is_early;
            }
            alike.logged = Some(Moment::now(clock));
            lines.push(take(&mut alike.requests));
            true
        });
        lines
    }
}

#[cfg(test)]
mod tests {
    use common::clock::ManualClock;
    use common::timestamp::Timestamp;

    use super::*;

    fn clock() -> ManualClock {
        ManualClock::at(Timestamp::from_millis(0))
    }

    fn ended(status: u16, key: Option<u8>) -> Ended {
        let key_id = key.map(|key| format!("3e0b1a8c-1f7a-4b58-8f0b-6c3d2a1e9f{key:02}").parse().unwrap());
        let facts = Facts { key_id, duration: Duration::from_micros(50), ..Facts::default() };
        let kind = Kind { method: "GET".to_owned(), route: None, status, key_id };
        Ended { kind, request_id: None, store: StoreUse::default(), facts }
    }

    /// Returns how many requests each line has that a request makes due.
    fn lines(waiting: &mut Waiting, ended: &Ended, clock: &ManualClock) -> Vec<usize> {
        waiting.add(ended.clone(), clock).iter().map(Vec::len).collect()
    }

    #[test]
    fn the_first_is_logged_at_once_and_those_of_its_second_with_the_next_one() {
        let (clock, mut waiting, request) = (clock(), Waiting::default(), ended(200, Some(1)));
        let logged = [(); 3].map(|()| lines(&mut waiting, &request, &clock));
        assert_eq!(logged, [vec![1], vec![], vec![]]);
        clock.advance(WINDOW);
        let logged = [(); 2].map(|()| lines(&mut waiting, &request, &clock));
        assert_eq!(logged, [vec![3], vec![]]);
    }

    #[test]
    fn none_is_lost_however_many_there_are() {
        let (clock, mut waiting) = (clock(), Waiting::default());
        let logged: Vec<_> = (0..=10 * MOST).flat_map(|_| lines(&mut waiting, &ended(401, None), &clock)).collect();
        assert_eq!((logged[0], &logged[1..]), (1, &[MOST; 10][..]));
    }

    #[test]
    fn requests_of_other_keys_or_with_other_outcomes_have_other_lines() {
        let (clock, mut waiting) = (clock(), Waiting::default());
        let mut other_route = ended(200, Some(1));
        other_route.kind.route = Some("GET /".to_owned());
        let mut other_method = ended(200, Some(1));
        other_method.kind.method = "HEAD".to_owned();
        for other in [ended(200, Some(1)), ended(200, Some(2)), ended(304, Some(1)), other_route, other_method] {
            assert_eq!(lines(&mut waiting, &other, &clock), [1], "{:?}", other.kind);
            assert!(lines(&mut waiting, &other, &clock).is_empty(), "{:?}", other.kind);
        }
        clock.advance(WINDOW);
        let brought = waiting.add(ended(401, None), &clock);
        assert_eq!(brought.iter().map(Vec::len).collect::<Vec<_>>(), [1; 6], "any request brings along what waits");
        assert!(waiting.add(ended(401, None), &clock).is_empty());
        clock.advance(WINDOW);
        waiting.add(ended(401, None), &clock);
        assert_eq!(waiting.0.len(), 1, "it still remembers what has not come for a second");
    }

    #[test]
    fn failed_slow_and_retried_requests_have_lines_of_their_own_at_once() {
        let (clock, mut waiting, fast) = (clock(), Waiting::default(), ended(200, None));
        let mut slow = fast.clone();
        slow.facts.duration = FAST;
        let mut retried = fast.clone();
        retried.store.retries = 1;
        for request in [ended(503, None), slow, retried] {
            assert_eq!([(); 2].map(|()| lines(&mut waiting, &request, &clock)), [[1], [1]], "{}", request.kind.status);
        }
    }
}
