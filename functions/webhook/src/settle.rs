//! Records attempts and what follows from them: the next attempt, a switch-off, and notices for the owner. Every notice is
//! stored before it is sent. If it cannot be sent at once, `sweep` sends it.

use std::sync::atomic::Ordering;

use common::ids::NoticeId;
use common::store::StoreError;
use common::timestamp::Timestamp;
use webhooks::delivery::{
    AfterFailure, Attempt, Delivery, Dispatch, Lane, StepRefusal, Token, Transition, after_failure, end, hold, refusal,
    succeed,
};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::notice::{About, DisabledNotice, FailingNotice, FullNotice, RecoveredNotice};
use webhooks::store::{DisableOutcome, StepOutcome};
use webhooks::{Call, Wait};

use crate::Webhook;
use crate::attempt::Claimed;
use crate::received::{DispatchOutcome, Received};

/// How often the function tries to record an acknowledgement. Without the record, the delivery is sent again.
const MAX_TRIES: u32 = 3;
/// The delay of a message whose endpoint was changed at the same moment, in seconds.
const AGAIN_SECONDS: u32 = 1;

/// `sweep` sends a notice this many seconds after it was stored, if it was not sent at once.
const NOTICE_SECONDS: u32 = 60;

impl Webhook {
    /// Records an attempt and what follows from it.
    pub(crate) async fn record(&self, made: &Claimed<'_>, attempt: Attempt) -> Result<DispatchOutcome, StoreError> {
        let Claimed { dispatch, delivery, endpoint, lease, has_drain } = made;
        if attempt.is_acknowledged() {
            // Before the record: whoever sees that the test was delivered may send the other deliveries again.
            if delivery.is_test && endpoint.host_changed_at.is_some() {
                self.store.prove_host(endpoint).await?;
            }
            return self.record_success(made, attempt).await;
        }
        let now = self.clock.now();
        let warning = FailingNotice::after_failure(endpoint, delivery, &attempt, self.schedule, now);
        match after_failure(dispatch, *lease, attempt, endpoint.epoch, delivery.is_test, self.schedule, now) {
            AfterFailure::Again(wait, step) => {
                // What makes the next attempt come is prepared before the record, so a crash in between cannot lose it.
                // Until the record makes its token the delivery's, the message is void.
                if let Wait::Delayed { seconds } = wait {
                    let call = Call::new(dispatch.after(*lease), seconds);
                    let sent = self.queues.call_once(Lane::Retry, call).await;
                    sent.map_err(|unsent| StoreError::Unavailable(unsent.to_string()))?;
                }
                if !has_drain.load(Ordering::Relaxed) {
                    let (_, wake_at) = wait.times(self.schedule, now);
                    self.store.call_drain_by(dispatch.account_id, wake_at, now).await?;
                }
                match warning {
                    Some(notice) => self.warn(made, &step, &notice).await,
                    None => self.step(dispatch, &step, DispatchOutcome::Unacknowledged).await,
                }
            }
            AfterFailure::GiveUp(step) if !delivery.is_test => self.give_up(made, &step, now).await,
            AfterFailure::GiveUp(step) => self.step(dispatch, &step, DispatchOutcome::Unacknowledged).await,
        }
    }

    /// Records an acknowledgement. If the owner was warned of failures, it is told that they are over.
    async fn record_success(&self, made: &Claimed<'_>, attempt: Attempt) -> Result<DispatchOutcome, StoreError> {
        let Claimed { dispatch, delivery, endpoint, .. } = made;
        let Some(notice) = RecoveredNotice::after_success(endpoint, delivery, &attempt, self.clock.now()) else {
            return self.settle_success(dispatch, attempt).await;
        };
        // Noted before the record, so a crash in between does not lose the notice. Noted after the record as well, because
        // another delivery may have been the last one at the same moment.
        let mut noted = self.end_warning(made, &notice).await;
        let outcome = self.settle_success(dispatch, attempt).await;
        if noted.is_none() {
            noted = self.end_warning(made, &notice).await;
        }
        if let Some(id) = noted {
            self.send_notice(id).await;
        }
        outcome
    }

