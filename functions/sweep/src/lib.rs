//! The `sweep` function, triggered by a schedule: wakes the drains of accounts for which something is due, and sends
//! notices that were not sent at once.
//!
//! Any number of runs may overlap, and any of them may die at any step. A message that is sent twice is void the second
//! time.

use std::collections::BTreeMap;
use std::sync::Arc;

use common::aws::{Missing, Patience};
use common::clock::Clock;
use common::metrics::{Meter, Metric};
use common::resources::{Queue, SWEEP_PERIOD};
use common::rows::Unreadable;
use common::runtime::{Error, Service, Worker, catch_panic, names_no_rule};
use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use serde_json::Value;
use webhooks::delivery::Lane;
use webhooks::store::{Due, StartKey, UnreadableWakeUp, WAKE_SHARDS, WebhookStore};
use webhooks::{Drains, Notices, Queues, Schedule};

/// How many rows of a page are worked on at the same time.
const CONCURRENCY: usize = 8;
/// A run begins no new page after this time, so that it ends before the function's time-out of 50 seconds.
const BEGIN_MILLIS: i64 = 30_000;
/// How long an unreadable row is set aside. Then some run looks at it again.
const ASIDE_SECONDS: u32 = 60 * 60;

pub struct Sweep {
    store: WebhookStore,
    drains: Drains,
    notices: Notices,
    clock: Arc<dyn Clock>,
    meter: Arc<Meter>,
}

/// Builds the function from its environment. The caller decides how long retries wait.
pub fn worker(service: &Service<'_>, schedule: Schedule) -> Result<Sweep, Missing> {
    let store = WebhookStore::from_service(service, Patience::Bulk, webhooks::store::probe_wake_index)?;
    let (sqs, [slow]) = common::queues::from_service(service, [Queue::WebhooksSlow])?;
    Ok(Sweep {
        notices: Notices::from_service(service, store.clone())?,
        drains: Drains::new(store.clone(), Queues::new(sqs, [(Lane::Slow, slow)]), schedule),
        store,
        clock: Arc::clone(&service.clock),
        meter: Arc::clone(&service.meter),
    })
}

impl Worker for Sweep {
    /// The schedule's event says nothing that matters. One that names no rule only finds out whether the function starts.
    type Event = Value;
    type Response = ();

    async fn work(&self, event: Value) -> Result<(), Error> {
        if names_no_rule(&event) {
            return Ok(());
        }
        self.run().await.report(&self.meter)
    }
}

/// Counts what a run did.
#[derive(Debug, Default)]
struct Swept {
    counts: BTreeMap<&'static str, (Metric, u64)>,
    failed: u64,
    /// The first error.
    because: Option<String>,
}

/// What was done for one row.
type Step = Result<Option<Metric>, StoreError>;

impl Sweep {
    async fn run(&self) -> Swept {
        let begun = self.clock.now();
        let shards = join_all((0..WAKE_SHARDS).map(|shard| self.sweep_shard(shard, begun))).await;
        let mut swept = Swept::default();
        for step in shards.into_iter().flatten() {
            swept.add(step);
        }
        swept
    }

    /// Sweeps a shard. Each account has one drain in it, so no account takes more of a run than another.
    async fn sweep_shard(&self, shard: u32, begun: Timestamp) -> Vec<Step> {
        let (mut steps, mut from): (_, Option<StartKey>) = (Vec::new(), None);
        loop {
            // A drain is woken a period early, with a delay: so it does not run a period late.
            let ahead = u32::try_from(SWEEP_PERIOD.as_secs()).unwrap_or(u32::MAX);
            let by = self.drains.schedule().after(self.clock.now(), ahead);
            let (rows, next) = match self.store.due(shard, by, from.take()).await {
                Ok(page) => page,
                Err(error) => {
                    steps.push(Err(error));
                    return steps;
                }
            };
            let walled = |row| catch_panic(self.sweep_row(row));
            let mut done = stream::iter(rows).map(walled).buffer_unordered(CONCURRENCY);
            while let Some(step) = done.next().await {
                steps.push(step.unwrap_or_else(|| Err(StoreError::Defect("a row panicked".to_owned()))));
            }
            from = next;
            if from.is_none() {
                return steps;
            }
            if self.clock.now() >= begun.plus_millis(BEGIN_MILLIS) {
                steps.push(Ok(Some(Metric::Unfinished)));
                return steps;
            }
        }
    }

    async fn sweep_row(&self, row: Due) -> Step {
        match row {
            Due::Drain(account, wake_up) => match self.drains.wake_due(account, &wake_up, self.clock.now()).await {
                Ok(woken) => Ok(woken.map(|is_asleep| if is_asleep { Metric::Called } else { Metric::Overdue })),
                Err(error @ StoreError::Corrupt { .. }) => self.set_aside(wake_up.unreadable(error)).await,
                Err(error) => Err(error),
            },
            Due::Notice(_, wake_up) if wake_up.time().is_some_and(|at| at > self.clock.now()) => Ok(None),
            Due::Notice(id, wake_up) => match self.notices.send(id).await {
                Ok(()) => Ok(Some(Metric::Notices)),
                Err(error @ StoreError::Corrupt { .. }) => self.set_aside(wake_up.unreadable(error)).await,
                Err(error) => Err(error),
            },
            Due::Unreadable(unreadable) => self.set_aside(unreadable).await,
        }
    }

    /// Moves the wake-up of a row that cannot be read, because this release does not know what the row calls for. So it
    /// is not read and reported by each run. The log names each row that was moved, every time that it is.
    async fn set_aside(&self, UnreadableWakeUp { wake_up, unreadable }: UnreadableWakeUp) -> Step {
        let until = self.drains.schedule().after(self.clock.now(), ASIDE_SECONDS);
        if !self.store.set_aside(&wake_up, until).await? {
            return Ok(None);
        }
        let Unreadable { row, what } = unreadable;
        tracing::warn!(row, what, "unreadable row");
        Ok(Some(Metric::Unreadable))
    }
}

impl Swept {
    /// What a run counts. The line of a run has all of them.
    const METRICS: [Metric; 5] =
        [Metric::Called, Metric::Overdue, Metric::Notices, Metric::Unfinished, Metric::Unreadable];

    fn add(&mut self, step: Step) {
        match step {
            Ok(Some(metric)) => self.counts.entry(metric.as_str()).or_insert((metric, 0)).1 += 1,
            Ok(None) => {}
            Err(error) => {
                self.failed += 1;
                self.because.get_or_insert_with(|| error.to_string());
            }
        }
    }

    /// Writes the run's log line. Returns an error if a step failed. The next run repeats it.
    fn report(&self, meter: &Meter) -> Result<(), Error> {
        let Self { counts, failed, because } = self;
        let mut line = meter.line("swept");
        for metric in Self::METRICS {
            line.count(metric, counts.get(metric.as_str()).map_or(0, |(_, count)| *count));
        }
        line.member("failed", failed);
        line.known("because", because.as_deref());
        line.log(*failed > 0);
        match because {
            None => Ok(()),
            Some(because) => Err(format!("{failed} steps failed; the first error: {because}").into()),
        }
    }
}
