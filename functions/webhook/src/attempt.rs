//! Makes one attempt: claims it, signs the body and sends it.

use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use platform::store::StoreError;
use secrets::{EndpointSecret, KeyringAccessError};
use types::rotation::Secrets;
use types::timestamp::Timestamp;
use webhooks::delivery::{Attempt, Delivery, Dispatch, MAX_CLAIMS, StepRefusal, Token, claim, refusal};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::StepOutcome;

use crate::Webhook;
use crate::headers::headers;
use crate::outcome::DispatchOutcome;
use crate::transport::Posted;

/// An attempt that takes longer than this marks its endpoint as slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long an endpoint stays marked as slow, in milliseconds.
const SLOW_FOR_MILLIS: i64 = 60_000;

impl Webhook {
    /// Makes the attempt that a message calls for, unless the delivery has moved on.
    pub(crate) async fn attempt(
        &self,
        dispatch: &Dispatch,
        endpoint: &WebhookEndpoint,
    ) -> Result<DispatchOutcome, StoreError> {
        // Before the claim: without a signature there is no attempt.
        let secrets = self.keyring.open(endpoint.id, &endpoint.secrets).await.map_err(|error| match error {
            KeyringAccessError::Unread(_) | KeyringAccessError::Unwritten(_) => {
                StoreError::Unavailable(error.to_string())
            }
            // Waiting does not help here. The message ends in the dead-letter queue, where an operator sees it, and
            // `sweep` sends another for the delivery.
            KeyringAccessError::Invalid(_) | KeyringAccessError::Sealed(_) => {
                StoreError::corrupt(format!("secrets of endpoint {}: {error}", endpoint.id))
            }
        })?;
        let lease = Token::random();
        let now = self.clock.now();
        let delivery = match self.store.step(dispatch.delivery_id, &claim(dispatch, lease, now)).await? {
            StepOutcome::Changed(delivery) => delivery,
            StepOutcome::Refused(found) => {
                let progress = found.as_ref().map(|found| &found.progress);
                match (refusal(progress, dispatch, lease, now), found) {
                    (StepRefusal::Ours, Some(delivery)) => delivery,
                    (StepRefusal::Leased(until), _) => return Ok(self.wait_for(*dispatch, until).await),
                    (StepRefusal::Ours, None) | (StepRefusal::Void, _) => return Ok(DispatchOutcome::Void),
                }
            }
        };
        if delivery.progress.claims > MAX_CLAIMS {
            return self.record(dispatch, &delivery, endpoint, lease, Attempt::lost(now)).await;
        }
        let attempt = self.send(&delivery, endpoint, &secrets).await?;
        self.record(dispatch, &delivery, endpoint, lease, attempt).await
    }

    async fn send(
        &self,
        delivery: &Delivery,
        endpoint: &WebhookEndpoint,
        secrets: &Secrets<EndpointSecret>,
    ) -> Result<Attempt, StoreError> {
        let at = self.clock.now();
        if delivery.is_first_attempt() {
            let waited = u64::try_from(at.millis() - delivery.created_at.millis()).unwrap_or_default();
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
        }
        let headers = headers(delivery, secrets, at).map_err(|error| StoreError::Defect(error.to_string()))?;
        let body = Bytes::copy_from_slice(delivery.body.as_bytes());
        let mut post = std::pin::pin!(self.transport.post(&endpoint.url, headers, body));
        let posted = match tokio::time::timeout(SLOW_AFTER, &mut post).await {
            Ok(posted) => posted,
            Err(_) => tokio::join!(post, self.mark_slow(endpoint)).0,
        };
        Ok(recorded_attempt(at, posted))
    }

    /// Marks an endpoint as slow. An error is only logged: without the mark, other receivers may wait longer, but
    /// nothing is lost.
    async fn mark_slow(&self, endpoint: &WebhookEndpoint) {
        let now = self.clock.now();
        if endpoint.is_slow(now) {
            return;
        }
        let until = now.plus_millis(SLOW_FOR_MILLIS);
        if let Err(error) = self.store.mark_slow(endpoint.account_id, endpoint.id, until).await {
            tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot mark the endpoint as slow");
        }
    }
}

fn recorded_attempt(at: Timestamp, posted: Posted) -> Attempt {
    let (status, error) = match posted.outcome {
        Ok(status @ 200..=299) => (Some(status), None),
        Ok(status) => (Some(status), Some(format!("the endpoint answered {status}"))),
        Err(error) => (None, Some(error.to_string())),
    };
    let latency_ms = u32::try_from(posted.latency.as_millis()).unwrap_or(u32::MAX);
    Attempt { at, status, latency_ms, error, response: posted.excerpt }
}
