//! What a function is built from, and how it runs under Lambda.

use std::cell::{OnceCell, RefCell};
use std::process::ExitCode;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
pub use lambda_http::Error;
use lambda_http::lambda_runtime::{self, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::accounts::Accounts;
use crate::aws::{Environment, Lookup, Missing, Patience, required};
use crate::clock::{Clock, SystemClock};
use crate::http::{Api, Endpoint, Handler};
use crate::keys::Gate;
use crate::logging;
use crate::look::{self, Ask, Kind, Looks};
use crate::market::Market;
use crate::metrics::Meter;
use crate::resources::{KEYRING_VARIABLE, Queue, Table};
use crate::webhooks::KeyringCache;
use crate::webhooks::store::WebhookStore;

/// The environment of a function, read once. Clients are made when they are asked for, so that a function's
/// binary holds the code of those alone that it uses.
pub struct Service<'a> {
    lookup: Lookup<'a>,
    environment: Environment,
    dynamodb: OnceCell<Client>,
    sqs: OnceCell<aws_sdk_sqs::Client>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What the function's metrics are made with.
    pub meter: Arc<Meter>,
    /// What was asked for.
    looks: RefCell<Looks>,
}

impl<'a> Service<'a> {
    /// Reads the environment.
    pub fn new(lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Result<Self, Missing> {
        Ok(Self::of(Environment::read(lookup)?, lookup, clock))
    }

    /// What a function is built from, with clients of this environment.
    pub fn of(environment: Environment, lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Self {
        let meter = Arc::new(Meter::of(lookup));
        let environment = match meter.interceptor() {
            Some(interceptor) => environment.watched_by(interceptor),
            None => environment,
        };
        let (dynamodb, sqs, looks) = (OnceCell::new(), OnceCell::new(), RefCell::default());
        Self { lookup, environment, dynamodb, sqs, clock, meter, looks }
    }

    /// The store, with a waiting client's patience.
    pub fn dynamodb(&self) -> Client {
        self.dynamodb.get_or_init(|| self.environment.dynamodb(Patience::Request)).clone()
    }

    /// The queues' service, with the same patience.
    pub fn sqs(&self) -> aws_sdk_sqs::Client {
        self.sqs.get_or_init(|| self.environment.sqs(Patience::Request)).clone()
    }

    /// What was asked for so far, to be looked at.
    pub fn looks(&self) -> Looks {
        self.looks.take()
    }

    /// The URLs of queues; all that are missing are named at once.
    pub fn queues<const N: usize>(&self, queues: [Queue; N]) -> Result<[String; N], Missing> {
        let urls = required(self.lookup, queues.map(Queue::variable))?;
        for url in &urls {
            let name = url.rsplit('/').next().unwrap_or_default();
            self.looks.borrow_mut().at(Kind::Queue, name, look::queue(&self.sqs(), url));
        }
        Ok(urls)
    }

    /// The webhooks table.
    pub fn webhooks(&self, patience: Patience, ask: Ask) -> Result<WebhookStore, Missing> {
        let client = self.client(patience);
        let table = self.table(Table::Webhooks, &client, ask)?;
        Ok(WebhookStore::new(client, table))
    }

    /// The keyring that endpoint secrets are sealed with.
    pub fn keyring(&self) -> Result<KeyringCache, Missing> {
        let [name] = required(self.lookup, [KEYRING_VARIABLE])?;
        let secrets = self.environment.secrets(Patience::Request);
        let keyring = KeyringCache::new(secrets, name.clone(), Arc::clone(&self.clock));
        let read = keyring.clone();
        self.looks.borrow_mut().at(Kind::Secret, &name, async move { read.warm_up().await }.boxed());
        Ok(keyring)
    }

    /// The market table.
    pub fn market(&self, patience: Patience, ask: Ask) -> Result<Market, Missing> {
        let client = self.client(patience);
        let table = self.table(Table::Market, &client, ask)?;
        Ok(Market::new(client, table))
    }

    /// The accounts table.
    pub fn accounts(&self) -> Result<Accounts, Missing> {
        let client = self.dynamodb();
        let table = self.table(Table::Accounts, &client, look::get)?;
        Ok(Accounts::new(client, table))
    }

    /// An endpoint behind the gate.
    pub fn api<E: Endpoint>(&self, endpoint: E) -> Result<Api<E>, Missing> {
        let client = self.dynamodb();
        let table = self.table(Table::Keys, &client, look::update)?;
        let gate = Gate::new(client, table, Arc::clone(&self.clock));
        Ok(Api::new(endpoint, gate, Arc::clone(&self.clock), Arc::clone(&self.meter)))
    }

    fn client(&self, patience: Patience) -> Client {
        match patience {
            Patience::Request => self.dynamodb(),
            Patience::Bulk => self.environment.dynamodb(patience),
        }
    }

    /// A table's name.
    fn table(&self, table: Table, client: &Client, ask: Ask) -> Result<String, Missing> {
        let [name] = required(self.lookup, [table.variable()])?;
        self.looks.borrow_mut().at(Kind::Table, &name, ask(client, name.clone()));
        Ok(name)
    }
}

/// A function that a queue or a schedule triggers.
pub trait Worker: Send + Sync + 'static {
    /// What triggers it.
    type Event: DeserializeOwned + Send + 'static;
    /// What the trigger is told.
    type Response: Serialize + Send + 'static;

    /// Does the work of one event. After an error, as after a crash, the same event may come again.
    fn work(&self, event: Self::Event) -> impl Future<Output = Result<Self::Response, Error>> + Send;

    /// Prepares the instance before its first event. An error tells what is left to the first event.
    fn warm_up(&self) -> impl Future<Output = Result<(), String>> + Send {
        async { Ok(()) }
    }
}

/// Runs a function of the API under Lambda: everything heavy before the first request, then one request at a
/// time.
pub async fn run<H, E>(build: impl FnOnce(&Service<'_>) -> Result<H, E>) -> ExitCode
where
    H: Handler + 'static,
    E: From<Missing> + Into<Error>,
{
    let Some((handler, meter)) = start(build, H::warm_up).await else { return ExitCode::FAILURE };
    let (handler, meter) = (&handler, &*meter);
    ended(
        lambda_runtime::run(service_fn(move |event| async move {
            let event = begin(meter, event)?;
            Ok::<_, Error>(handler.handle(event).await)
        }))
        .await,
    )
}

/// The same for a function that a queue or a schedule triggers.
pub async fn run_worker<W, E>(build: impl FnOnce(&Service<'_>) -> Result<W, E>) -> ExitCode
where
    W: Worker,
    E: From<Missing> + Into<Error>,
{
    // Boxed, for what a worker awaits may be large and deep.
    let started = start(build, |worker: &W| worker.warm_up().boxed()).await;
    let Some((worker, meter)) = started else { return ExitCode::FAILURE };
    let (worker, meter) = (&worker, &*meter);
    ended(
        lambda_runtime::run(service_fn(move |event| {
            async move {
                let event = begin(meter, event)?;
                worker.work(event).await
            }
            .boxed()
        }))
        .await,
    )
}

/// What is counted and logged from here on belongs to this invocation. Its event is read here, since what the runtime
/// cannot read it logs, and a header may be a key: the error tells where the event breaks, and not what stands there.
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

/// The function, ready for its first event. What is wrong with its environment goes to the log in one line.
async fn start<T, E>(
    build: impl FnOnce(&Service<'_>) -> Result<T, E>,
    warm_up: impl FnOnce(&T) -> BoxFuture<'_, Result<(), String>>,
) -> Option<(T, Arc<Meter>)>
where
    E: From<Missing> + Into<Error>,
{
    let lookup = |name: &str| std::env::var(name).ok();
    logging::to_stdout(&lookup);
    match ready(&lookup, build, warm_up).await {
        Ok(started) => Some(started),
        Err(error) => {
            tracing::error!(error, "cannot start");
            None
        }
    }
}

/// Builds the function, and looks at what it uses while it prepares itself.
async fn ready<T, E>(
    lookup: Lookup<'_>,
    build: impl FnOnce(&Service<'_>) -> Result<T, E>,
    warm_up: impl FnOnce(&T) -> BoxFuture<'_, Result<(), String>>,
) -> Result<(T, Arc<Meter>), Error>
where
    E: From<Missing> + Into<Error>,
{
    let (function, meter, looks) = {
        let service = Service::new(lookup, Arc::new(SystemClock::new())).map_err(|missing| E::from(missing).into())?;
        (build(&service).map_err(E::into)?, Arc::clone(&service.meter), service.looks())
    };
    let (mut passing, warmed) = tokio::try_join!(looks.look(), warm_up(&function).map(Ok))?;
    passing.extend(warmed.err());
    if !passing.is_empty() {
        tracing::warn!(problems = passing.join("; "), "not ready yet");
    }
    Ok((function, meter))
}

fn ended(outcome: Result<(), Error>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error, "the runtime has ended");
            ExitCode::FAILURE
        }
    }
}
