//! The pipeline of a request: origin, method, key, scope, budget, input, handler, answer, log line. The first of these
//! that refuses the request decides the answer (specification 7.4.1).

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use tokio::time::{Instant, timeout, timeout_at};

use super::endpoint::{Caller, Endpoint};
use super::error::ApiError;
use super::line::{Facts, cause, log, log_waiting};
use super::origin::Origin;
use super::params;
use super::refusals::Refusals;
use super::reply::{GatewayEvent, JSON, Reply, Response, respond};
use crate::auth::{Gate, Grant, KeyHash, KeyText, Rate, Refused};
use common::clock::Clock;
use common::ids::KeyId;
use common::metrics::Meter;
use common::metrics::ReplicaGauge;
use common::scope::Budget;
use common::store::StoreError;

/// How long a request waits for DynamoDB, so that a 503 leaves within 3 seconds (specification 10.5.1).
const STORE_DEADLINE: Duration = Duration::from_millis(2_600);

/// The longest time that the clean-up of stale counters may add to a request.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_millis(250);

/// A function as its host calls it. The host is API Gateway through Lambda, or the local stack.
pub trait Handler: Send + Sync {
    /// Prepares the instance before its first request. An error says what the first request still has to do.
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

    fn handle(&self, event: GatewayEvent) -> Pin<Box<dyn Future<Output = Response> + Send + '_>>;
}

/// An endpoint behind the gate.
pub struct Api<E> {
    endpoint: E,
    origin: Origin,
    refusals: Refusals,
    gate: Gate,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// The outcome of a request, and what is known about the request by then.
struct Decided {
    outcome: Result<Reply, ApiError>,
    rate: Rate,
    key_id: Option<KeyId>,
    replica: Option<ReplicaGauge>,
    /// Whether it was refused before a key was looked at.
    is_keyless: bool,
}

impl<E: Endpoint> Api<E> {
    /// The endpoint's budget. The compiler evaluates this, so an endpoint whose route has no budget does not compile.
    const BUDGET: Budget = E::ROUTE.budget.expect("an endpoint's route has a budget");

    pub fn new(endpoint: E, origin: Origin, gate: Gate, clock: Arc<dyn Clock>, meter: Arc<Meter>) -> Self {
        Self { endpoint, origin, refusals: Refusals::default(), gate, clock, meter }
    }

    async fn decide(&self, event: &GatewayEvent) -> Decided {
        let now = self.clock.now();
        let refuse = |error| Decided {
            outcome: Err(error),
            rate: Rate::none(now),
            key_id: None,
            replica: None,
            is_keyless: true,
        };
        if let Err(error) = self.origin.check(event) {
            return refuse(error);
        }
        if let Err(error) = check_method(event) {
            return refuse(error);
        }
        let key = match bearer(event) {
            Ok(key) => key.hash(),
            Err(error) => return refuse(error),
        };
        let deadline = Instant::now() + STORE_DEADLINE;
        match self.admit_and_read(event, &key, deadline).await {
            Ok((grant, outcome)) => Decided {
                // A bad request is refused without the replica, so its line does not report the replica's age.
                replica: match &outcome {
                    Ok(_) | Err(ApiError::Unavailable(_)) => self.endpoint.replica(),
                    Err(_) => None,
                },
                outcome: outcome.and_then(|output| reply::<E>(&output)),
                rate: grant.rate,
                key_id: Some(grant.key.key_id),
                is_keyless: false,
            },
            Err(Refused { reason, rate, key_id }) => {
                Decided { outcome: Err(reason.into()), rate, key_id, replica: None, is_keyless: false }
            }
        }
    }

