//! Compactions that a test runs itself, and what their bases say.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{Columnar, Columns, Compaction, Load};
use local::environment::{ACCOUNT_ID, REGION, Variables};
use market::{ENTITY_PARTITIONS, Log, Market};
use objects::Objects;
use platform::aws::{Environment, Patience};
use platform::resources::Resources;
use types::clock::Clock;

/// Returns the compaction of a stream at an endpoint. It has the short time-outs of a request, so a failure comes
/// soon.
pub fn compaction<R: Columnar>(endpoint: &str, clock: Arc<dyn Clock>) -> Compaction<R> {
    let variables = Variables::new(endpoint);
    compaction_in(&Environment::read(&|name| variables.get(name)).unwrap(), clock)
}

/// Returns such a compaction that reaches AWS through this environment.
pub(crate) fn compaction_in<R: Columnar>(environment: &Environment, clock: Arc<dyn Clock>) -> Compaction<R> {
    let market = Market::new(environment.dynamodb(Patience::Request), "marketplace-market".to_owned());
    Compaction::new(Log::new(market), bucket_in(environment), clock)
}

/// Returns the bucket of bases in the default stack at an endpoint.
pub fn base_bucket(endpoint: &str) -> Objects {
    let variables = Variables::new(endpoint);
    bucket_in(&Environment::read(&|name| variables.get(name)).unwrap())
}

/// Asserts that the base with its deltas, and the log behind them, say what the entities say. Returns the records as they
/// are read.
pub async fn assert_base_is_exact<R: Columnar>(log: &Log<R>, bucket: Objects, clock: Arc<dyn Clock>) -> Vec<R> {
    let snapshot = Load::new(log.clone(), bucket, clock).step().await.unwrap();
    assert!(snapshot.is_from_base());
    let read: Vec<R> = snapshot.folded().iter().flat_map(|columns| columns.records().unwrap()).collect();
    let json = |record: &R| serde_json::to_value(record).unwrap();
    let by_id: BTreeMap<String, _> = read.iter().map(|record| (record.id().to_string(), json(record))).collect();
    assert_eq!(by_id.len(), read.len(), "a record is there twice");
    let mut entities = BTreeMap::new();
    for partition in 0..ENTITY_PARTITIONS {
        let visit = |record: R| drop(entities.insert(record.id().to_string(), json(&record)));
        log.scan(partition, visit).await.unwrap();
    }
    assert_eq!(by_id, entities);
    read
}

pub(crate) fn bucket_in(environment: &Environment) -> Objects {
    let bucket = Resources::new(Resources::DEFAULT_STACK).base_bucket(ACCOUNT_ID, REGION);
    Objects::new(objects::client(environment, Patience::Request), bucket, Patience::Request)
}
