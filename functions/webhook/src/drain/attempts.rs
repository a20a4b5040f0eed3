//! What a run has under way: attempts, and deliveries that it holds because their endpoint is off.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::rows::Unreadable;
use common::runtime::catch_panic;
use common::store::StoreError;
use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::sleep;
use webhooks::delivery::{Delivery, Dispatch, Status, Token, claim_due, expire, hold};
use webhooks::drain::PAUSE_AFTER_ERROR;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{DisableOutcome, Hold, StepOutcome, Waiting};

use super::run::{Ended, Run, WaitingResult};
use crate::Webhook;
use crate::outcome::{DispatchOutcome, is_transient};
use crate::record::{AttemptResult, Claimed};

/// How long an attempt that another run makes keeps its room, until this run looks again.
const BLOCKED_FOR: Duration = Duration::from_secs(2);
/// How long a delivery is set aside that cannot be read or signed, in seconds.
const ASIDE_SECONDS: u32 = 60 * 60;

impl Webhook {
    /// Begins attempts as far as there is room. What waits for an endpoint that is off is held.
    pub(super) fn begin_attempts(&self, run: &mut Run) {
        for (id, queue) in &mut run.queues {
            let Some(Ok(endpoint)) = run.found.get(id) else { continue };
            if !endpoint.is_on() {
                let waiting: Vec<Waiting> = std::iter::from_fn(|| queue.begin_next()).collect();
                if !waiting.is_empty() {
                    let (webhook, endpoint, has_drain) = (self.clone(), endpoint.clone(), Arc::clone(&run.has_drain));
                    run.under_way.spawn(async move {
                        let held = catch_panic(webhook.hold_waiting(&endpoint, &waiting, &has_drain).boxed()).await;
                        let held = held.unwrap_or_else(|| waiting.iter().map(|_| Err(panicked())).collect());
                        Ended::Waiting(endpoint.id, waiting.into_iter().zip(held).collect())
                    });
                }
                continue;
            }
            while let Some(waiting) = queue.begin_next() {
                let (webhook, endpoint, has_drain) = (self.clone(), endpoint.clone(), Arc::clone(&run.has_drain));
                run.under_way.spawn(async move {
                    let made = catch_panic(webhook.attempt_waiting(&endpoint, &waiting, &has_drain).boxed()).await;
                    Ended::Waiting(endpoint.id, vec![(waiting, made.unwrap_or_else(|| Err(panicked())))])
                });
            }
        }
    }

    /// Makes the attempt of a delivery that waits.
    async fn attempt_waiting(
        &self,
        endpoint: &WebhookEndpoint,
        waiting: &Waiting,
        has_drain: &Arc<AtomicBool>,
    ) -> WaitingResult {
        let void = || Ok(Some(DispatchOutcome::Void.into()));
        if endpoint.host_changed_at.is_some() {
            let Some(delivery) = self.store.delivery(waiting.id).await? else { return void() };
            let dispatch = Dispatch::next_of(&delivery);
            // It was sent again to the host before.
            if dispatch.round > 1 && !delivery.is_test && endpoint.needs_proof(delivery.created_at) {
                let step = hold(&dispatch, self.clock.now());
                return Ok(Some(self.step(&dispatch, &step, DispatchOutcome::Held).await?.into()));
            }
        }
        let (lease, now) = (Token::random(), self.clock.now());
        // Before the claim: without a signature there is no attempt. What is not kept any more needs none.
        let secrets = self.secrets(endpoint).await;
        if let Err(error) = &secrets
            && self.store.delivery(waiting.id).await?.is_none_or(|delivery| delivery.kept_until() >= now)
        {
            return Err(error.clone());
        }
        let delivery = match self.store.step(waiting.id, endpoint.id, &claim_due(waiting.at, lease, now)).await {
            Ok(StepOutcome::Changed(delivery)) => delivery,
            // The answer to an earlier try of the same write was lost.
            Ok(StepOutcome::Refused(Some(found))) if found.progress.lease.is_some_and(|held| held.id == lease) => found,
            Ok(StepOutcome::Refused(Some(found))) if found.progress.is_leased(now) => {
                sleep(BLOCKED_FOR).await;
                return Ok(None);
            }
            Ok(StepOutcome::Refused(_)) => return void(),
            Err(error) => {
                if let StoreError::Corrupt { .. } = error {
                    self.store.unclaim(&waiting.wake_up, lease).await?;
                }
                return Err(error);
            }
        };
        if delivery.kept_until() < now {
            let expired = self.store.apply(delivery.id, endpoint.id, &expire(lease)).await?;
            return Ok(Some(if expired { DispatchOutcome::Expired } else { DispatchOutcome::Void }.into()));
        }
        let has_drain = Arc::clone(has_drain);
        let claimed = Claimed { dispatch: Dispatch::next_of(&delivery), delivery, endpoint, lease, has_drain };
        self.make(&claimed, &secrets?).await.map(Some)
    }

