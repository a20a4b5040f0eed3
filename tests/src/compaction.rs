//! Compactions that a test runs itself, one at a time.

use std::sync::Arc;

use base::Compaction;
use local::environment::{ACCOUNT_ID, REGION, Variables};
use market::{Log, Market};
use objects::Objects;
use platform::aws::{Environment, Patience};
use platform::resources::Resources;
use types::clock::Clock;

/// Returns the compaction of a stream at an endpoint. It has the short time-outs of a request, so a failure comes
/// soon.
pub fn compaction<R: base::Columnar>(endpoint: &str, clock: Arc<dyn Clock>) -> Compaction<R> {
    let variables = Variables::new(endpoint);
    compaction_in(&Environment::read(&|name| variables.get(name)).unwrap(), clock)
}

/// Returns such a compaction that reaches AWS through this environment.
pub(crate) fn compaction_in<R: base::Columnar>(environment: &Environment, clock: Arc<dyn Clock>) -> Compaction<R> {
    let market = Market::new(environment.dynamodb(Patience::Request), "marketplace-market".to_owned());
    Compaction::new(Log::new(market), bucket_in(environment), clock)
}

/// Returns the bucket of bases in the default stack at an endpoint.
pub fn base_bucket(endpoint: &str) -> Objects {
    let variables = Variables::new(endpoint);
    bucket_in(&Environment::read(&|name| variables.get(name)).unwrap())
}

fn bucket_in(environment: &Environment) -> Objects {
    let bucket = Resources::new(Resources::DEFAULT_STACK).base_bucket(ACCOUNT_ID, REGION);
    Objects::new(objects::client(environment, Patience::Request), bucket, Patience::Request)
}
