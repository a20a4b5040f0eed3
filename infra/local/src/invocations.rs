//! What the marketplace and operators reach of the functions through Lambda: their direct invocation, and the names of the
//! tables that they use.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use common::resources::Table;
use common::runtime::Worker;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::environment::Variables;

/// A function that takes an event. The error is what the function failed with.
type Invoked = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The functions that are invoked directly, by name. An instance offers them, and the AWS side invokes them as Lambda
/// does. Clones are the same functions.
#[derive(Clone, Default)]
pub struct Invocations(Arc<Mutex<Offered>>);

#[derive(Default)]
struct Offered {
    functions: BTreeMap<&'static str, Invoked>,
    /// The variables with the names of the tables.
    tables: BTreeMap<&'static str, String>,
}

impl Invocations {
    /// Offers a function, in place of an earlier one with this name.
    pub fn offer<W: Worker>(&self, function: &'static str, worker: W) {
        let worker = Arc::new(worker);
        let invoked: Invoked = Arc::new(move |event| {
            let worker = Arc::clone(&worker);
            async move {
                let event = serde_json::from_value(event).map_err(|error| error.to_string())?;
                let response = worker.work(event).await.map_err(|error| error.to_string())?;
                serde_json::to_value(response).map_err(|error| error.to_string())
            }
            .boxed()
        });
        self.offered().functions.insert(function, invoked);
    }

    /// Invokes a function. Returns `None` if there is none with this name.
    pub async fn invoke(&self, function: &str, event: Value) -> Option<Result<Value, String>> {
        let invoked = self.offered().functions.get(function).map(Arc::clone)?;
        Some(invoked(event).await)
    }

    /// Tells which tables the functions use, by their variables.
    pub fn tell_tables(&self, variables: &Variables) {
        let name = |table: Table| Some((table.variable(), variables.get(table.variable())?));
        self.offered().tables = Table::ALL.into_iter().filter_map(name).collect();
    }

    /// Returns the variables with the names of the tables. There are none if no function is offered.
    pub fn tables(&self) -> BTreeMap<&'static str, String> {
        self.offered().tables.clone()
    }

    fn offered(&self) -> MutexGuard<'_, Offered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Invocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invocations(…)")
    }
}
