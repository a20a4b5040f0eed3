//! What a function is built from, and how it runs under Lambda.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
pub use lambda_http::Error;
use lambda_http::lambda_runtime::{self, LambdaEvent, service_fn};

use crate::accounts::Accounts;
use crate::aws::{Environment, Lookup, Missing, Patience, required};
use crate::clock::{Clock, SystemClock};
use crate::http::{Api, Endpoint, Event, Handler};
use crate::keys::Gate;
use crate::market::Market;
use crate::resources::Table;

/// The environment of a function, read once.
pub struct Service<'a> {
    lookup: Lookup<'a>,
    /// The store, with a waiting client's patience.
    pub dynamodb: Client,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl<'a> Service<'a> {
    /// Reads the environment.
    pub fn new(lookup: Lookup<'a>, clock: Arc<dyn Clock>) -> Result<Self, Missing> {
        let dynamodb = Environment::read(lookup)?.dynamodb(Patience::Request);
        Ok(Self { lookup, dynamodb, clock })
    }

    /// A table's name.
    pub fn table(&self, table: Table) -> Result<String, Missing> {
        let [name] = required(self.lookup, [table.variable()])?;
        Ok(name)
    }

    /// The market table.
    pub fn market(&self) -> Result<Market, Missing> {
        Ok(Market::new(self.dynamodb.clone(), self.table(Table::Market)?))
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

/// Runs a function under Lambda: everything heavy before the first request, then one request at a time.
pub async fn run<H: Handler + 'static>(build: impl FnOnce(&Service<'_>) -> Result<H, Missing>) -> Result<(), Error> {
    crate::logging::to_stdout();
    let lookup = |name: &str| std::env::var(name).ok();
    let handler = Service::new(&lookup, Arc::new(SystemClock::new())).and_then(|service| build(&service));
    let handler = handler.inspect_err(|missing| tracing::error!(%missing, "cannot start"))?;
    handler.warm_up().await;
    let handler = &handler;
    lambda_runtime::run(service_fn(move |event: LambdaEvent<Event>| async move {
        Ok::<_, Error>(handler.handle(event.payload).await)
    }))
    .await
}
