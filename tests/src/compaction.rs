//! Compactions beside the schedule, one step at a time.

use std::sync::Arc;

use local::environment::Variables;
use shared::aws::{Environment, Patience};
use shared::clock::Clock;
use shared::market::{Compaction, Log, Market, Record};

/// The compaction of a stream through an endpoint, with a request's patience: what fails, fails soon.
pub fn compaction<R: Record>(endpoint: &str, clock: Arc<dyn Clock>) -> Compaction<R> {
    let variables = Variables::at(endpoint);
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    Compaction::new(Log::new(Market::new(client, "marketplace-market".to_owned())), clock)
}
