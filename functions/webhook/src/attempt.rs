//! Makes one attempt that is claimed: signs the body, sends it, and has the answer recorded.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use common::rotation::Secrets;
use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use http::HeaderMap;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue, InvalidHeaderValue, USER_AGENT};
use tokio::time::{Instant, sleep_until};
use webhooks::delivery::{
    Attempt, Carried, Delivery, Dispatch, MAX_CLAIMS, StepRefusal, Token, Transition, claim, claim_watched, overdue_at,
    refusal, release,
};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::promptness::{CONNECT_FOR, SLOW_AFTER};
use webhooks::secrets::{EndpointSecret, KeyringAccessError, SealError, service_signature, standard_signature};
use webhooks::store::{Put, StepOutcome};

use crate::Webhook;
use crate::outcome::is_transient;
use crate::record::{AttemptResult, Claimed};
use crate::transport::{PostError, Posted, Written};

/// A claim of an attempt that a message calls for.
pub(crate) enum Claim {
    /// This function makes the attempt.
    Made(Box<Delivery>),
    /// Somebody else makes it, until this time at the latest.
    Leased(Timestamp),
    Void,
}

impl Webhook {
    /// Makes an attempt, and records it. What the instance lacks for it is no failure of the receiver: the claim is taken
    /// back.
    pub(crate) async fn make(
        &self,
        claimed: &Claimed<'_>,
        secrets: &Secrets<EndpointSecret>,
    ) -> Result<AttemptResult, StoreError> {
        let progress = &claimed.delivery.progress;
        if progress.claims > MAX_CLAIMS {
            return self.record(claimed, Attempt::lost(self.clock.now())).await;
        }
        match self.send(claimed, secrets).await {
            Ok((attempt, is_prompt)) => {
                let recorded = self.record(claimed, attempt).await?;
                Ok(AttemptResult { is_prompt: Some(is_prompt), ..recorded })
            }
            Err(error) => {
                if is_transient(&error) {
                    self.release(claimed).await;
                }
                Err(error)
            }
        }
    }

    /// Takes a claim back. If that fails, its lease ends by itself.
    pub(crate) async fn release(&self, claimed: &Claimed<'_>) {
        let Claimed { dispatch, delivery, endpoint, lease, .. } = claimed;
        let step = release(&delivery.progress, *lease);
        if let Err(error) = self.store.apply(dispatch.delivery_id, endpoint.id, &step).await {
            tracing::warn!(delivery_id = %dispatch.delivery_id, %error, "cannot take a claim back");
        }
    }

    /// Returns the opened secrets of an endpoint.
    pub(crate) async fn secrets(&self, endpoint: &WebhookEndpoint) -> Result<Secrets<EndpointSecret>, StoreError> {
        self.keyring.open(endpoint.id, &endpoint.secrets).await.map_err(|error| match error {
            KeyringAccessError::Unread(_) | KeyringAccessError::Unwritten(_) => {
                StoreError::Unavailable(error.to_string())
            }
            // A rotation has added the key a moment ago. If the key is lost, an operator must see it.
            KeyringAccessError::Sealed(SealError::UnknownKey) => {
                self.keyless.fetch_add(1, Ordering::Relaxed);
                StoreError::Unavailable(format!("secrets of endpoint {}: {error}", endpoint.id))
            }
            // Waiting does not help here. An operator must see it.
            KeyringAccessError::Invalid(_) | KeyringAccessError::Sealed(_) => {
                StoreError::corrupt(format!("secrets of endpoint {}: {error}", endpoint.id))
            }
        })
    }

