//! The pipeline of a request: origin, method, key, scope, budget, input, handler, answer, log line. The first of these
//! that refuses the request decides the answer (specification 7.4.1).
//!
//! An endpoint declares what differs, and the pipeline does everything else. A function of the API runs it under Lambda.

use std::future::Future;
use std::pin::{Pin, pin};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use common::aws::Missing;
use common::clock::{Clock, MAX_STALENESS, Moment};
use common::ids::{KeyId, UserId};
use common::runtime::{Error, Service, Worker};
use common::scope::Budget;
use common::store::StoreError;
use http::header::AUTHORIZATION;
use http::{HeaderMap, Method};
use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpResponse;
use lambda_http::aws_lambda_events::query_map::QueryMap;
use serde::Serialize;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout, timeout_at};

use crate::auth::{Gate, Grant, KeyHash, KeyRecord, KeyText, Rate, Refused};
use crate::error::ApiError;
use crate::gateway::{Event, Request, RequestExt, Response, answer};
use crate::line::{Facts, RequestLog, cause};
use crate::origin::Origin;
use crate::params;
use crate::params::Input;
use crate::reply::{JSON, Reply, State, respond};
use crate::routes::Route;

/// One `GET` of the API.
pub trait Endpoint: Send + Sync + 'static {
    /// The route that the endpoint answers. It has a budget.
    const ROUTE: Route;
    /// Whom the answer depends on.
    type Caller: Caller;
    /// Parameters of path and query.
    type Input: Input;
    /// The body of a 200.
    type Output: Serialize + Send;

    /// Reads the answer. This may run at the same time as the key write, and the answer leaves only if that succeeds.
    fn read(
        &self,
        caller: Self::Caller,
        input: Self::Input,
    ) -> impl Future<Output = Result<Self::Output, ApiError>> + Send;

    /// Returns what the headers of an answer say about the state that it was made from.
    fn state(_: &Self::Output) -> State {
        State::Untold
    }

    /// Returns for how long the replica that answers come from may have been out of date, if they come from one.
    fn replica_age(&self) -> Option<Duration> {
        None
    }

    /// Prepares the instance before its first request. An error says what the first request still has to do.
    fn warm_up(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }
}

/// Whom an answer depends on. Some callers are known before the key write has answered.
pub trait Caller: Clone + PartialEq + Send + Sync {
    /// Returns the caller, if it is known before the key write. `remembered` is the user of a key that this instance has
    /// admitted before. For any other key nothing is read before the key write has answered.
    fn foreseen(remembered: UserId) -> Option<Self>;

    /// Returns the caller that the key write has authorised.
    fn authorised(key: &KeyRecord) -> Self;
}

/// The answer is the same for everyone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anyone;

impl Caller for Anyone {
    fn foreseen(_: UserId) -> Option<Self> {
        Some(Self)
    }

    fn authorised(_: &KeyRecord) -> Self {
        Self
    }
}

/// The answer belongs to the key's user, who never changes.
impl Caller for UserId {
    fn foreseen(remembered: UserId) -> Option<Self> {
        Some(remembered)
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.user_id
    }
}

/// The answer shows the key itself, as only the key write returns it.
impl Caller for KeyRecord {
    fn foreseen(_: UserId) -> Option<Self> {
        None
    }

    fn authorised(key: &KeyRecord) -> Self {
        key.clone()
    }
}

/// How long a request waits for DynamoDB, so that a 503 leaves within 3 seconds (specification 10.5.1).
const STORE_DEADLINE: Duration = Duration::from_millis(2_600);

/// The longest time that the clean-up of stale counters may add to a request.
const CLEAN_UP_TIMEOUT: Duration = Duration::from_millis(250);

/// A function as its host calls it. The host is API Gateway through Lambda, or the local stack.
pub trait Handler: Send + Sync {
    /// Prepares the instance before its first request. An error says what the first request still has to do.
    fn warm_up(&self) -> Pin<Box<dyn Future<Output = Result<(), String>> + Send + '_>>;

    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>>;
}

