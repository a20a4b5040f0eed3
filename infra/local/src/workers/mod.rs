//! The functions that queues and schedules trigger, with Lambda's semantics.

mod background;
mod backlog;
mod event;
mod fleet;
mod invoke;
mod poller;
mod schedule;

use std::time::Duration;

use platform::aws::{Missing, Patience};
use platform::resources::{
    COMPACT_PERIOD, COMPACT_TIMEOUT, INGEST_TIMEOUT, Queue, SWEEP_PERIOD, SWEEP_TIMEOUT, WEBHOOK_TIMEOUT,
};
use webhook::transport::Transport;
use webhooks::Schedule;

pub use background::BackgroundTask;
pub use backlog::Backlog;
pub use fleet::poll_with_fleet;
pub use poller::{EventSource, poll};
pub use schedule::schedule;

use crate::host::Host;
use crate::init;
use crate::switches::Trigger;
use schedule::switched_schedule;

/// The number of `ingest` instances that read the feed side by side.
pub const INGEST_INSTANCES: usize = 2;
/// The most `webhook` instances for the first lane. A receiver that hangs occupies fewer before it is known to be slow.
pub const MAX_FIRST_LANE_INSTANCES: usize = 256;
/// The most `webhook` instances for the retry lane.
pub const MAX_RETRY_LANE_INSTANCES: usize = 32;
/// The most `webhook` instances for the slow lane, which runs drains.
pub const MAX_SLOW_LANE_INSTANCES: usize = 128;

/// How webhooks are sent.
#[derive(Clone)]
pub struct SenderConfig {
    /// Decides where they may go, and sends them.
    pub transport: Transport,
    /// When failed attempts are retried.
    pub schedule: Schedule,
}

/// Running workers. They stop when this is dropped.
pub struct Workers {
    /// The messages left in the feed queue.
    pub feed: Backlog,
    _running: Vec<BackgroundTask>,
}

impl Workers {
    /// Builds the workers and starts their pollers and schedules.
    pub async fn start(host: &Host, webhooks: SenderConfig) -> Result<Self, String> {
        let missing = |missing: Missing| missing.to_string();
        let [feeder, caller] =
            ["ingest", "webhook"].map(|name| queues::client(&host.environment_of(name), Patience::Bulk));
        let queues = [Queue::Feed, Queue::WebhooksFirst, Queue::WebhooksRetry, Queue::WebhooksSlow];
        let (_, [feed, first, retry, slow]) =
            host.unobserved(|service| queues::from_service(service, queues)).map_err(missing)?;
        let source = EventSource::open(feeder.clone(), &feed, INGEST_TIMEOUT).await?;
        let switch = |trigger| host.switches().of(trigger);
        let source = source.switched_by(switch(Trigger::Queue(Queue::Feed)));
        let SenderConfig { transport, schedule: retries } = webhooks;
        let mut running = Vec::new();
        for _ in 0..INGEST_INSTANCES {
            let ingest = host.function("ingest", ingest::worker).map_err(missing)?;
            running.push(poll(source.clone(), ingest));
        }
        for (lane, queue, most) in [
            (first, Queue::WebhooksFirst, MAX_FIRST_LANE_INSTANCES),
            (retry, Queue::WebhooksRetry, MAX_RETRY_LANE_INSTANCES),
            (slow, Queue::WebhooksSlow, MAX_SLOW_LANE_INSTANCES),
        ] {
            let source = EventSource::open(caller.clone(), &lane, WEBHOOK_TIMEOUT).await?;
            let source = source.switched_by(switch(Trigger::Queue(queue)));
            let sender = host.function("webhook", |service| webhook::worker(service, transport.clone(), retries));
            let sender = sender.map_err(missing)?;
            running.push(poll_with_fleet(source, most, move || sender.clone()));
        }
        let compact = host.function("compact", compact::worker).map_err(missing)?;
        let due = switch(Trigger::Schedule("compact"));
        running.push(switched_schedule(due, COMPACT_PERIOD, COMPACT_TIMEOUT, compact));
        let period = u32::try_from(SWEEP_PERIOD.as_secs()).unwrap_or(u32::MAX);
        let period = Duration::from_secs(retries.scaled(period).into());
        let sweep = host.function("sweep", |service| sweep::worker(service, retries)).map_err(missing)?;
        running.push(switched_schedule(switch(Trigger::Schedule("sweep")), period, SWEEP_TIMEOUT, sweep));
        init::run(host.preflight()).await;
        Ok(Self { feed: Backlog::new(feeder, feed), _running: running })
    }
}
