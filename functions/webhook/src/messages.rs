//! What messages call for: an attempt, or what becomes of a delivery that gets none now.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use aws_lambda_events::sqs::SqsMessage;
use common::backoff::equal_jitter_seconds;
use common::store::StoreError;
use common::timestamp::Timestamp;
use futures_util::future::join_all;
use webhooks::QueueMessage;
use webhooks::delivery::{
    Carried, Delivery, Dispatch, Lane, StepRefusal, Token, end, hold, overdue_at, refusal, wait, watch,
};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::{DisableOutcome, Hold, Put, StepOutcome};

use crate::Webhook;
use crate::attempt::Claim;
use crate::outcome::{DispatchOutcome, is_transient};
use crate::record::Claimed;

/// The attribute in which SQS counts how often it has delivered a message.
const RECEIVE_COUNT: &str = "ApproximateReceiveCount";
/// The delay of a message if the store or the keyring is unavailable, in seconds: a random time from this to twice
/// this.
const AWAY_SECONDS: u32 = 10;
/// The delay of a message whose endpoint was changed at the same moment, in seconds.
const AGAIN_SECONDS: u32 = 1;

/// A message that calls for an attempt.
pub(crate) struct Received {
    /// The message's number in its batch.
    pub(crate) number: usize,
    pub(crate) dispatch: Dispatch,
    /// The delivery, if the message carries it.
    pub(crate) carried: Option<Arc<Carried>>,
}

/// Returns whether SQS has delivered a message before. If SQS does not tell, it may have.
pub(crate) fn is_repeated(record: &SqsMessage) -> bool {
    record.attributes.get(RECEIVE_COUNT).is_none_or(|count| count != "1")
}

/// Returns the delay of a copy for which something is unavailable, in seconds. It is drawn, so that messages that were
/// postponed together do not come back together.
pub(crate) fn away_seconds() -> u32 {
    equal_jitter_seconds(2 * AWAY_SECONDS)
}

impl Webhook {
    /// Makes the attempt that a message calls for, unless the delivery has moved on.
    pub(crate) async fn attempt(
        &self,
        message: &Received,
        endpoint: &WebhookEndpoint,
    ) -> Result<DispatchOutcome, StoreError> {
        // Before the claim: without a signature there is no attempt, and an attempt that has to wait is not claimed.
        let secrets = self.secrets(endpoint).await?;
        let (dispatch, lease, now) = (message.dispatch, Token::random(), self.clock.now());
        let delivery = match self.claim(&dispatch, message.carried.as_deref(), lease, now).await? {
            Claim::Made(delivery) => delivery,
            Claim::Leased(until) => return Ok(self.wait_for(message, until).await),
            Claim::Void => return Ok(DispatchOutcome::Void),
        };
        let claimed = Claimed { dispatch, delivery, endpoint, lease, has_drain: Arc::new(AtomicBool::new(false)) };
        Ok(self.make(&claimed, &secrets).await?.outcome)
    }

    /// Stores a delivery whose message has come again, and gives it a wake-up. If the message makes its function crash
    /// each time, the drain of its account finds the delivery.
    pub(crate) async fn store(&self, carried: &Carried) -> Result<(), StoreError> {
        let now = self.clock.now();
        let wake_at = overdue_at(self.schedule, now);
        self.store.wake_drain_by(carried.account_id, wake_at, now).await?;
        let Put::Present(found) = self.store.put_delivery(&carried.stored(wake_at)).await? else {
            return Ok(());
        };
        match watch(&found.progress, wake_at) {
            Some(step) => self.store.apply(found.id, found.endpoint_id, &step).await.map(drop),
            None => Ok(()),
        }
    }

    /// Lets attempts to an endpoint wait for the drain of its account, and calls it.
    pub(crate) async fn wait(
        &self,
        endpoint: &WebhookEndpoint,
        messages: Vec<Received>,
    ) -> Vec<(usize, DispatchOutcome)> {
        if messages.is_empty() {
            return Vec::new();
        }
        let waiting = join_all(messages.iter().map(|message| self.wait_in_table(message))).await;
        // Each of them must be found, so the call comes after the writes.
        let called = self.drains.wake(endpoint.account_id, self.clock.now()).await;
        let outcomes = messages.iter().zip(waiting).map(|(message, waiting)| {
            let done = waiting.and_then(|outcome| called.clone().map(|()| outcome));
            async move { (message.number, self.or_later(message, done).await) }
        });
        join_all(outcomes).await
    }

    /// Records that an attempt waits.
    ///
    /// If the delivery has moved on, there is nothing to record. If somebody is making the attempt, the message comes again
    /// when the lease has ended: whoever claimed the delivery may have died.
    async fn wait_in_table(&self, message: &Received) -> Result<DispatchOutcome, StoreError> {
        let (dispatch, now) = (&message.dispatch, self.clock.now());
        if let Some(carried) = &message.carried
            && self.store.put_delivery(&carried.stored(now)).await? == Put::New
        {
            return Ok(DispatchOutcome::Waiting);
        }
        match self.store.step(dispatch.delivery_id, dispatch.endpoint_id, &wait(dispatch, now)).await? {
            StepOutcome::Changed(_) => Ok(DispatchOutcome::Waiting),
            StepOutcome::Refused(found) => self.refused(message, found.as_deref(), now).await,
        }
    }