    /// Holds deliveries that wait for an endpoint that is off, all at once if nothing is in the way. Makes the attempts of
    /// tests that were sent since then. Returns what became of each, in order.
    async fn hold_waiting(
        &self,
        endpoint: &WebhookEndpoint,
        waiting: &[Waiting],
        has_drain: &Arc<AtomicBool>,
    ) -> Vec<WaitingResult> {
        let now = self.clock.now();
        let found = join_all(waiting.iter().map(|waiting| self.store.delivery(waiting.id))).await;
        let to_hold = |found: &Result<Option<Delivery>, StoreError>| match found {
            Ok(Some(delivery)) if is_to_hold(endpoint, delivery) => {
                let step = hold(&Dispatch::next_of(delivery), now);
                Some((Hold::Stored(delivery.id, step), endpoint))
            }
            _ => None,
        };
        let holds: Vec<_> = found.iter().filter_map(to_hold).collect();
        let all = if holds.is_empty() {
            Ok(DisableOutcome::Done)
        } else {
            self.store.hold_all(endpoint.account_id, &holds).await
        };
        let results = waiting.iter().zip(&found).map(async |(waiting, found)| match (to_hold(found), found) {
            (_, Err(error)) => Err(error.clone()),
            (None, Ok(None)) => Ok(Some(DispatchOutcome::Void.into())),
            (None, Ok(Some(_))) => self.attempt_waiting(endpoint, waiting, has_drain).await,
            (Some(hold), Ok(_)) => match &all {
                Ok(DisableOutcome::Done) => Ok(Some(DispatchOutcome::Held.into())),
                Ok(_) => self.hold_one(endpoint, hold).await,
                Err(error) => Err(error.clone()),
            },
        });
        join_all(results).await
    }

    /// Holds one delivery, because something was in the way of all.
    async fn hold_one(&self, endpoint: &WebhookEndpoint, hold: (Hold, &WebhookEndpoint)) -> WaitingResult {
        match self.store.hold_all(endpoint.account_id, &[hold]).await? {
            DisableOutcome::Done => Ok(Some(DispatchOutcome::Held.into())),
            DisableOutcome::EndpointMoved | DisableOutcome::DeliveryMoved => Ok(None),
        }
    }

    /// Notes what has ended.
    pub(super) async fn ended(&self, run: &mut Run, ended: Result<Ended, tokio::task::JoinError>) {
        let (endpoint, results) = match ended {
            Ok(Ended::Waiting(endpoint, results)) => (endpoint, results),
            Ok(Ended::Removal(id, is_done)) => {
                run.is_unsure |= is_done.is_err();
                if let Ok(true) = is_done {
                    run.drain.removed.retain(|removed| *removed != id);
                }
                return;
            }
            Err(error) => return tracing::error!(%error, "a part of a run has not ended"),
        };
        let Some(queue) = run.queues.get_mut(&endpoint) else { return };
        for (waiting, result) in results {
            queue.under_way -= 1;
            match result {
                Ok(None) => queue.forget(waiting.id, BLOCKED_FOR),
                Ok(Some(AttemptResult { outcome, wake_at, is_prompt })) => {
                    run.next = run.next.into_iter().chain(wake_at).min();
                    run.outcomes.push(outcome);
                    if let Some(is_prompt) = is_prompt {
                        queue.answered(is_prompt);
                    }
                }
                Err(error) if is_transient(&error) => {
                    run.is_unsure = true;
                    run.outcomes.push(DispatchOutcome::Postponed(error.to_string()));
                    queue.forget(waiting.id, PAUSE_AFTER_ERROR);
                }
                Err(error) => {
                    run.is_unsure = true;
                    run.outcomes.push(self.set_aside(waiting, error).await);
                }
            }
        }
    }

    /// Sets a delivery aside that cannot be read or signed, so that it is not in the way of others.
    async fn set_aside(&self, waiting: Waiting, error: StoreError) -> DispatchOutcome {
        let defect = DispatchOutcome::Defective(error.to_string());
        let Unreadable { row, what } = waiting.wake_up.clone().unreadable(error).unreadable;
        tracing::error!(row, what, "set aside");
        let until = self.schedule.after(self.clock.now(), ASIDE_SECONDS);
        if let Err(error) = self.store.set_aside(&waiting.wake_up, until).await {
            tracing::warn!(delivery_id = %waiting.id, %error, "cannot set the delivery aside");
        }
        defect
    }
}

/// Returns whether a delivery to an endpoint that is off is held: unless it is a test that somebody sent since then.
fn is_to_hold(endpoint: &WebhookEndpoint, delivery: &Delivery) -> bool {
    let is_to_attempt = delivery.is_test && endpoint.disabled_at.is_none_or(|at| delivery.created_at >= at);
    delivery.progress.status == Status::Pending && !is_to_attempt
}

fn panicked() -> StoreError {
    StoreError::Defect("its attempt panicked".to_owned())
}
