//! A run of an account's drain: makes the attempts of the deliveries that wait in the table.
//!
//! Each endpoint has attempts of its own under way, so one that hangs does not delay its siblings. A run ends when
//! nothing is left that is due, or when its time is up. Then it hands the drain on to the next message, and waits for its
//! last attempts. The next run finds them leased. An error ends no run: it begins nothing for a while.

mod attempts;
mod queue;
mod run;

use std::sync::atomic::Ordering;
use std::time::Duration;

use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use tokio::time::{Instant, sleep, sleep_until};
use webhooks::DrainMessage;
use webhooks::delivery::Token;
use webhooks::drain::{BEGIN_FOR, LOOK_EVERY, PAUSE_AFTER_ERROR, REMOVED_FOR_SECONDS, wakes_at};

use crate::Webhook;
use crate::outcome::{DispatchOutcome, is_transient};
use queue::EndpointQueue;
use run::{Ended, Run};

/// An attempt begins at most this long after its endpoint was read.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// For how long after its beginning a run tries to hand the drain on.
const HAND_ON_FOR: Duration = Duration::from_secs(20);

impl Webhook {
    /// Runs the drain that a message calls for. Returns the outcome of the message, and those of the deliveries.
    pub(crate) async fn drain(&self, call: DrainMessage) -> (DispatchOutcome, Vec<DispatchOutcome>) {
        let (mine, now) = (Token::random(), self.clock.now());
        let drain = match self.store.begin_drain(call.account_id, call.token, mine, self.drains.lost_at(now), now).await
        {
            Ok(Some(drain)) => drain,
            Ok(None) => return (DispatchOutcome::Void, Vec::new()),
            Err(error) if is_transient(&error) => {
                let postponed = self.drains.send_after(call, crate::messages::away_seconds()).await;
                let outcome = postponed.map(|()| DispatchOutcome::Postponed(error.to_string()));
                return (outcome.unwrap_or_else(|unsent| DispatchOutcome::uncopied(&unsent)), Vec::new());
            }
            Err(error) => return (DispatchOutcome::Failed(format!("cannot drain: {error}")), Vec::new()),
        };
        let mut run = Run::new(drain);
        let has_ended = self.make_attempts(&mut run).await;
        run.has_drain.store(false, Ordering::Relaxed);
        if !has_ended {
            self.hand_on(&mut run).await;
        }
        while let Some(ended) = run.under_way.join_next().await {
            self.ended(&mut run, ended).await;
        }
        (DispatchOutcome::Drained, run.outcomes)
    }

