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
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    Compaction::new(Log::new(Market::new(client, "marketplace-market".to_owned())), clock)
}
