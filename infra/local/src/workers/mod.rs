//! The functions that queues and schedules trigger, with Lambda's semantics.

mod poller;

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use common::aws::{Missing, Patience};
use common::resources::{
    Batching, COMPACT_PERIOD, COMPACT_TIMEOUT, INGEST_TIMEOUT, Queue, SWEEP_PERIOD, SWEEP_TIMEOUT, WEBHOOK_TIMEOUT,
};
use common::runtime::Worker;
use common::store::explain;
use tokio::time::{Instant, MissedTickBehavior};
use webhook::transport::Transport;
use webhooks::Schedule;

pub use crate::server::BackgroundTask;
pub use poller::{EventSource, poll, poll_with_fleet};

use crate::host::{Host, log_failed_warm_up};
use poller::invoke;

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
            ["ingest", "webhook"].map(|name| common::queues::client(&host.environment_of(name), Patience::Bulk));
        let queues = [Queue::Feed, Queue::WebhooksFirst, Queue::WebhooksRetry, Queue::WebhooksSlow];
        let (_, [feed, first, retry, slow]) =
            host.unobserved(|service| common::queues::from_service(service, queues)).map_err(missing)?;
        let source = EventSource::open(feeder.clone(), &feed, INGEST_TIMEOUT).await?;
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
            let batching = if queue == Queue::WebhooksSlow { Batching::DRAINS } else { Batching::AT_ONCE };
            let source = EventSource::open(caller.clone(), &lane, WEBHOOK_TIMEOUT).await?.with_batching(batching);
            let sender = host.function("webhook", |service| webhook::worker(service, transport.clone(), retries));
            let sender = sender.map_err(missing)?;
            running.push(poll_with_fleet(source, most, move || sender.clone()));
        }
        let compact = host.function("compact", compact::worker).map_err(missing)?;
        running.push(schedule(COMPACT_PERIOD, COMPACT_TIMEOUT, compact));
        let period = u32::try_from(SWEEP_PERIOD.as_secs()).unwrap_or(u32::MAX);
        let period = Duration::from_secs(retries.scaled(period).into());
        let sweep = host.function("sweep", |service| sweep::worker(service, retries)).map_err(missing)?;
        running.push(schedule(period, SWEEP_TIMEOUT, sweep));
        host.log_problems().await;
        Ok(Self { feed: Backlog::new(feeder, feed), _running: running })
    }
}

/// Runs a worker every `period`, for the first time after one period, and never twice at the same time. An invocation
/// that fails or takes longer than `timeout` is logged, and the next one starts when it is due.
pub fn schedule<W>(period: Duration, timeout: Duration, worker: W) -> BackgroundTask
where
    W: Worker<Event: Default>,
{
    BackgroundTask::start(async move {
        log_failed_warm_up(worker.warm_up().await);
        let worker = Arc::new(worker);
        let mut ticks = tokio::time::interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if let Err(error) = invoke(&worker, W::Event::default(), timeout).await {
                tracing::error!(error, "scheduled invocation failed");
            }
        }
    })
}

/// The messages that wait, that are being worked on, and that are delayed.
const COUNT_ATTRIBUTES: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
];
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The messages of a queue.
#[derive(Clone, Debug)]
pub struct Backlog {
    client: Client,
    queue_url: String,
}

impl Backlog {
    /// Counts the messages of the queue with this URL.
    pub fn new(client: Client, queue_url: String) -> Self {
        Self { client, queue_url }
    }

    /// Returns the number of messages, including those that are being worked on or delayed.
    pub async fn count(&self) -> Result<u64, String> {
        let request = self.client.get_queue_attributes().queue_url(&self.queue_url);
        let found = request.set_attribute_names(Some(COUNT_ATTRIBUTES.to_vec())).send().await;
        let found = found.map_err(|error| format!("queue {}: {}", self.queue_url, explain(&error)))?;
        let counts = found.attributes.unwrap_or_default();
        Ok(COUNT_ATTRIBUTES.iter().filter_map(|name| counts.get(name)?.parse::<u64>().ok()).sum())
    }

    /// Waits until the queue holds no messages.
    pub async fn wait_until_empty(&self) -> Result<(), String> {
        while self.count().await? > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use common::runtime::Error;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    /// Fails in a different way on each run, and reports each run.
    struct Failing {
        runs: AtomicU32,
        running: AtomicU32,
        runs_sender: UnboundedSender<u32>,
    }

    impl Worker for Failing {
        type Event = serde_json::Value;
        type Response = ();

        async fn work(&self, _: serde_json::Value) -> Result<(), Error> {
            assert_eq!(self.running.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
            let run = self.runs.fetch_add(1, Ordering::SeqCst);
            if run == 3 {
                // This takes longer than the period.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            self.running.store(0, Ordering::SeqCst);
            self.runs_sender.send(run)?;
            match run {
                0 => Err("failed".into()),
                1 => panic!("a fault"),
                2 => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }

    #[tokio::test]
    async fn errors_panics_and_time_outs_do_not_end_it_and_runs_never_overlap() {
        let (runs_sender, mut runs) = unbounded_channel();
        let worker = Failing { runs: AtomicU32::new(0), running: AtomicU32::new(0), runs_sender };
        let running = schedule(Duration::from_millis(5), Duration::from_millis(100), worker);
        for expected in 0..8 {
            assert_eq!(runs.recv().await, Some(expected));
        }
        drop(running);
        while runs.recv().await.is_some() {}
    }
}
