//! What a function is built from, and how it runs under Lambda.

use std::fmt::Display;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use futures_util::FutureExt;
pub use lambda_http::Error;
use lambda_http::lambda_runtime::{self, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::accounts::Accounts;
use crate::aws::{Environment, Lookup, Missing, Patience, required};
use crate::clock::{Clock, SystemClock};
use crate::http::{Api, Endpoint, Event, Handler};
use crate::keys::Gate;
use crate::market::Market;
use crate::resources::{KEYRING_VARIABLE, Queue, Table};
use crate::webhooks::KeyringCache;
use crate::webhooks::store::WebhookStore;

/// The environment of a function, read once.
pub struct Service<'a> {
    lookup: Lookup<'a>,
    environment: Environment,
    /// The store, with a waiting client's patience.
    pub dynamodb: Client,
    /// The queues' service, with the same patience.
    pub sqs: aws_sdk_sqs::Client,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl<'a> Service<'a> {
    /// Reads the environment.
    pub fn new(lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Result<Self, Missing> {
        Ok(Self::of(Environment::read(lookup)?, lookup, clock))
    }

    /// What a function is built from, with clients of this environment.
    pub fn of(environment: Environment, lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Self {
        let (dynamodb, sqs) = (environment.dynamodb(Patience::Request), environment.sqs(Patience::Request));
        Self { lookup, environment, dynamodb, sqs, clock }
    }

    /// A table's name.
    pub fn table(&self, table: Table) -> Result<String, Missing> {
        let [name] = required(self.lookup, [table.variable()])?;
        Ok(name)
    }

    /// The URLs of queues; all that are missing are named at once.
    pub fn queues<const N: usize>(&self, queues: [Queue; N]) -> Result<[String; N], Missing> {
        required(self.lookup, queues.map(Queue::variable))
    }

    /// The webhooks table.
    pub fn webhooks(&self, patience: Patience) -> Result<WebhookStore, Missing> {
        Ok(WebhookStore::new(self.client(patience), self.table(Table::Webhooks)?))
    }

    /// The keyring that endpoint secrets are sealed with.
    pub fn keyring(&self) -> Result<KeyringCache, Missing> {
        let [name] = required(self.lookup, [KEYRING_VARIABLE])?;
        Ok(KeyringCache::new(self.environment.secrets(Patience::Request), name, Arc::clone(&self.clock)))
    }

    /// The market table.
    pub fn market(&self, patience: Patience) -> Result<Market, Missing> {
        Ok(Market::new(self.client(patience), self.table(Table::Market)?))
    }

    fn client(&self, patience: Patience) -> Client {
        match patience {
            Patience::Request => self.dynamodb.clone(),
            Patience::Bulk => self.environment.dynamodb(patience),
        }
    }

    /// The accounts table.
    pub fn accounts(&self) -> Result<Accounts, Missing> {
        Ok(Accounts::new(self.dynamodb.clone(), self.table(Table::Accounts)?))
    }

    /// An endpoint behind the gate.
    pub fn api<E: Endpoint>(&self, endpoint: E) -> Result<Api<E>, Missing> {
        let gate = Gate::new(self.dynamodb.clone(), self.table(Table::Keys)?, Arc::clone(&self.clock));
        Ok(Api::new(endpoint, gate, Arc::clone(&self.clock)))
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

    /// Prepares the instance before its first event.
    fn warm_up(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// Runs a function of the API under Lambda: everything heavy before the first request, then one request at a
/// time.
pub async fn run<H, E>(build: impl FnOnce(&Service<'_>) -> Result<H, E>) -> Result<(), Error>
where
    H: Handler + 'static,
    E: From<Missing> + Into<Error> + Display,
{
    let handler = start(build)?;
    handler.warm_up().await;
    let handler = &handler;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Event>| async move {
        Ok::<_, Error>(handler.handle(event.payload).await)
    }))
    .await
}

/// The same for a function that a queue or a schedule triggers.
pub async fn run_worker<W, E>(build: impl FnOnce(&Service<'_>) -> Result<W, E>) -> Result<(), Error>
where
    W: Worker,
    E: From<Missing> + Into<Error> + Display,
{
    let worker = start(build)?;
    // Boxed, for what a worker awaits may be large and deep.
    worker.warm_up().boxed().await;
    let worker = &worker;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<W::Event>| worker.work(event.payload).boxed())).await
}

fn start<T, E>(build: impl FnOnce(&Service<'_>) -> Result<T, E>) -> Result<T, Error>
where
    E: From<Missing> + Into<Error> + Display,
{
    crate::logging::to_stdout();
    let lookup = |name: &str| std::env::var(name).ok();
    let service = Service::new(&lookup, Arc::new(SystemClock::new())).map_err(E::from);
    let function = service.and_then(|service| build(&service));
    function.inspect_err(|error| tracing::error!(%error, "cannot start")).map_err(E::into)
}
