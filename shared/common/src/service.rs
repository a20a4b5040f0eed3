//! What a function is built from: clients, clock and meter. It notes what the function asks for, so that no resource is
//! left unchecked before the first event.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use crate::clock::Clock;
use aws_sdk_dynamodb::Client;

use super::aws::{Environment, Lookup, Missing, Patience, required};
use super::metrics::Meter;
use super::preflight::{Preflight, Probe, ProbeFuture, ResourceKind};
use super::resources::Table;

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