    async fn settle_success(&self, dispatch: &Dispatch, attempt: Attempt) -> Result<DispatchOutcome, StoreError> {
        let step = succeed(dispatch, attempt);
        let mut tries = 1;
        loop {
            match self.store.settle(dispatch.delivery_id, dispatch.endpoint_id, &step).await {
                Ok(_) => return Ok(DispatchOutcome::Delivered),
                Err(StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_)) if tries < MAX_TRIES => {
                    tries += 1;
                }
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
        now: Timestamp,
    ) -> Result<DispatchOutcome, StoreError> {
        let Claimed { dispatch, delivery, endpoint, .. } = made;
        if delivery.progress.epoch != Some(endpoint.epoch) {
            return self.step(dispatch, step, DispatchOutcome::Exhausted).await;
        }
        let notice = DisabledNotice::new(endpoint, dispatch.delivery_id, now);
        match self.store.switch_off(step, endpoint, &notice, self.notice_wake_at(now)).await? {
            DisableOutcome::Done => {
                let DisabledNotice { about: About { endpoint_id, account_id, .. }, delivery_id, .. } = &notice;
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
        let is_made = self.store.settle(dispatch.delivery_id, dispatch.endpoint_id, step).await?;
        Ok(if is_made { made } else { DispatchOutcome::Void })
    }

    /// Holds a delivery whose endpoint is off.
    pub(crate) async fn hold(
        &self,
        message: &Received,
        endpoint: &WebhookEndpoint,
    ) -> Result<DispatchOutcome, StoreError> {
        let (dispatch, now) = (&message.dispatch, self.clock.now());
        let mut held = match &message.carried {
            Some(carried) => self.store.hold_new(&carried.held(now), endpoint).await?,
            None => DisableOutcome::DeliveryMoved,
        };
        if held == DisableOutcome::DeliveryMoved {
            held = self.store.hold(dispatch.delivery_id, &hold(dispatch, now), endpoint).await?;
        }
        match held {
            DisableOutcome::Done => Ok(DispatchOutcome::Held),
            DisableOutcome::EndpointMoved => {
                Ok(self.postpone(message, AGAIN_SECONDS, "its endpoint changed".to_owned()).await)
            }
            DisableOutcome::DeliveryMoved => {
                let found = self.store.delivery(dispatch.delivery_id).await?;
                self.refused(message, found.as_ref(), now).await
            }
        }
    }

    /// Ends a delivery whose endpoint was removed. If it was never stored, there is nothing to end.
    pub(crate) async fn end(&self, message: &Received) -> Result<DispatchOutcome, StoreError> {
        let now = self.clock.now();
        match self
            .store
            .step(message.dispatch.delivery_id, message.dispatch.endpoint_id, &end(&message.dispatch, now))
            .await?
        {
            StepOutcome::Changed(_) => Ok(DispatchOutcome::Void),
            StepOutcome::Refused(found) => self.refused(message, found.as_deref(), now).await,
        }
    }

    async fn refused(
        &self,
        message: &Received,
        found: Option<&Delivery>,
        now: Timestamp,
    ) -> Result<DispatchOutcome, StoreError> {
        let progress = found.map(|found| &found.progress);
        // A random token matches no lease, so the refusal is never `Ours`.
        match refusal(progress, &message.dispatch, Token::random(), now) {
            StepRefusal::Leased(until) => Ok(self.wait_for(message, until).await),
            StepRefusal::Ours | StepRefusal::Void => Ok(DispatchOutcome::Void),
        }
    }

    /// Postpones a message until the lease on its attempt has ended.
    pub(crate) async fn wait_for(&self, message: &Received, until: Timestamp) -> DispatchOutcome {
        let millis = until.millis().saturating_sub(self.clock.now().millis()).max(0);
        let seconds = u32::try_from(millis / 1_000 + 1).unwrap_or(u32::MAX);
        self.postpone(message, seconds, "another instance is making the attempt".to_owned()).await
    }

    /// Records a failed attempt, and warns the owner.
    ///
    /// An error of the two together is only logged, because it must not keep the failure from being recorded: the
    /// attempt would be made again. The next attempt that fails tries again to warn. If both were written and only the
    /// answer was lost, the lease has ended, so nothing is recorded twice.
    pub(crate) async fn warn(
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

    /// Notes that an endpoint has recovered, unless another delivery to it has failed for as long as one that warns.
    /// Returns the notice's id if it is to be sent.
    ///
    /// An error is only logged, because it must not keep the acknowledgement from being recorded. The next acknowledged
    /// attempt tries again.
    pub(crate) async fn end_warning(&self, made: &Claimed<'_>, notice: &RecoveredNotice) -> Option<NoticeId> {
        let Claimed { delivery, endpoint, .. } = made;
        let wake_at = self.notice_wake_at(notice.recovered_at);
        let ended = async {
            let is_failing = self.store.is_failing(endpoint, delivery.id).await?;
            Ok::<_, StoreError>(!is_failing && self.store.end_warning(endpoint, notice, wake_at).await?)
        };
        match ended.await {
            Ok(is_noted) => is_noted.then_some(notice.about.notice_id),
            Err(error) => {
                tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot note that the endpoint has recovered");
                None
            }
        }
    }

    /// Notes that an endpoint is full, and tells its owner. An error is only logged: the next run of the drain tries
    /// again.
    pub(crate) async fn mark_full(&self, endpoint: &mut WebhookEndpoint, notice: &FullNotice) {
        match self.store.mark_full(endpoint, notice, self.notice_wake_at(notice.full_at)).await {
            Ok(is_told) => {
                tracing::warn!(endpoint_id = %endpoint.id, waiting = notice.waiting, "full");
                endpoint.full_since = Some(notice.full_at);
                if is_told {
                    self.send_notice(notice.about.notice_id).await;
                }
            }
            Err(error) => tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot note that the endpoint is full"),
        }
    }

    /// Sends a notice that is stored. After an error it waits for `sweep`.
    pub(crate) async fn send_notice(&self, notice_id: NoticeId) {
        if let Err(error) = self.notices.send(notice_id).await {
            tracing::warn!(%notice_id, %error, "cannot send the notice yet");
        }
    }

    /// Returns when `sweep` sends a notice that is stored now.
    pub(crate) fn notice_wake_at(&self, now: Timestamp) -> Timestamp {
        self.schedule.after(now, NOTICE_SECONDS)
    }
}
