//! Builds functions, gives each what it runs on, and prepares them as Lambda does in their init phase.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use aws_sdk_dynamodb::config::SharedInterceptor;
use common::aws::{Environment, Missing};
use common::clock::Clock;
use common::preflight::Preflight;
use common::runtime::Service;
use futures_util::future::join_all;

use crate::environment::Variables;
use crate::invocations::Invocations;

/// What functions run on. As in Lambda, each function has an environment of its own.
#[derive(Clone)]
pub struct Host {
    variables: Variables,
    environment: Environment,
    clock: Arc<dyn Clock>,
    observer: Option<Arc<dyn UseObserver>>,
    invocations: Invocations,
    /// What functions built so far use.
    checks: Arc<Mutex<Vec<Preflight>>>,
}

/// Observes which variables and AWS calls each function uses, and may refuse them.
pub trait UseObserver: Send + Sync {
    /// Returns the interceptor that sees the calls of a function's clients.
    fn interceptor(self: Arc<Self>, function: &'static str) -> SharedInterceptor;

    /// Returns whether a function has the variable that it asks for.
    fn has_variable(&self, function: &'static str, name: &str) -> bool;
}

impl Host {
    /// Creates a host whose functions have all of these variables.
    pub fn new(variables: &Variables, clock: Arc<dyn Clock>) -> Result<Self, Missing> {
        let environment = Environment::read(&|name| variables.get(name))?;
        Ok(Self::with_environment(variables, environment, clock))
    }

    /// Creates such a host whose functions reach AWS through this environment.
    pub fn with_environment(variables: &Variables, environment: Environment, clock: Arc<dyn Clock>) -> Self {
        Self {
            variables: variables.clone(),
            environment,
            clock,
            observer: None,
            invocations: Invocations::default(),
            checks: Arc::default(),
        }
    }

    /// Lets an observer see what the functions use, and refuse it.
    #[must_use]
    pub fn observed_by(self, observer: Arc<dyn UseObserver>) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Offers the functions that are invoked directly to callers of these, and tells which tables they use.
    #[must_use]
    pub fn invoked_by(self, invocations: &Invocations) -> Self {
        invocations.tell_tables(&self.variables);
        Self { invocations: invocations.clone(), ..self }
    }

    /// Returns where functions are offered that are invoked directly.
    pub fn invocations(&self) -> &Invocations {
        &self.invocations
    }

    /// Builds the function with this name.
    pub fn function<F>(
        &self,
        name: &'static str,
        build: impl FnOnce(&Service<'_>) -> Result<F, Missing>,
    ) -> Result<F, Missing> {
        let is_there =
            |variable: &str| self.observer.as_ref().is_none_or(|observer| observer.has_variable(name, variable));
        let lookup = |variable: &str| self.variables.get(variable).filter(|_| is_there(variable));
        let service = Service::with_environment(self.environment_of(name), &lookup, Arc::clone(&self.clock));
        let function = build(&service)?;
        self.checks.lock().unwrap_or_else(PoisonError::into_inner).push(service.preflight());
        Ok(function)
    }

    /// Returns the checks of what the functions built since the last call use.
    pub fn preflight(&self) -> Vec<Preflight> {
        std::mem::take(&mut self.checks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Checks what the functions built since the last call use, and logs all problems in one line. Unlike in Lambda, a
    /// problem does not stop a function. One that several functions have is named once.
    pub(crate) async fn log_problems(&self) {
        let found = join_all(self.preflight().into_iter().map(Preflight::run)).await;
        let problems: BTreeSet<_> = found.into_iter().flat_map(|found| found.unwrap_or_else(|wrong| wrong.0)).collect();
        if !problems.is_empty() {
            let problems = problems.into_iter().collect::<Vec<_>>().join("; ");
            tracing::error!(problems, "some resources cannot be used");
        }
    }

    /// Builds something that is not a function but a part of the host itself. It is not observed.
    pub fn unobserved<T>(&self, build: impl FnOnce(&Service<'_>) -> Result<T, Missing>) -> Result<T, Missing> {
        let lookup = |variable: &str| self.variables.get(variable);
        build(&Service::with_environment(self.environment.clone(), &lookup, Arc::clone(&self.clock)))
    }

    /// Returns the environment for the AWS calls of a function. As in Lambda, the poller of the function's queue calls
    /// AWS in the function's name.
    pub fn environment_of(&self, function: &'static str) -> Environment {
        let environment = self.environment.clone();
        match &self.observer {
            Some(observer) => environment.watched_by(Arc::clone(observer).interceptor(function)),
            None => environment,
        }
    }

    /// Returns the functions' clock.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.clock)
    }
}

/// Logs why a function could not prepare itself, if so.
pub(crate) fn log_failed_warm_up(warmed: Result<(), String>) {
    if let Err(reason) = warmed {
        tracing::warn!(reason, "a function is not ready yet");
    }
}
