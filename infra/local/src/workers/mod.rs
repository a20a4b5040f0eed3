//! The functions that queues and schedules trigger, with Lambda's semantics.

mod backlog;
mod event;
mod invoke;
mod poller;
mod running;
mod schedule;

use std::sync::Arc;

use shared::aws::{Environment, Missing, Patience};
use shared::clock::Clock;
use shared::resources::{COMPACT_PERIOD, COMPACT_TIMEOUT, INGEST_TIMEOUT, Queue};
use shared::service::Service;

pub use backlog::Backlog;
pub use poller::{Source, poll};
pub use running::Running;
pub use schedule::schedule;

use crate::environment::Variables;

/// So many instances of `ingest` read the feed side by side.
const INGEST_INSTANCES: usize = 2;

/// Running workers; they end when this is dropped.
pub struct Workers {
    /// What is left in the feed queue.
    pub feed: Backlog,
    _running: Vec<Running>,
}

impl Workers {
    /// Builds the workers from the variables and starts their pollers and schedules.
    pub async fn start(variables: &Variables, clock: Arc<dyn Clock>) -> Result<Self, String> {
        let missing = |missing: Missing| missing.to_string();
        let lookup = |name: &str| variables.get(name);
        let service = Service::new(&lookup, clock).map_err(missing)?;
        let client = Environment::read(&lookup).map_err(missing)?.sqs(Patience::Bulk);
        let [feed] = service.queues([Queue::Feed]).map_err(missing)?;
        let source = Source::open(client.clone(), &feed, INGEST_TIMEOUT).await?;
        let mut running = Vec::new();
        for _ in 0..INGEST_INSTANCES {
            running.push(poll(source.clone(), ingest::worker(&service).map_err(missing)?));
        }
        let compact = compact::worker(&service).map_err(missing)?;
        running.push(schedule(COMPACT_PERIOD, COMPACT_TIMEOUT, compact));
        Ok(Self { feed: Backlog::of(client, feed), _running: running })
    }
}