    /// Runs the key write and, if caller and input are already known, the read at the same time. With a key that this
    /// instance has never admitted, the read waits for the key write: such a key may be invented, and must cost no more.
    ///
    /// The outcome of the read is returned only if the key write succeeds, and only if the read was made for the
    /// caller that the key write names. Otherwise the read runs after the key write, for that caller.
    async fn admit_and_read(
        &self,
        event: &GatewayEvent,
        key: &KeyHash,
        deadline: Instant,
    ) -> Result<(Grant, Result<E::Output, ApiError>), Refused> {
        let path: Vec<_> = event.path_parameters.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        let input = params::parse::<E::Input>(&path, event.raw_query_string.as_deref().unwrap_or(""));
        let foreseen = self.gate.remembered_user(key, Self::BUDGET).and_then(E::Caller::foreseen);

        let mut admit = pin!(timeout_at(deadline, self.gate.admit(key, Self::BUDGET)));
        let ahead = foreseen.clone().zip(input.as_ref().ok().cloned());
        let mut ahead = pin!(async {
            match ahead {
                Some((caller, input)) => Some(self.read(caller, input, deadline).await),
                None => None,
            }
        });
        let mut read_ahead = None;
        let verdict = loop {
            tokio::select! {
                // The key write comes first: if a refusal is repeated from memory, the read is never sent.
                biased;
                verdict = &mut admit => break verdict,
                read = &mut ahead, if read_ahead.is_none() => read_ahead = Some(read),
            }
        };
        let too_late = |_| Refused::without_budget(StoreError::Unavailable(late("key write")).into(), self.clock.now());
        let grant = verdict.map_err(too_late)??;
        let input = match input {
            Ok(input) => input,
            Err(problems) => return Ok((grant, Err(ApiError::Invalid(problems)))),
        };
        let caller = E::Caller::authorised(&grant.key);
        let read = async {
            if foreseen.as_ref() != Some(&caller) {
                return self.read(caller, input, deadline).await;
            }
            let read = match read_ahead {
                Some(read) => read,
                None => ahead.await,
            };
            read.unwrap_or_else(|| Err(ApiError::Internal("nothing was read ahead".to_owned())))
        };
        let clean_up = async {
            if !grant.stale.is_empty() {
                // The clean-up is optional, so a slow one must not delay the response.
                let _ = timeout(CLEAN_UP_TIMEOUT, self.gate.clean_up(key, &grant.stale)).await;
            }
        };
        let (outcome, ()) = tokio::join!(read, clean_up);
        Ok((grant, outcome))
    }

    async fn read(&self, caller: E::Caller, input: E::Input, deadline: Instant) -> Result<E::Output, ApiError> {
        let read = timeout_at(deadline, self.endpoint.read(caller, input)).await;
        read.unwrap_or_else(|_| Err(ApiError::Unavailable(late("read"))))
    }
}

fn late(what: &str) -> String {
    format!("the {what} took longer than {STORE_DEADLINE:?}")
}

fn reply<E: Endpoint>(output: &E::Output) -> Result<Reply, ApiError> {
    let body = serde_json::to_vec(output).map_err(|error| ApiError::Internal(error.to_string()))?;
    Ok(Reply { body, content_type: JSON, cache: E::ROUTE.cache, state: E::state(output), headers: HeaderMap::new() })
}

impl<E: Endpoint> Handler for Api<E> {
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>> {
        Box::pin(self.endpoint.warm_up())
    }

    fn handle(&self, event: GatewayEvent) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            let started = self.clock.monotonic();
            let Decided { outcome, rate, key_id, replica, is_keyless } = self.decide(&event).await;
            let cause = cause(&outcome);
            let response = respond(&event, outcome, rate, Some(Self::BUDGET));
            let duration = self.clock.monotonic().saturating_sub(started);
            let refusals = if is_keyless { self.refusals.note(duration, &*self.clock) } else { Vec::new() };
            if !is_keyless || !refusals.is_empty() {
                log(&self.meter, &event, &response, &Facts { key_id, cause, duration, replica, refusals });
            }
            log_waiting(&self.meter, &self.refusals.take_due(&*self.clock));
            response
        })
    }
}

/// Refuses methods other than `GET` and `HEAD`. A client needs no key to be told so.
pub fn check_method(event: &GatewayEvent) -> Result<(), ApiError> {
    let method = &event.request_context.http.method;
    if method == Method::GET || method == Method::HEAD {
        Ok(())
    } else {
        Err(ApiError::MethodNotAllowed(method.to_string()))
    }
}

/// Reads the key from `Authorization: Bearer <key>` (RFC 6750, section 2.1). A malformed key costs no call to DynamoDB.
fn bearer(event: &GatewayEvent) -> Result<KeyText, ApiError> {
    let value = event.headers.get(AUTHORIZATION).ok_or(ApiError::KeyMissing)?.as_bytes().trim_ascii();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(ApiError::KeyMissing);
    }
    let token = std::str::from_utf8(token.trim_ascii()).ok();
    token.and_then(KeyText::parse).ok_or(ApiError::KeyInvalid)
}
