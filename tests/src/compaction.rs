//! Compactions that a test runs itself, one at a time.

use std::sync::Arc;

use base::Compaction;
use local::environment::Variables;
use market::{Log, Market};
use platform::aws::{Environment, Patience};
use types::clock::Clock;

/// Returns the compaction of a stream at an endpoint. It has the short time-outs of a request, so a failure comes
/// soon.
pub fn compaction<R: base::Columnar>(endpoint: &str, clock: Arc<dyn Clock>) -> Compaction<R> {
    let variables = Variables::new(endpoint);
    compaction_in(&Environment::read(&|name| variables.get(name)).unwrap(), clock)
}

/// Returns such a compaction that reaches AWS through this environment.
pub(crate) fn compaction_in<R: base::Columnar>(environment: &Environment, clock: Arc<dyn Clock>) -> Compaction<R> {
    let client = environment.dynamodb(Patience::Request);
    Compaction::new(Log::new(Market::new(client, "marketplace-market".to_owned())), clock)
}
