//! One run over the wake-up index.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use platform::metrics::{Meter, Metric};
use platform::resources::SWEEP_PERIOD;
use platform::rows::Unreadable;
use platform::store::StoreError;
use runtime::Error;
use types::ids::{NoticeId, UserId};
use types::timestamp::Timestamp;
use webhooks::DrainCall;
use webhooks::store::{DuePage, StartKey, UnreadableWakeUp, WAKE_SHARDS, WakeUp};

use crate::Sweep;

/// How many rows of a page are worked on at the same time.
const CONCURRENCY: usize = 16;
/// A run begins no new page after this time, so that it ends before the function's time-out of 50 seconds.
const BEGIN_MILLIS: i64 = 30_000;
/// How long an unreadable row is set aside. Then some run looks at it again.
const ASIDE_SECONDS: u32 = 60 * 60;

/// Counts what a run did.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    counts: BTreeMap<&'static str, (Metric, u64)>,
    failed: u64,
    /// The first error.
    because: Option<String>,
}

/// What was done for one row.
type Step = Result<Option<Metric>, StoreError>;

impl Sweep {
    pub(crate) async fn run(&self) -> Swept {
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
            // A drain is called a period early, with a delay: so it does not run a period late.
            let ahead = self.schedule.scaled(u32::try_from(SWEEP_PERIOD.as_secs()).unwrap_or(u32::MAX));
            let by = self.clock.now().plus_millis(i64::from(ahead) * 1_000);
            let page = match self.store.due(shard, by, from.take()).await {
                Ok(page) => page,
                Err(error) => {
                    steps.push(Err(error));
                    return steps;
                }
            };
            let DuePage { drains, notices, unreadable, next } = page;
            let drains = drains.into_iter().map(|(account, wake_up)| Row::Drain(account, wake_up));
            let notices = notices.into_iter().map(|(id, wake_up)| Row::Notice(id, wake_up));
            let rows = drains.chain(notices).chain(unreadable.into_iter().map(Row::Unreadable));
            let mut done = stream::iter(rows).map(|row| self.sweep_row(row)).buffer_unordered(CONCURRENCY);
            while let Some(step) = done.next().await {
                steps.push(step);
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

    async fn sweep_row(&self, row: Row) -> Step {
        match row {
            Row::Drain(account, wake_up) => match self.call(account, &wake_up).await {
                Err(error @ StoreError::Corrupt { .. }) => self.set_aside(wake_up.unreadable(error)).await,
                other => other,
            },
            Row::Notice(_, wake_up) if wake_up.time().is_some_and(|at| at > self.clock.now()) => Ok(None),
            Row::Notice(id, wake_up) => match self.notices.send(id).await {
                Ok(()) => Ok(Some(Metric::Notices)),
                Err(error @ StoreError::Corrupt { .. }) => self.set_aside(wake_up.unreadable(error)).await,
                Err(error) => Err(error),
            },
            Row::Unreadable(unreadable) => self.set_aside(unreadable).await,
        }
    }

    /// Calls the drain of an account for when it is to run. Its wake-up moves first. If the message is lost, or the run
    /// dies, the drain is called again then.
    async fn call(&self, account_id: UserId, wake_up: &WakeUp) -> Step {
        let now = self.clock.now();
        let at = wake_up.time().map_or(now, |at| at.max(now));
        let Some((token, is_asleep)) = self.store.wake_drain(account_id, wake_up, self.lost_at(at)).await? else {
            return Ok(None);
        };
        let delay =
            u32::try_from((at.millis() - now.millis()).max(0).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX);
        for sent in self.queues.call_drains(&[(DrainCall { account_id, token }, delay)]).await {
            sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
        }
        Ok(Some(if is_asleep { Metric::Called } else { Metric::Overdue }))
    }

    /// Moves the wake-up of a row that cannot be read, because this release does not know what the row calls for. So it
    /// is not read and reported by each run. The log names each row that was moved, every time that it is.
    async fn set_aside(&self, UnreadableWakeUp { wake_up, unreadable }: UnreadableWakeUp) -> Step {
        let until = self.clock.now().plus_millis(i64::from(self.schedule.scaled(ASIDE_SECONDS)) * 1_000);
        if !self.store.set_aside(&wake_up, until).await? {
            return Ok(None);
        }
        let Unreadable { row, what } = unreadable;
        tracing::warn!(row, what, "unreadable row");
        Ok(Some(Metric::Unreadable))
    }
}

/// A row whose wake-up has come.
enum Row {
    Drain(UserId, WakeUp),
    Notice(NoticeId, WakeUp),
    Unreadable(UnreadableWakeUp),
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
    pub(crate) fn report(&self, meter: &Meter) -> Result<(), Error> {
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
