//! Runs a function under Lambda: preflight and preparation before the first event, then one event at a time.

use std::process::ExitCode;
use std::sync::Arc;

use crate::aws::{Lookup, Missing};
use crate::clock::{Clock, SystemClock};
use crate::logging;
use crate::metrics::Meter;
use crate::service::Service;
use futures_util::FutureExt;
use futures_util::future::try_join;
pub use lambda_runtime::Error;
use lambda_runtime::{LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

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
