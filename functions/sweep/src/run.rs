//! One run over the wake-up index.

use futures_util::future::join_all;
use futures_util::stream;
use futures_util::{FutureExt, StreamExt};
use platform::store::StoreError;
use tokio::sync::OnceCell;
use types::timestamp::Timestamp;
use webhooks::Call;
use webhooks::delivery::{Delivery, Dispatch, Lane, Resending, sweep};
use webhooks::store::{DuePage, StartKey, WAKE_SHARDS};

use crate::Sweep;
use crate::swept::Swept;

/// How many wake-ups of a shard are moved at the same time.
const CONCURRENCY: usize = 16;
/// A run begins no new page after this time, so that it ends before the function's time-out of 50 seconds.
const BEGIN_MILLIS: i64 = 30_000;

/// A run.
struct Run {
    begin: Timestamp,
    /// Whether a queue is behind, once somebody has asked.
    behind: OnceCell<bool>,
}

impl Sweep {
    pub(crate) async fn run(&self) -> Swept {
        let run = Run { begin: self.clock.now(), behind: OnceCell::new() };
        if !self.memory.is_empty() && !self.finds_behind(&run).await {
            self.memory.clear();
        }
        let shards = join_all((0..WAKE_SHARDS).map(|shard| self.sweep_shard(shard, &run))).await;
        shards.into_iter().fold(Swept::default(), Swept::and)
    }

    /// Returns whether a queue is behind. Each run finds out at most once.
    async fn finds_behind(&self, run: &Run) -> bool {
        *run.behind.get_or_init(|| self.is_behind(run.begin).boxed()).await
    }

    /// Sweeps a shard, except the part in which earlier runs left only overdue deliveries.
    async fn sweep_shard(&self, shard: u32, run: &Run) -> Swept {
        let passed = self.memory.passed(shard, self.schedule, run.begin);
        let mut left = Vec::new();
        let (mut swept, end) = self.sweep_from(shard, passed.end, run, &mut left).boxed().await;
        swept.waiting = passed.waiting + left.len() as u64;
        match end {
            Some(end) if swept.failed == 0 => {
                self.memory.remember(shard, passed.extended(self.schedule, run.begin, end, &left));
            }
            _ => self.memory.forget(shard),
        }
        swept
    }

    /// Sweeps the wake-ups of a shard from `begin` on. Returns before which wake-up it has read everything, if it
    /// knows. Adds the wake-ups of the overdue deliveries that it leaves to `left`.
    async fn sweep_from(
        &self,
        shard: u32,
        begin: Timestamp,
        run: &Run,
        left: &mut Vec<Timestamp>,
    ) -> (Swept, Option<Timestamp>) {
        let (mut swept, mut from): (_, Option<StartKey>) = (Swept::default(), None);
        loop {
            let now = self.clock.now();
            let page = match self.store.due(shard, begin, now, from.take()).await {
                Ok(page) => page,
                Err(error) => return (swept.and(Swept::failure(&error.to_string())), None),
            };
            let last_wake_up = page.last_wake_up();
            let DuePage { deliveries, notices, mut unreadable, next } = page;
            swept = swept.and(self.call(deliveries, now, run, left).boxed().await);
            for (id, wake_up) in notices {
                swept = swept.and(match self.notices.send(id).await {
                    Ok(()) => Swept { notices: 1, ..Swept::default() },
                    Err(error @ StoreError::Corrupt { .. }) => {
                        unreadable.push(wake_up.unreadable(error));
                        Swept::default()
                    }
                    Err(error) => Swept::failure(&error.to_string()),
                });
            }
            swept = swept.and(self.set_aside(unreadable, now).boxed().await);
            from = next;
            if from.is_none() {
                return (swept, Some(run.begin));
            }
            if self.clock.now() >= run.begin.plus_millis(BEGIN_MILLIS) {
                return (swept.and(Swept { unfinished: 1, ..Swept::default() }), last_wake_up);
            }
        }
    }

    /// Sends the messages of a page's deliveries, then moves their wake-ups. If a queue is behind, overdue ones are left
    /// for a later run.
    async fn call(&self, deliveries: Vec<Delivery>, now: Timestamp, run: &Run, left: &mut Vec<Timestamp>) -> Swept {
        let mut due: Vec<(Dispatch, Resending)> = Vec::new();
        for delivery in &deliveries {
            let Some(resending) = sweep(self.schedule, &delivery.progress, now) else { continue };
            if resending.is_overdue && self.finds_behind(run).await {
                left.extend(delivery.progress.wake_at);
            } else {
                due.push((Dispatch::next_of(delivery), resending));
            }
        }
        let mut swept = Swept::default();
        let call = |(dispatch, resending): &(Dispatch, Resending)| Call::new(*dispatch, resending.delay_seconds);
        let calls: Vec<Call> = due.iter().map(call).collect();
        let sent = self.queues.call(Lane::Retry, &calls).await;
        let steps = stream::iter(due.into_iter().zip(sent)).map(|((dispatch, resending), sent)| async move {
            sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
            self.store.settle(dispatch.delivery_id, &resending.then).await?;
            Ok::<_, StoreError>(resending.is_overdue)
        });
        let mut steps = steps.buffer_unordered(CONCURRENCY);
        while let Some(step) = steps.next().await {
            swept = swept.and(match step {
                Ok(true) => Swept { overdue: 1, ..Swept::default() },
                Ok(false) => Swept { parked: 1, ..Swept::default() },
                Err(error) => Swept::failure(&error.to_string()),
            });
        }
        swept
    }
}
