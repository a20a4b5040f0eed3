//! Warns owners of failures, tells them of recoveries, and sends notices. Every notice is stored before it is sent. If
//! it cannot be sent at once, `sweep` sends it.

use platform::store::StoreError;
use types::ids::NoticeId;
use types::timestamp::Timestamp;
use webhooks::delivery::Transition;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::notice::{FailingNotice, FullNotice, RecoveredNotice};
use webhooks::store::DisableOutcome;

use crate::Webhook;
use crate::attempt::Claimed;
use crate::outcome::DispatchOutcome;

/// `sweep` sends a notice this many seconds after it was stored, if it was not sent at once.
const NOTICE_SECONDS: u32 = 60;

impl Webhook {
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
                let FailingNotice { endpoint_id, account_id, delivery_id, .. } = notice;
                tracing::warn!(%endpoint_id, %account_id, %delivery_id, "failing");
                self.send_notice(notice.notice_id).await;
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
            Ok(is_noted) => is_noted.then_some(notice.notice_id),
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
                    self.send_notice(notice.notice_id).await;
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
        now.plus_millis(i64::from(self.schedule.scaled(NOTICE_SECONDS)) * 1_000)
    }
}
