//! Records what the functions of a stack use, and compares it with what the template gives them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use local::host::UseObserver;

use super::FunctionGrant;
use super::needs::needs;
use crate::template::Template;

/// The prefix of the variables that Lambda itself sets.
const LAMBDA_VARIABLE_PREFIX: &str = "AWS_";

/// Records what each function of a stack uses. If a function was refused anything, dropping the ledger fails the
/// test, so no retry or fallback in the function can hide it.
#[derive(Debug, Default)]
pub struct Ledger(Arc<Entries>);

#[derive(Debug, Default)]
struct Entries {
    used: Mutex<BTreeSet<(String, FunctionGrant)>>,
    refusals: Mutex<BTreeSet<String>>,
}

/// Intercepts the AWS calls of one function.
#[derive(Debug)]
struct CallInterceptor {
    function: &'static str,
    entries: Arc<Entries>,
}

impl Ledger {
    /// Returns the observer that writes into this ledger.
    pub fn observer(&self) -> Arc<dyn UseObserver> {
        Arc::clone(&self.0) as _
    }

    /// Returns what the functions have used so far, by function.
    pub fn used(&self) -> BTreeSet<(String, FunctionGrant)> {
        self.0.used.lock().unwrap().clone()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let refusals: Vec<_> = std::mem::take(&mut *self.0.refusals.lock().unwrap()).into_iter().collect();
        assert!(refusals.is_empty() || std::thread::panicking(), "{}", refusals.join("\n"));
    }
}

impl Entries {
    fn record(&self, function: &str, grant: FunctionGrant) -> Result<(), String> {
        let given = Template::read().functions.get(function).map(|function| &function.grants);
        if !given.is_some_and(|given| given.contains(&grant)) {
            return Err(self.refuse(format!("{function} needs {grant}, which template.yaml does not give it")));
        }
        self.used.lock().unwrap().insert((function.to_owned(), grant));
        Ok(())
    }

    fn refuse(&self, refusal: String) -> String {
        if self.refusals.lock().unwrap().insert(refusal.clone()) {
            eprintln!("{refusal}");
        }
        refusal
    }
}

impl UseObserver for Entries {
    fn interceptor(self: Arc<Self>, function: &'static str) -> SharedInterceptor {
        SharedInterceptor::new(CallInterceptor { function, entries: self })
    }

    fn has_variable(&self, function: &'static str, name: &str) -> bool {
        name.starts_with(LAMBDA_VARIABLE_PREFIX)
            || self.record(function, FunctionGrant::Variable(name.to_owned())).is_ok()
    }
}

impl Intercept for CallInterceptor {
    fn name(&self) -> &'static str {
        "Privileges"
    }

    fn read_before_serialization(
        &self,
        call: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let unknown = || self.entries.refuse(format!("no privileges are listed for this call: {:?}", call.input()));
        for privilege in needs(call).ok_or_else(unknown)? {
            self.entries.record(self.function, privilege)?;
        }
        Ok(())
    }
}
