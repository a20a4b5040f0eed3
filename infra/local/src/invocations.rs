//! The functions that are invoked directly. An instance offers them, and the AWS side invokes them as Lambda does.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use runtime::Worker;
use serde_json::Value;

/// A function that takes an event. The error is what the function failed with.
type Invoked = Arc<dyn Fn(Value) -> BoxFuture<'static, Result<Value, String>> + Send + Sync>;

/// The functions by name. Clones are the same functions.
#[derive(Clone, Default)]
pub struct Invocations(Arc<Mutex<BTreeMap<&'static str, Invoked>>>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(function, invoked);
    }

    /// Invokes a function. Returns `None` if there is none with this name.
    pub async fn invoke(&self, function: &str, event: Value) -> Option<Result<Value, String>> {
        let invoked = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(function).map(Arc::clone)?;
        Some(invoked(event).await)
    }
}

impl fmt::Debug for Invocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Invocations(…)")
    }
}
