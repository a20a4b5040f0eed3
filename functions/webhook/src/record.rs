//! Records attempts and what follows from them: the next attempt, a switch-off, and notices for the owner. Every notice is
//! stored before it is sent. If it cannot be sent at once, `sweep` sends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::ids::NoticeId;
use common::store::StoreError;
use common::timestamp::Timestamp;
use webhooks::delivery::{AfterFailure, Attempt, Delivery, Dispatch, Lane, Token, Transition, after_failure, succeed};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::notice::{About, DisabledNotice, FailingNotice};
use webhooks::store::DisableOutcome;
use webhooks::{QueueMessage, Wait};

use crate::Webhook;
use crate::outcome::{DispatchOutcome, is_transient};

/// How often the function tries to record an acknowledgement. Without the record, the delivery is sent again.
const MAX_TRIES: u32 = 3;
/// `sweep` sends a notice this many seconds after it was stored, if it was not sent at once.
const NOTICE_SECONDS: u32 = 60;

/// An attempt that this function makes, because it has the lease.
pub(crate) struct Claimed<'a> {
    pub(crate) dispatch: Dispatch,
    pub(crate) delivery: Box<Delivery>,
    pub(crate) endpoint: &'a WebhookEndpoint,
    pub(crate) lease: Token,
    /// Whether a run of the drain makes the attempt, and still has the drain. It looks by itself when the next one is due.
    pub(crate) has_drain: Arc<AtomicBool>,
}

/// What became of an attempt.
pub(crate) struct AttemptResult {
    pub(crate) outcome: DispatchOutcome,
    /// From when on a drain makes the next attempt, if there is one.
    pub(crate) wake_at: Option<Timestamp>,
    /// Whether the receiver was not slow, if something was sent.
    pub(crate) is_prompt: Option<bool>,
}

impl From<DispatchOutcome> for AttemptResult {
    fn from(outcome: DispatchOutcome) -> Self {
        Self { outcome, wake_at: None, is_prompt: None }
    }
}

impl Webhook {
    /// Records an attempt and what follows from it.
    pub(crate) async fn record(&self, made: &Claimed<'_>, attempt: Attempt) -> Result<AttemptResult, StoreError> {
        let Claimed { dispatch, delivery, endpoint, lease, has_drain } = made;
        if attempt.is_acknowledged() {
            // Before the record: whoever sees that the test was delivered may send the other deliveries again.
            if delivery.is_test && endpoint.host_changed_at.is_some() {
                self.store.prove_host(endpoint).await?;
            }
            return Ok(self.acknowledge(dispatch, attempt).await?.into());
        }
        let now = self.clock.now();
        let warning = FailingNotice::after_failure(endpoint, delivery, &attempt, self.schedule, now);
        let switched_off = DisabledNotice::new(endpoint, delivery, &attempt, now);
        match after_failure(dispatch, *lease, attempt, endpoint.epoch, delivery.is_test, self.schedule, now) {
            AfterFailure::Again(wait, step) => {
                // What makes the next attempt come is prepared before the record, so a crash in between cannot lose it.
                // Until the record makes its token the delivery's, the message is void.
                if let Wait::Delayed { seconds } = wait {
                    let next = QueueMessage::Attempt(dispatch.after(*lease));
                    let sent = self.queues.send_one(Lane::Retry, next, seconds).await;
                    sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
                }
                let (_, wake_at) = wait.times(self.schedule, now);
                if !has_drain.load(Ordering::Relaxed) {
                    self.store.wake_drain_by(dispatch.account_id, wake_at, now).await?;
                }
                let outcome = match warning {
                    Some(notice) => self.warn(made, &step, &notice).await?,
                    None => self.step(dispatch, &step, DispatchOutcome::Unacknowledged).await?,
                };
                Ok(AttemptResult { outcome, wake_at: Some(wake_at), is_prompt: None })
            }
            AfterFailure::GiveUp(step) if !delivery.is_test => {
                Ok(self.give_up(made, &step, &switched_off).await?.into())
            }
            AfterFailure::GiveUp(step) => Ok(self.step(dispatch, &step, DispatchOutcome::Unacknowledged).await?.into()),
        }
    }