    /// Holds deliveries of an account. Each message comes with its endpoint, which is off. New deliveries are stored
    /// together.
    pub(crate) async fn hold_all(&self, messages: Vec<(Received, &WebhookEndpoint)>) -> Vec<(usize, DispatchOutcome)> {
        let now = self.clock.now();
        let new = messages.iter().filter_map(|(message, endpoint)| {
            let carried = message.carried.as_ref()?;
            Some((Hold::New(carried.held(now)), *endpoint))
        });
        let new: Vec<(Hold, &WebhookEndpoint)> = new.collect();
        let account = messages.first().map(|(_, endpoint)| endpoint.account_id);
        let held = match account {
            Some(account) if new.len() > 1 && new.len() == messages.len() => self.store.hold_all(account, &new).await,
            _ => Ok(DisableOutcome::DeliveryMoved),
        };
        let mut outcomes = Vec::with_capacity(messages.len());
        for (message, endpoint) in &messages {
            let done = match &held {
                Ok(DisableOutcome::Done) => Ok(DispatchOutcome::Held),
                Err(error) if is_transient(error) => Err(error.clone()),
                // Some are stored already, or an endpoint has changed.
                Ok(_) | Err(_) => self.hold(message, endpoint).await,
            };
            outcomes.push((message.number, self.or_later(message, done).await));
        }
        outcomes
    }

    /// Holds a delivery whose endpoint is off.
    async fn hold(&self, message: &Received, endpoint: &WebhookEndpoint) -> Result<DispatchOutcome, StoreError> {
        let (dispatch, now) = (&message.dispatch, self.clock.now());
        let mut held = match &message.carried {
            Some(carried) => {
                self.store.hold_all(endpoint.account_id, &[(Hold::New(carried.held(now)), endpoint)]).await?
            }
            None => DisableOutcome::DeliveryMoved,
        };
        if held == DisableOutcome::DeliveryMoved {
            let stored = Hold::Stored(dispatch.delivery_id, hold(dispatch, now));
            held = self.store.hold_all(endpoint.account_id, &[(stored, endpoint)]).await?;
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
        let (dispatch, now) = (&message.dispatch, self.clock.now());
        match self.store.step(dispatch.delivery_id, dispatch.endpoint_id, &end(dispatch, now)).await? {
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
        // A random token matches no lease, so the attempt is never claimed by us.
        match refusal(progress, &message.dispatch, Token::random(), now) {
            StepRefusal::Leased(until) => Ok(self.wait_for(message, until).await),
            StepRefusal::AlreadyClaimedByUs | StepRefusal::Void => Ok(DispatchOutcome::Void),
        }
    }

    /// Turns a result into an outcome. If the store was busy or unavailable, a copy of the message is sent for later,
    /// so that an outage of any length uses up no message's receives. If the message cannot be handled, the delivery
    /// that it carries is stored first.
    pub(crate) async fn or_later(
        &self,
        received: &Received,
        done: Result<DispatchOutcome, StoreError>,
    ) -> DispatchOutcome {
        match done {
            Ok(outcome) => outcome,
            Err(error) if is_transient(&error) => self.postpone(received, away_seconds(), error.to_string()).await,
            Err(error) => {
                let stored = match &received.carried {
                    Some(carried) => self.store(carried).await,
                    None => Ok(()),
                };
                match stored {
                    Err(away) if is_transient(&away) => DispatchOutcome::Failed(away.to_string()),
                    _ => DispatchOutcome::Defective(error.to_string()),
                }
            }
        }
    }

    /// Postpones a message until the lease on its attempt has ended.
    async fn wait_for(&self, message: &Received, until: Timestamp) -> DispatchOutcome {
        let millis = until.millis().saturating_sub(self.clock.now().millis()).max(0);
        let seconds = u32::try_from(millis / 1_000 + 1).unwrap_or(u32::MAX);
        self.postpone(message, seconds, "another instance is making the attempt".to_owned()).await
    }

    /// Sends a copy of a message to the retry queue, with a delay.
    async fn postpone(&self, received: &Received, delay_seconds: u32, why: String) -> DispatchOutcome {
        let message = match &received.carried {
            Some(carried) => QueueMessage::First(Arc::clone(carried)),
            None => QueueMessage::Attempt(received.dispatch),
        };
        match self.queues.send_one(Lane::Retry, message, delay_seconds).await {
            Ok(()) => DispatchOutcome::Postponed(why),
            Err(unsent) => DispatchOutcome::uncopied(&unsent),
        }
    }
}
