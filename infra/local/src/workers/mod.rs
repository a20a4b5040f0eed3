//! The functions that queues and schedules trigger, with Lambda's semantics.

mod backlog;
mod event;
mod fleet;
mod invoke;
mod poller;
mod running;
mod schedule;

use std::sync::Arc;
use std::time::Duration;

use shared::aws::{Environment, Missing, Patience};
use shared::clock::Clock;
use shared::resources::{
    COMPACT_PERIOD, COMPACT_TIMEOUT, INGEST_TIMEOUT, Queue, SWEEP_PERIOD, SWEEP_TIMEOUT, WEBHOOK_TIMEOUT,
};
use shared::service::Service;
use shared::webhooks::Schedule;
use webhook::transport::Transport;

pub use backlog::Backlog;
pub use fleet::poll_with_fleet;
pub use poller::{Source, poll};
pub use running::Running;
pub use schedule::schedule;

use crate::environment::Variables;

/// So many instances of `ingest` read the feed side by side.
const INGEST_INSTANCES: usize = 2;
/// At most so many instances of `webhook` attend to first attempts: more than a receiver that hangs can occupy
/// before it is known to be slow.
pub const FIRST_INSTANCES: usize = 256;
/// And so many to everything else: receivers that hang are not to be attended to all at once.
pub const RETRY_INSTANCES: usize = 32;

/// How webhooks are sent.
#[derive(Clone)]
pub struct Webhooks {
    /// Where they may go, and how they get there.
    pub transport: Transport,
    /// When they are tried again.
    pub schedule: Schedule,
}

/// Running workers; they end when this is dropped.
pub struct Workers {
    /// What is left in the feed queue.
    pub feed: Backlog,
    _running: Vec<Running>,
}

impl Workers {
    /// Builds the workers from the variables and starts their pollers and schedules.
    pub async fn start(variables: &Variables, clock: Arc<dyn Clock>, webhooks: Webhooks) -> Result<Self, String> {
        let missing = |missing: Missing| missing.to_string();
        let lookup = |name: &str| variables.get(name);
        let service = Service::new(&lookup, Arc::clone(&clock)).map_err(missing)?;
        let client = Environment::read(&lookup).map_err(missing)?.sqs(Patience::Bulk);
        let [feed, first, retry] =
            service.queues([Queue::Feed, Queue::WebhooksFirst, Queue::WebhooksRetry]).map_err(missing)?;
        let source = Source::open(client.clone(), &feed, INGEST_TIMEOUT).await?;
        let Webhooks { transport, schedule: retries } = webhooks;
        let mut running = Vec::new();
        for _ in 0..INGEST_INSTANCES {
            running.push(poll(source.clone(), ingest::worker(&service, retries).map_err(missing)?));
        }
        for (lane, most) in [(first, FIRST_INSTANCES), (retry, RETRY_INSTANCES)] {
            let source = Source::open(client.clone(), &lane, WEBHOOK_TIMEOUT).await?;
            let sender = webhook::worker(&service, transport.clone(), retries).map_err(missing)?;
            running.push(poll_with_fleet(source, most, move || sender.clone()));
        }
        let compact = compact::worker(&service).map_err(missing)?;
        running.push(schedule(COMPACT_PERIOD, COMPACT_TIMEOUT, compact));
        let period = u32::try_from(SWEEP_PERIOD.as_secs()).unwrap_or(u32::MAX);
        let period = Duration::from_secs(retries.scaled(period).into());
        let sweep = sweep::worker(&service, retries).map_err(missing)?;
        running.push(schedule(period, SWEEP_TIMEOUT, sweep));
        Ok(Self { feed: Backlog::of(client, feed), _running: running })
    }
}
