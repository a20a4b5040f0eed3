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

impl Sweep {
    pub(crate) async fn run(&self) -> Swept {
        let (begin, behind) = (self.clock.now(), OnceCell::new());
        let shards = join_all((0..WAKE_SHARDS).map(|shard| self.sweep_shard(shard, begin, &behind))).await;
        shards.into_iter().fold(Swept::default(), Swept::and)
    }

    async fn sweep_shard(&self, shard: u32, begin: Timestamp, behind: &OnceCell<bool>) -> Swept {
        let (mut swept, mut from): (_, Option<StartKey>) = (Swept::default(), None);
        loop {
            let now = self.clock.now();
            let page = match self.store.due(shard, now, from.take()).await {
                Ok(page) => page,
                Err(error) => return swept.and(Swept::failure(&error.to_string())),
            };
            let DuePage { deliveries, notices, mut unreadable, next } = page;
            swept = swept.and(self.call(deliveries, now, behind).boxed().await);
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
                return swept;
            }
            if self.clock.now() >= begin.plus_millis(BEGIN_MILLIS) {
                return swept.and(Swept { unfinished: 1, ..Swept::default() });
            }
        }
    }

    /// Sends the messages of a page's deliveries, then moves their wake-ups. If any are overdue and a queue is
    /// behind, the overdue ones are left for a later run.
    async fn call(&self, deliveries: Vec<Delivery>, now: Timestamp, behind: &OnceCell<bool>) -> Swept {
        let due = deliveries.iter().filter_map(|delivery| {
            let resending = sweep(self.schedule, &delivery.progress, now)?;
            Some((Dispatch::next_of(delivery), resending))
        });
        let mut due: Vec<(Dispatch, Resending)> = due.collect();
        let mut swept = Swept::default();
        if due.iter().any(|(_, resending)| resending.is_overdue)
            && *behind.get_or_init(|| self.is_behind(now).boxed()).await
        {
            let before = due.len();
            due.retain(|(_, resending)| !resending.is_overdue);
            swept.waiting = (before - due.len()) as u64;
        }
        let call = |(dispatch, resending): &(Dispatch, Resending)| Call {
            dispatch: *dispatch,
            delay_seconds: resending.delay_seconds,
        };
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