/// An endpoint behind the gate.
pub struct Api<E> {
    endpoint: E,
    origin: Origin,
    gate: Gate,
    log: RequestLog,
    clock: Arc<dyn Clock>,
}

/// The outcome of a request, and what is known about the request by then.
struct Decided {
    outcome: Result<Reply, ApiError>,
    rate: Rate,
    key_id: Option<KeyId>,
    replica_age: Option<Duration>,
}

impl<E: Endpoint> Api<E> {
    /// The endpoint's budget. The compiler evaluates this, so an endpoint whose route has no budget does not compile.
    const BUDGET: Budget = E::ROUTE.budget.expect("an endpoint's route has a budget");

    pub fn new(endpoint: E, origin: Origin, gate: Gate, log: RequestLog, clock: Arc<dyn Clock>) -> Self {
        Self { endpoint, origin, gate, log, clock }
    }

    async fn decide(&self, request: &Request) -> Decided {
        let now = self.clock.now();
        let refuse = |error| Decided { outcome: Err(error), rate: Rate::none(now), key_id: None, replica_age: None };
        if let Err(error) = self.origin.check(request) {
            return refuse(error);
        }
        if let Err(error) = check_method(request) {
            return refuse(error);
        }
        let key = match bearer(request) {
            Ok(key) => key.hash(),
            Err(error) => return refuse(error),
        };
        let deadline = Instant::now() + STORE_DEADLINE;
        match self.admit_and_read(request, &key, deadline).await {
            Ok((grant, outcome)) => Decided {
                // A bad request is refused without the replica, so its line does not report the replica's age.
                replica_age: match &outcome {
                    Ok(_) | Err(ApiError::Unavailable(_)) => self.endpoint.replica_age(),
                    Err(_) => None,
                },
                outcome: outcome.and_then(|output| reply::<E>(&output)),
                rate: grant.rate,
                key_id: Some(grant.key.key_id),
            },
            Err(Refused { reason, rate, key_id }) => {
                Decided { outcome: Err(reason.into()), rate, key_id, replica_age: None }
            }
        }
    }

    /// Runs the key write and, if caller and input are already known, the read at the same time. If this instance has
    /// never admitted the key, the read waits for the key write: the key may not exist, and then a read is wasted.
    ///
    /// The outcome of the read is returned only if the key write succeeds, and only if the read was made for the
    /// caller that the key write names. Otherwise the read runs after the key write, for that caller.
    async fn admit_and_read(
        &self,
        request: &Request,
        key: &KeyHash,
        deadline: Instant,
    ) -> Result<(Grant, Result<E::Output, ApiError>), Refused> {
        let path = request.path_parameters_ref().into_iter().flat_map(QueryMap::iter);
        let path: Vec<_> = path.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let input = params::parse::<E::Input>(&path, request.uri().query().unwrap_or_default());
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
        let too_late =
            |_: Elapsed| Refused::without_budget(StoreError::Unavailable(late("key write")).into(), self.clock.now());
        let grant = verdict.map_err(too_late)??;
        let input = match input {
            Ok(input) => input,
            Err(problems) => return Ok((grant, Err(ApiError::Invalid(problems)))),
        };
        let caller = E::Caller::authorised(&grant.key);
        let read = async {
            if foreseen.as_ref() != Some(&caller) {
                return self.read(caller.clone(), input.clone(), deadline).await;
            }
            let read = match read_ahead {
                Some(read) => read,
                None => ahead.await,
            };
            let nothing = || (Err(ApiError::Internal("nothing was read ahead".to_owned())), Moment::now(&*self.clock));
            read.unwrap_or_else(nothing)
        };
        let clean_up = async {
            if !grant.stale.is_empty() {
                // The clean-up is optional, so a slow one must not delay the response.
                let _ = timeout(CLEAN_UP_TIMEOUT, self.gate.clean_up(key, &grant.stale)).await;
            }
        };
        let ((mut outcome, as_of), ()) = tokio::join!(read, clean_up);
        // What was read ahead may have become old while the key write took its time.
        if !as_of.is_within(MAX_STALENESS, &*self.clock) {
            (outcome, _) = self.read(caller, input, deadline).await;
        }
        Ok((grant, outcome))
    }

