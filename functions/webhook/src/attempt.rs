//! Makes one attempt: claims it, signs the body and sends it.

use std::sync::PoisonError;
use std::time::Duration;

use bytes::Bytes;
use platform::store::StoreError;
use secrets::{EndpointSecret, KeyringAccessError};
use types::rotation::Secrets;
use types::timestamp::Timestamp;
use webhooks::delivery::{
    Attempt, Delivery, Dispatch, MAX_CLAIMS, StepRefusal, Token, Transition, claim, claim_watched, refusal,
};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{Put, StepOutcome};

use crate::Webhook;
use crate::headers::headers;
use crate::outcome::DispatchOutcome;
use crate::received::Received;
use crate::transport::Posted;

/// An attempt that takes longer than this marks its endpoint as slow.
pub(crate) const SLOW_AFTER: Duration = Duration::from_secs(1);
/// How long an endpoint stays marked as slow, in milliseconds.
const SLOW_FOR_MILLIS: i64 = 60_000;

/// What became of a message's attempt.
pub(crate) struct Made {
    pub(crate) outcome: Result<DispatchOutcome, StoreError>,
    /// Whether something was sent, and the endpoint was done with it before it would be marked as slow.
    pub(crate) is_prompt: bool,
}

/// A claim of an attempt.
enum Claim {
    /// This function makes the attempt.
    Ours(Box<Delivery>),
    /// Somebody else makes it, until this time at the latest.
    Leased(Timestamp),
    Void,
}

impl Webhook {
    /// Makes the attempt that a message calls for, unless the delivery has moved on.
    pub(crate) async fn attempt(&self, message: &Received, endpoint: &WebhookEndpoint) -> Made {
        let mut is_prompt = false;
        let outcome = self.try_attempt(message, endpoint, &mut is_prompt).await;
        Made { outcome, is_prompt }
    }

    async fn try_attempt(
        &self,
        message: &Received,
        endpoint: &WebhookEndpoint,
        is_prompt: &mut bool,
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
        let (lease, now) = (Token::random(), self.clock.now());
        let delivery = match self.claim(message, lease, now).await? {
            Claim::Ours(delivery) => delivery,
            Claim::Leased(until) => return Ok(self.wait_for(message, until).await),
            Claim::Void => return Ok(DispatchOutcome::Void),
        };
        let attempt = if delivery.progress.claims > MAX_CLAIMS {
            Attempt::lost(now)
        } else {
            let (attempt, was_prompt) = self.send(&delivery, endpoint, &secrets).await?;
            *is_prompt = was_prompt;
            attempt
        };
        self.record(&message.dispatch, &delivery, endpoint, lease, attempt).await
    }

    /// Claims an attempt. If the message carries the delivery, one write stores the delivery as claimed.
    async fn claim(&self, message: &Received, lease: Token, now: Timestamp) -> Result<Claim, StoreError> {
        let Some(carried) = &message.carried else {
            return self.claim_stored(&message.dispatch, &claim(&message.dispatch, lease, now), lease, now).await;
        };
        let delivery = carried.claimed(lease, now);
        match self.store.put_delivery(&delivery).await? {
            Put::New => Ok(Claim::Ours(Box::new(delivery))),
            Put::Present(found) if found.progress.lease.is_some_and(|held| held.id == lease) => Ok(Claim::Ours(found)),
            Put::Present(_) => {
                let step = claim_watched(&message.dispatch, lease, self.schedule, now);
                self.claim_stored(&message.dispatch, &step, lease, now).await
            }
        }
    }

    async fn claim_stored(
        &self,
        dispatch: &Dispatch,
        step: &Transition,
        lease: Token,
        now: Timestamp,
    ) -> Result<Claim, StoreError> {
        Ok(match self.store.step(dispatch.delivery_id, step).await? {
            StepOutcome::Changed(delivery) => Claim::Ours(delivery),
            StepOutcome::Refused(found) => {
                let progress = found.as_ref().map(|found| &found.progress);
                match (refusal(progress, dispatch, lease, now), found) {
                    (StepRefusal::Ours, Some(delivery)) => Claim::Ours(delivery),
                    (StepRefusal::Leased(until), _) => Claim::Leased(until),
                    (StepRefusal::Ours, None) | (StepRefusal::Void, _) => Claim::Void,
                }
            }
        })
    }

    /// Sends a delivery. Returns the attempt, and whether the endpoint was done before it would be marked as slow. The
    /// body of its response counts as well, because it occupies the worker.
    async fn send(
        &self,
        delivery: &Delivery,
        endpoint: &WebhookEndpoint,
        secrets: &Secrets<EndpointSecret>,
    ) -> Result<(Attempt, bool), StoreError> {
        let at = self.clock.now();
        if delivery.is_first_attempt() {
            let waited = u64::try_from(at.millis() - delivery.created_at.millis()).unwrap_or_default();
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
        }
        let headers = headers(delivery, secrets, at).map_err(|error| StoreError::Defect(error.to_string()))?;
        let body = Bytes::copy_from_slice(delivery.body.as_bytes());
        let mut post = std::pin::pin!(self.transport.post(&endpoint.url, headers, body));
        let (posted, was_prompt) = match tokio::time::timeout(SLOW_AFTER, &mut post).await {
            Ok(posted) => (posted, true),
            Err(_) => (tokio::join!(post, self.mark_slow(endpoint)).0, false),
        };
        Ok((recorded_attempt(at, posted), was_prompt))
    }

    /// Marks an endpoint as slow, even if it is marked already: as long as it keeps the slow lane waiting, it must not
    /// come back to the other lanes every minute. An error is only logged: without the mark, other receivers may wait
    /// longer, but nothing is lost.
    async fn mark_slow(&self, endpoint: &WebhookEndpoint) {
        let until = self.clock.now().plus_millis(SLOW_FOR_MILLIS);
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
