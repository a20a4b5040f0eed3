//! Runs a function under Lambda: preflight and preparation before the first event, then one event at a time. A
//! function is built from a [`Service`], which notes every resource that it asks for. So no resource is left unchecked.

use std::cell::{OnceCell, RefCell};
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use futures_util::FutureExt;
use futures_util::future::try_join;
pub use lambda_runtime::Error;
use lambda_runtime::{LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::aws::{Environment, Lookup, Missing, Patience, required};
use crate::clock::{Clock, SystemClock};
use crate::logging;
use crate::metrics::Meter;
use crate::preflight::{Preflight, Probe, ProbeFuture, ResourceKind};
use crate::resources::Table;

/// A function, whatever triggers it: the gateway, a queue or a schedule.
pub trait Worker: Send + Sync + 'static {
    /// What triggers it.
    type Event: DeserializeOwned + Send + 'static;
    /// What the trigger gets back.
    type Response: Serialize + Send + 'static;

    /// Does the work of one event. After an error, as after a crash, the same event may come again.
    fn work(&self, event: Self::Event) -> impl Future<Output = Result<Self::Response, Error>> + Send;

    /// Prepares the instance before its first event. An error says what the first event still has to do.
    fn warm_up(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }
}

/// Does a part of an invocation's work. Returns `None` if it panicked, which the panic hook has logged. Without this, a
/// panic ends the invocation, and what the other parts were doing.
pub async fn catch_panic<T>(part: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(part).catch_unwind().await.ok()
}

/// Returns whether the event of a schedule names no rule. No rule has sent such an event, so nothing is to be done.
pub fn names_no_rule(event: &Value) -> bool {
    event["resources"].as_array().is_some_and(Vec::is_empty)
}

/// Runs a function under Lambda. Everything heavy happens before the first event. Then events are handled one at a
/// time.
pub async fn run<W, E>(build: impl FnOnce(&Service<'_>) -> Result<W, E>) -> ExitCode
where
    W: Worker,
    E: From<Missing> + Into<Error>,
{
    let lookup = |name: &str| std::env::var(name).ok();
    logging::to_stdout(&lookup);
    let (worker, meter) = match start(&lookup, build).await {
        Ok(started) => started,
        Err(error) => {
            tracing::error!(error, "cannot start");
            return ExitCode::FAILURE;
        }
    };
    let (worker, meter) = (&worker, &*meter);
    let ended = lambda_runtime::run(service_fn(move |event| {
        async move {
            let event = begin(meter, event)?;
            worker.work(event).await
        }
        .boxed()
    }));
    match ended.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error, "the runtime has ended");
            ExitCode::FAILURE
        }
    }
}

/// Builds the function, then checks the resources that it uses while it prepares itself. The error says everything that
/// is wrong, in one line.
async fn start<W, E>(
    lookup: Lookup<'_>,
    build: impl FnOnce(&Service<'_>) -> Result<W, E>,
) -> Result<(W, Arc<Meter>), Error>
where
    W: Worker,
    E: From<Missing> + Into<Error>,
{
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let (worker, meter, preflight) = {
        let service = Service::new(lookup, Arc::clone(&clock)).map_err(|missing| E::from(missing).into())?;
        (build(&service).map_err(E::into)?, Arc::clone(&service.meter), service.preflight())
    };
    let (mut passing, warmed) = try_join(preflight.run(), worker.warm_up().boxed().map(Ok)).await?;
    passing.extend(warmed.err());
    if !passing.is_empty() {
        tracing::warn!(problems = passing.join("; "), "not ready yet");
    }
    meter.started(clock.monotonic());
    Ok((worker, meter))
}

/// Begins an invocation: everything counted and logged from here on belongs to it.
///
/// The event is parsed here and not by the runtime. The runtime logs an event that it cannot parse, and a header of the
/// event may hold a key. The error here says where the event is broken, but not what is there.
fn begin<T: DeserializeOwned>(meter: &Meter, event: LambdaEvent<Box<RawValue>>) -> Result<T, Error> {
    let LambdaEvent { payload, context } = event;
    meter.begin();
    logging::set_invocation(&context.request_id, context.xray_trace_id.as_deref());
    serde_json::from_str(payload.get()).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        tracing::error!(line, column, "the event cannot be read");
        format!("the event cannot be read: line {line}, column {column}").into()
    })
}

/// The environment of a function, read once. AWS clients are made when a function asks for them, so its binary contains
/// only the code of those that it uses.
pub struct Service<'a> {
    lookup: Lookup<'a>,
    environment: Environment,
    /// The DynamoDB client for requests: see [`Patience::Request`].
    dynamodb: OnceCell<Client>,
    pub clock: Arc<dyn Clock>,
    pub meter: Arc<Meter>,
    /// The checks of every resource that was asked for.
    preflight: RefCell<Preflight>,
}

impl<'a> Service<'a> {
    /// Reads the environment variables.
    pub fn new(lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Result<Self, Missing> {
        Ok(Self::with_environment(Environment::read(lookup)?, lookup, clock))
    }

    /// Makes a service from an environment that was already read.
    pub fn with_environment(environment: Environment, lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Self {
        let meter = Arc::new(Meter::from_environment(lookup));
        let environment = match meter.interceptor() {
            Some(interceptor) => environment.watched_by(interceptor),
            None => environment,
        };
        Self { lookup, environment, dynamodb: OnceCell::new(), clock, meter, preflight: RefCell::default() }
    }

    /// Returns the environment, which clients of other AWS services are made from.
    pub const fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Reads variables that must be set. If several are missing, the error names all of them at once.
    pub fn variables<const N: usize>(&self, names: [&'static str; N]) -> Result<[String; N], Missing> {
        required(self.lookup, names)
    }

    /// Reads a variable that Lambda sets, and that is absent elsewhere.
    pub fn lambda_variable(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// Returns a DynamoDB client and a table's name, and notes that `probe` is to check the table.
    pub fn table(&self, table: Table, patience: Patience, probe: Probe) -> Result<(Client, String), Missing> {
        let client = match patience {
            Patience::Request => self.dynamodb.get_or_init(|| self.environment.dynamodb(patience)).clone(),
            Patience::Bulk => self.environment.dynamodb(patience),
        };
        let [name] = self.variables([table.variable()])?;
        let (probed, table) = (client.clone(), name.clone());
        self.check(ResourceKind::Table, &name, move || probe(&probed, table.clone()));
        Ok((client, name))
    }

    /// Notes that a resource is to be checked before the first event, and how.
    pub fn check(&self, kind: ResourceKind, name: &str, probe: impl Fn() -> ProbeFuture + Send + Sync + 'static) {
        self.preflight.borrow_mut().add(kind, name, probe);
    }

    /// Builds a part of the function whose resources it can start without. Problems of these resources are logged at the
    /// start. What needs them then fails by itself.
    pub fn optionally<T>(&self, build: impl FnOnce(&Self) -> T) -> T {
        let required = self.preflight.take();
        let part = build(self);
        let optional = self.preflight.replace(required);
        self.preflight.borrow_mut().add_optional(optional);
        part
    }

    /// Takes the checks of every resource that was asked for so far.
    pub fn preflight(&self) -> Preflight {
        self.preflight.take()
    }
}