    /// Makes attempts until nothing is left that is due, or until the time is up. Returns whether the drain rests, or is
    /// another run's.
    async fn make_attempts(&self, run: &mut Run) -> bool {
        while run.begun.elapsed() < BEGIN_FOR {
            match self.advance(run).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => run.pause(&error),
            }
        }
        false
    }

    /// Begins what can begin, then waits for something to end or to be due. Returns whether the run has ended.
    async fn advance(&self, run: &mut Run) -> Result<bool, StoreError> {
        if run.paused_until <= Instant::now() {
            self.begin(run).await?;
            if run.is_idle() && self.rest(run).await? {
                return Ok(true);
            }
        }
        let next_step = run.next_step();
        tokio::select! {
            biased;
            Some(ended) = run.under_way.join_next() => self.ended(run, ended).await,
            () = sleep_until(next_step) => {}
        }
        if run.look_at <= Instant::now() && !run.under_way.is_empty() {
            run.look_at = Instant::now() + LOOK_EVERY;
            if !self.is_mine(run).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Looks for what waits, and begins attempts as far as there is room.
    async fn begin(&self, run: &mut Run) -> Result<(), StoreError> {
        if run.read_at.is_none() {
            self.read_endpoints(run).await?;
        }
        let now = self.clock.now();
        let looks = run.queues.iter_mut().filter(|(_, queue)| queue.is_to_look());
        let looked = join_all(looks.map(|(id, queue)| self.look(*id, queue, now))).await;
        looked.into_iter().collect::<Result<(), _>>()?;
        let is_any = run.queues.values().any(EndpointQueue::has_room_and_work);
        if is_any && run.read_at.is_none_or(|at| at.elapsed() > FRESH_FOR) {
            self.read_endpoints(run).await?;
        }
        self.begin_attempts(run);
        self.begin_removals(run, now);
        self.note_prompt(run).await;
        Ok(())
    }

    /// Reads the endpoints as they are now. One that cannot be read is left for a later run.
    async fn read_endpoints(&self, run: &mut Run) -> Result<(), StoreError> {
        let found = self.endpoints(&[run.drain.account_id].into()).await?;
        run.is_unsure |= found.values().any(Result::is_err);
        run.queues.retain(|id, queue| queue.under_way > 0 || matches!(found.get(id), Some(Ok(_))));
        for (id, _) in found.iter().filter(|(_, endpoint)| endpoint.is_ok()) {
            run.queues.entry(*id).or_insert_with(EndpointQueue::new);
        }
        (run.found, run.read_at) = (found, Some(Instant::now()));
        Ok(())
    }

    /// Notes which endpoints have shown that they respond promptly. From then on their attempts are made at once. An error
    /// is only logged: a later run notes it.
    async fn note_prompt(&self, run: &mut Run) {
        for (id, queue) in &run.queues {
            let Some(Ok(endpoint)) = run.found.get_mut(id) else { continue };
            if endpoint.is_prompt || !queue.is_proven() {
                continue;
            }
            match self.store.mark_prompt(endpoint, true, self.clock.now()).await {
                Ok(_) => self.promptness.answered(endpoint.id),
                Err(error) => {
                    tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot note that the endpoint is prompt");
                }
            }
            endpoint.is_prompt = true;
        }
    }

    /// Looks whether the run still has the drain, and whether the drain was woken again.
    async fn is_mine(&self, run: &mut Run) -> Result<bool, StoreError> {
        let found = self.store.drain(run.drain.account_id).await?;
        let Some(drain) = found.filter(|drain| drain.token == run.drain.token) else { return Ok(false) };
        if drain.wakes != run.drain.wakes {
            run.read_at = None;
            run.queues.values_mut().for_each(EndpointQueue::look_again);
        }
        run.drain = drain;
        Ok(true)
    }

    /// Lets the drain sleep until something is due. Returns whether the run has ended. It goes on if the drain was woken
    /// again.
    async fn rest(&self, run: &mut Run) -> Result<bool, StoreError> {
        let now = self.clock.now();
        let woken_at = if run.is_unsure { now } else { run.drain.woken_at };
        let next = run.queues.values().filter_map(|queue| queue.next).chain(run.next).min();
        let is_over = run.found.is_empty() && run.drain.removed.is_empty() && !run.is_unsure;
        let latest = wakes_at(woken_at, self.schedule, now);
        let wake_at = (!is_over).then(|| next.map_or(latest, |next| next.min(latest)));
        if self.store.rest_drain(&run.drain, Token::random(), wake_at, woken_at).await? {
            return Ok(true);
        }
        Ok(!self.is_mine(run).await?)
    }

    /// Hands the drain on to another message. If that fails, a sweep sends a message.
    async fn hand_on(&self, run: &mut Run) {
        let next = Token::random();
        loop {
            match self.store.hand_on_drain(&run.drain, next, self.drains.lost_at(self.clock.now())).await {
                Ok(true) => break,
                Ok(false) => return,
                Err(error) if is_transient(&error) && run.begun.elapsed() < HAND_ON_FOR => {
                    sleep(PAUSE_AFTER_ERROR).await;
                }
                Err(error) => return run.pause(&error),
            }
        }
        self.drains.send(DrainMessage { account_id: run.drain.account_id, token: next }).await;
    }

    /// Begins to end the deliveries of removed endpoints.
    fn begin_removals(&self, run: &mut Run, now: Timestamp) {
        // Somebody may have read the endpoint before it was removed, and let a delivery wait since then.
        let is_settled = run.drain.was_not_woken_for(self.schedule.scaled(REMOVED_FOR_SECONDS), now);
        for id in run.drain.removed.iter().copied().filter(|id| run.ending.insert(*id)) {
            let (webhook, account, begun) = (self.clone(), run.drain.account_id, run.begun);
            run.under_way.spawn(async move {
                let ended = webhook.store.end_deliveries(id, now, || begun.elapsed() < BEGIN_FOR).await;
                Ended::Removal(
                    id,
                    match ended {
                        Ok(removal) if removal.is_unfinished || !is_settled => Ok(false),
                        Ok(_) => webhook.store.removal_done(account, id).await.map(|()| true),
                        Err(error) => Err(error),
                    },
                )
            });
        }
    }
}
