//! What goes wrong between clients and AWS: calls that are refused or fail, answers that get lost, and messages that come
//! twice or late.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use crate::server::{Body, full};

/// How late a message comes at most. The delay of a second copy is drawn from twice as much.
pub const MAX_LATE: Duration = Duration::from_secs(30);

/// What goes wrong, as shares of all calls or messages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The calls to DynamoDB and SQS that fail and have no effect.
    pub failed: f64,
    /// Those that have an effect, while their clients are told that they failed.
    pub lost_answers: f64,
    /// The messages to standard queues that are delivered twice.
    pub duplicated: f64,
    /// The messages to standard queues that come late.
    pub late: f64,
    /// Whether DynamoDB refuses every call.
    pub is_throttling: bool,
}

/// Makes things go wrong. At first nothing does.
#[derive(Default)]
pub struct FaultInjector(Mutex<State>);

#[derive(Default)]
struct State {
    faults: Faults,
    random: Rng,
}

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    Throttled,
    Failed,
    AnswerLost,
}

impl FaultInjector {
    /// Lets these faults happen from now on.
    pub fn set(&self, faults: Faults) {
        self.state().faults = faults;
    }

    /// Draws from this seed from now on.
    pub fn seed(&self, seed: u64) {
        self.state().random = Rng::with_seed(seed);
    }

    /// Returns what becomes of a call to this target: a service and an operation.
    pub(super) fn fate(&self, target: &str) -> Fate {
        let State { faults, random } = &mut *self.state();
        let is_dynamodb = target.starts_with("DynamoDB");
        if is_dynamodb && faults.is_throttling {
            return Fate::Throttled;
        }
        if !is_dynamodb && !target.starts_with("AmazonSQS") || faults.failed + faults.lost_answers == 0.0 {
            return Fate::Answered;
        }
        let drawn = random.f64();
        if drawn < faults.failed {
            Fate::Failed
        } else if drawn < faults.failed + faults.lost_answers {
            Fate::AnswerLost
        } else {
            Fate::Answered
        }
    }

    /// Makes messages of a request to a standard queue late. Returns those that are delivered again, each with its
    /// delay in seconds.
    pub(super) fn of_messages(&self, request: &mut Value) -> Vec<(Value, u64)> {
        let State { faults, random } = &mut *self.state();
        let mut again = Vec::new();
        if faults.duplicated + faults.late == 0.0 {
            return again;
        }
        let is_batch = request["Entries"].is_array();
        let messages: Vec<&mut Value> =
            if is_batch { request["Entries"].as_array_mut().into_iter().flatten().collect() } else { vec![request] };
        for message in messages {
            let delay = message["DelaySeconds"].as_u64().unwrap_or_default();
            if random.f64() < faults.duplicated {
                again.push((message["MessageBody"].clone(), delay + random.u64(0..=2 * MAX_LATE.as_secs())));
            }
            if random.f64() < faults.late {
                message["DelaySeconds"] = json!((delay + random.u64(1..=MAX_LATE.as_secs())).min(900));
            }
        }
        again
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fate {
    /// Returns the answer to a call that does not get its own.
    pub(super) fn response(self) -> Response<Body> {
        let (status, name) = match self {
            Self::Throttled => (StatusCode::BAD_REQUEST, "ThrottlingException"),
            _ => (StatusCode::INTERNAL_SERVER_ERROR, "InternalServerError"),
        };
        let mut response = Response::new(full(json!({ "__type": name, "message": "injected" }).to_string()));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-amz-json-1.0"));
        response
    }
}