    /// Reads the answer. Also returns as of when it is.
    async fn read(
        &self,
        caller: E::Caller,
        input: E::Input,
        deadline: Instant,
    ) -> (Result<E::Output, ApiError>, Moment) {
        let read = timeout_at(deadline, self.endpoint.read(caller, input)).await;
        let outcome = read.unwrap_or_else(|_| Err(ApiError::Unavailable(late("read"))));
        let as_of = outcome.as_ref().ok().and_then(|output| E::state(output).as_of());
        (outcome, as_of.unwrap_or_else(|| Moment::now(&*self.clock)))
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

    fn handle(&self, request: Request) -> Pin<Box<dyn Future<Output = Response> + Send + '_>> {
        Box::pin(async move {
            let started = self.clock.monotonic();
            let Decided { outcome, rate, key_id, replica_age } = self.decide(&request).await;
            let cause = cause(&outcome);
            let response = respond(&request, outcome, rate, Some(Self::BUDGET));
            let duration = self.clock.monotonic().saturating_sub(started);
            self.log.add(&request, &response, Facts { key_id, cause, duration, replica_age });
            response
        })
    }
}

/// Refuses methods other than `GET` and `HEAD`. A client needs no key to be told so.
pub fn check_method(request: &Request) -> Result<(), ApiError> {
    let method = request.method();
    if method == Method::GET || method == Method::HEAD {
        Ok(())
    } else {
        Err(ApiError::MethodNotAllowed(method.to_string()))
    }
}

/// Reads the key from `Authorization: Bearer <key>` (RFC 6750, section 2.1). A malformed key costs no call to DynamoDB.
fn bearer(request: &Request) -> Result<KeyText, ApiError> {
    let value = request.headers().get(AUTHORIZATION).ok_or(ApiError::KeyMissing)?.as_bytes().trim_ascii();
    let end = value.iter().position(u8::is_ascii_whitespace).unwrap_or(value.len());
    let (scheme, token) = value.split_at(end);
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Err(ApiError::KeyMissing);
    }
    let token = std::str::from_utf8(token.trim_ascii()).ok();
    token.and_then(KeyText::parse).ok_or(ApiError::KeyInvalid)
}

impl<E: Endpoint> Api<E> {
    /// Puts an endpoint behind the gate, which needs the keys table.
    pub fn from_service(service: &Service<'_>, endpoint: E) -> Result<Self, Missing> {
        let gate = Gate::from_service(service)?;
        let (origin, log) = (Origin::from_service(service), RequestLog::from_service(service));
        Ok(Self::new(endpoint, origin, gate, log, Arc::clone(&service.clock)))
    }
}

/// Runs a function of the API under Lambda.
pub async fn run<H, E>(build: impl FnOnce(&Service<'_>) -> Result<H, E>) -> ExitCode
where
    H: Handler + 'static,
    E: From<Missing> + Into<Error>,
{
    common::runtime::run(|service| build(service).map(|handler| Requests(Arc::new(handler)))).await
}

/// A handler, as a worker that the gateway triggers.
pub struct Requests(pub Arc<dyn Handler>);

impl Worker for Requests {
    type Event = Event;
    type Response = ApiGatewayV2httpResponse;

    async fn work(&self, event: Event) -> Result<ApiGatewayV2httpResponse, Error> {
        Ok(answer(self.0.handle(event.try_into()?).await))
    }

    async fn warm_up(&self) -> Result<(), String> {
        self.0.warm_up().await
    }
}