    /// Claims an attempt. If the message carries the delivery, one write stores the delivery as claimed.
    pub(crate) async fn claim(
        &self,
        dispatch: &Dispatch,
        carried: Option<&Carried>,
        lease: Token,
        now: Timestamp,
    ) -> Result<Claim, StoreError> {
        let Some(carried) = carried else {
            return self.claim_stored(dispatch, &claim(dispatch, lease, now), lease, now).await;
        };
        let delivery = carried.claimed(lease, now);
        match self.store.put_delivery(&delivery).await? {
            Put::New => Ok(Claim::Made(Box::new(delivery))),
            Put::Present(found) if found.progress.lease.is_some_and(|held| held.id == lease) => Ok(Claim::Made(found)),
            Put::Present(_) => {
                let wake_at = overdue_at(self.schedule, now);
                self.store.wake_drain_by(carried.account_id, wake_at, now).await?;
                let step = claim_watched(dispatch, lease, self.schedule, now);
                self.claim_stored(dispatch, &step, lease, now).await
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
        Ok(match self.store.step(dispatch.delivery_id, dispatch.endpoint_id, step).await? {
            StepOutcome::Changed(delivery) => Claim::Made(delivery),
            StepOutcome::Refused(found) => {
                let progress = found.as_ref().map(|found| &found.progress);
                match (refusal(progress, dispatch, lease, now), found) {
                    (StepRefusal::AlreadyClaimedByUs, Some(delivery)) => Claim::Made(delivery),
                    (StepRefusal::Leased(until), _) => Claim::Leased(until),
                    (StepRefusal::AlreadyClaimedByUs, None) | (StepRefusal::Void, _) => Claim::Void,
                }
            }
        })
    }

    /// Sends a delivery. Returns the attempt, and whether the receiver was not slow. The body of its response counts as
    /// well, because it occupies the worker.
    async fn send(
        &self,
        claimed: &Claimed<'_>,
        secrets: &Secrets<EndpointSecret>,
    ) -> Result<(Attempt, bool), StoreError> {
        let Claimed { delivery, endpoint, .. } = claimed;
        let at = self.clock.now();
        if delivery.is_first_attempt() {
            let waited = u64::try_from(at.millis() - delivery.created_at.millis()).unwrap_or_default();
            self.waits.lock().unwrap_or_else(PoisonError::into_inner).push(waited);
        }
        let headers = headers(delivery, secrets, at).map_err(|error| StoreError::Defect(error.to_string()))?;
        let body = Bytes::copy_from_slice(delivery.body.as_bytes());
        let written = Written::default();
        let mut post = std::pin::pin!(self.transport.post_noting(&endpoint.url, headers, body, &written));
        let (begun, mut lags, mut marks) = (Instant::now(), 0, FuturesUnordered::new());
        let posted = loop {
            tokio::select! {
                // What has come in time is not late, however late this looks.
                biased;
                posted = &mut post => break posted,
                Some(()) = marks.next() => {}
                () = written.changed() => {}
                () = sleep_until(next_lag(begun, &written, lags)) => {
                    lags += 1;
                    if self.promptness.lagged(endpoint.id, lags) && endpoint.is_prompt && marks.is_empty() {
                        marks.push(self.mark_slow(endpoint));
                    }
                }
            }
        };
        while marks.next().await.is_some() {}
        if posted.outcome == Err(PostError::Exhausted) {
            return Err(StoreError::Unavailable(PostError::Exhausted.to_string()));
        }
        if lags == 0 {
            self.promptness.answered(endpoint.id);
        }
        Ok((recorded_attempt(at, posted), lags == 0))
    }

    /// Notes that an endpoint is slow, so that its deliveries wait for the drain of their account. An error is only
    /// logged: without the note, other receivers may wait longer, but nothing is lost.
    async fn mark_slow(&self, endpoint: &WebhookEndpoint) {
        if let Err(error) = self.store.mark_prompt(endpoint, false, self.clock.now()).await {
            tracing::warn!(endpoint_id = %endpoint.id, %error, "cannot note that the endpoint is slow");
        }
    }
}

/// Returns when an attempt that lags already by this many seconds does so by one more.
fn next_lag(begun: Instant, written: &Written, lags: u32) -> Instant {
    written.at().map_or(begun + CONNECT_FOR, |at| at + SLOW_AFTER) + lags * SLOW_AFTER
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

/// Builds the headers of an attempt that is sent at `sent_at` (specification 6.4.1): the service's own, and those of
/// Standard Webhooks.
fn headers(
    delivery: &Delivery,
    secrets: &Secrets<EndpointSecret>,
    sent_at: Timestamp,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let body = delivery.body.as_bytes();
    let id = HeaderValue::try_from(delivery.id.to_string())?;
    let timestamp = HeaderValue::from(sent_at.seconds());
    let mut headers = HeaderMap::with_capacity(12);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static("marketplace-webhooks/1"));
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    let service = service_signature(secrets.active(sent_at), body);
    let standard = standard_signature(secrets.valid(sent_at), delivery.id, sent_at, body);
    for (name, value) in [
        ("x-service-signature", HeaderValue::try_from(service)?),
        ("x-service-event", HeaderValue::from_static(delivery.event.as_str())),
        ("x-service-delivery-id", id.clone()),
        ("x-service-timestamp", timestamp.clone()),
        ("webhook-id", id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", HeaderValue::try_from(standard)?),
    ] {
        headers.insert(HeaderName::from_static(name), value);
    }
    if let Some(event_id) = delivery.event_id {
        let event_id = HeaderValue::try_from(event_id.to_string())?;
        headers.insert(HeaderName::from_static("x-service-event-id"), event_id);
    }
    if delivery.is_test {
        headers.insert(HeaderName::from_static("x-service-test"), HeaderValue::from_static("true"));
    }
    Ok(headers)
}
