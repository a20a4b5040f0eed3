//! What the functions of a stack make use of, held against what the template gives them.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::BeforeSerializationInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents, SharedInterceptor};
use aws_sdk_dynamodb::error::BoxError;
use local::host::Watch;

use super::Grant;
use super::needs::needs;
use crate::template::Template;

/// The variables that Lambda itself sets begin so.
const LAMBDAS_OWN: &str = "AWS_";

/// What the functions of a stack, by their names, make use of. If they were refused anything, the test fails
/// when this is dropped: no retry and no fallback of theirs can hide it.
#[derive(Debug, Default)]
pub struct Ledger(Arc<Books>);

#[derive(Debug, Default)]
struct Books {
    used: Mutex<BTreeSet<(String, Grant)>>,
    refusals: Mutex<BTreeSet<String>>,
}

/// Sees the calls of a function.
#[derive(Debug)]
struct Calls {
    function: &'static str,
    books: Arc<Books>,
}

impl Ledger {
    /// Who keeps it.
    pub fn watch(&self) -> Arc<dyn Watch> {
        Arc::clone(&self.0) as _
    }

    /// What functions have made use of so far.
    pub fn used(&self) -> BTreeSet<(String, Grant)> {
        self.0.used.lock().unwrap().clone()
    }
}

impl Drop for Ledger {
    fn drop(&mut self) {
        let refusals: Vec<_> = std::mem::take(&mut *self.0.refusals.lock().unwrap()).into_iter().collect();
        assert!(refusals.is_empty() || std::thread::panicking(), "{}", refusals.join("\n"));
    }
}

impl Books {
    fn note(&self, function: &str, grant: Grant) -> Result<(), String> {
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

impl Watch for Books {
    fn calls(self: Arc<Self>, function: &'static str) -> SharedInterceptor {
        SharedInterceptor::new(Calls { function, books: self })
    }

    fn has_variable(&self, function: &'static str, name: &str) -> bool {
        name.starts_with(LAMBDAS_OWN) || self.note(function, Grant::Variable(name.to_owned())).is_ok()
    }
}

impl Intercept for Calls {
    fn name(&self) -> &'static str {
        "Privileges"
    }

    fn read_before_serialization(
        &self,
        call: &BeforeSerializationInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let unknown = || self.books.refuse(format!("nobody has said what this call needs: {:?}", call.input()));
        for privilege in needs(call).ok_or_else(unknown)? {
            self.books.note(self.function, privilege)?;
        }
        Ok(())
    }
}