    async fn acknowledge(&self, dispatch: &Dispatch, attempt: Attempt) -> Result<DispatchOutcome, StoreError> {
        let step = succeed(dispatch, attempt);
        let mut tries = 1;
        loop {
            match self.store.apply(dispatch.delivery_id, dispatch.endpoint_id, &step).await {
                Ok(_) => return Ok(DispatchOutcome::Delivered),
                Err(error) if is_transient(&error) && tries < MAX_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends a delivery whose last attempt failed, switches its endpoint off, and sends the notice for its owner. If some
    /// of its attempts failed before the endpoint was switched on again or got another URL, only the delivery fails.
    async fn give_up(
        &self,
        made: &Claimed<'_>,
        step: &Transition,
        notice: &DisabledNotice,
    ) -> Result<DispatchOutcome, StoreError> {
        let Claimed { dispatch, delivery, endpoint, .. } = made;
        if delivery.progress.epoch != Some(endpoint.epoch) {
            return self.step(dispatch, step, DispatchOutcome::Exhausted).await;
        }
        let wake_at = self.notice_wake_at(notice.disabled_at);
        match self.store.switch_off(step, endpoint, notice, wake_at).await? {
            DisableOutcome::Done => {
                let DisabledNotice { about: About { endpoint_id, account_id, .. }, delivery_id, .. } = notice;
                tracing::warn!(%endpoint_id, %account_id, %delivery_id, "switched off");
                self.send_notice(notice.about.notice_id).await;
                Ok(DispatchOutcome::SwitchedOff)
            }
            // Since it was read, the endpoint was switched off or on again, got another URL, or was removed: only the
            // delivery fails.
            DisableOutcome::EndpointMoved => self.step(dispatch, step, DispatchOutcome::Exhausted).await,
            DisableOutcome::DeliveryMoved => Ok(DispatchOutcome::Void),
        }
    }

    pub(crate) async fn step(
        &self,
        dispatch: &Dispatch,
        step: &Transition,
        made: DispatchOutcome,
    ) -> Result<DispatchOutcome, StoreError> {
        let is_made = self.store.apply(dispatch.delivery_id, dispatch.endpoint_id, step).await?;
        Ok(if is_made { made } else { DispatchOutcome::Void })
    }

    /// Records a failed attempt, and warns the owner.
    ///
    /// An error of the two together is only logged, because it must not keep the failure from being recorded: the
    /// attempt would be made again. The next attempt that fails tries again to warn. If both were written and only the
    /// answer was lost, the lease has ended, so nothing is recorded twice.
    async fn warn(
        &self,
        made: &Claimed<'_>,
        step: &Transition,
        notice: &FailingNotice,
    ) -> Result<DispatchOutcome, StoreError> {
        let Claimed { dispatch, endpoint, .. } = made;
        match self.store.warn(step, endpoint, notice, self.notice_wake_at(notice.failing_at)).await {
            Ok(DisableOutcome::Done) => {
                let FailingNotice { about: About { endpoint_id, account_id, .. }, delivery_id, .. } = notice;
                tracing::warn!(%endpoint_id, %account_id, %delivery_id, "failing");
                self.send_notice(notice.about.notice_id).await;
                Ok(DispatchOutcome::Unacknowledged)
            }
            // Since it was read, the owner was warned because of another delivery, or the endpoint was switched off or
            // on again, got another URL, or was removed.
            Ok(DisableOutcome::EndpointMoved) => self.step(dispatch, step, DispatchOutcome::Unacknowledged).await,
            Ok(DisableOutcome::DeliveryMoved) => Ok(DispatchOutcome::Void),
            Err(error) => {
                tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot warn the owner");
                self.step(dispatch, step, DispatchOutcome::Unacknowledged).await
            }
        }
    }

    /// Sends a notice that is stored. After an error it waits for `sweep`.
    async fn send_notice(&self, notice_id: NoticeId) {
        if let Err(error) = self.notices.send(notice_id).await {
            tracing::warn!(%notice_id, %error, "cannot send the notice yet");
        }
    }

    /// Returns when `sweep` sends a notice that is stored now.
    fn notice_wake_at(&self, now: Timestamp) -> Timestamp {
        self.schedule.after(now, NOTICE_SECONDS)
    }
}
