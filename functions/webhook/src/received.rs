//! A message that calls for an attempt, and what becomes of it without one.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use platform::backoff::equal_jitter_seconds;
use platform::store::StoreError;
use webhooks::Call;
use webhooks::delivery::{Carried, Dispatch, Lane, overdue_at, wait, watch};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::Put;

use crate::Webhook;
use crate::outcome::DispatchOutcome;

/// The attribute in which SQS counts how often it has delivered a message.
const RECEIVE_COUNT: &str = "ApproximateReceiveCount";
/// The delay of a message if the store or the keyring is unavailable, in seconds: a random time from this to twice
/// this.
const AWAY_SECONDS: u32 = 10;

/// A message that calls for an attempt.
#[derive(Clone)]
pub(crate) struct Received {
    /// The message's number in its batch.
    pub(crate) number: usize,
    pub(crate) dispatch: Dispatch,
    /// The delivery, if the message carries it.
    pub(crate) carried: Option<Arc<Carried>>,
}

impl Received {
    /// Returns the call that sends the message on as it is.
    pub(crate) fn call(&self, delay_seconds: u32) -> Call {
        Call { dispatch: self.dispatch, carried: self.carried.clone(), delay_seconds }
    }
}

/// Returns whether SQS has delivered a message before. If SQS does not tell, it may have.
pub(crate) fn is_repeated(record: &SqsMessage) -> bool {
    record.attributes.get(RECEIVE_COUNT).is_none_or(|count| count != "1")
}

impl Webhook {
    /// Stores a delivery whose message has come again, and gives it a wake-up. If the message makes its function crash
    /// each time, the drain of its account finds the delivery.
    pub(crate) async fn store(&self, carried: &Carried) -> Result<(), StoreError> {
        let now = self.clock.now();
        let wake_at = overdue_at(self.schedule, now);
        self.store.call_drain_by(carried.account_id, wake_at, now).await?;
        let Put::Present(found) = self.store.put_delivery(&carried.stored(wake_at)).await? else {
            return Ok(());
        };
        match watch(&found.progress, self.schedule, now) {
            Some(step) => self.store.settle(found.id, found.endpoint_id, &step).await.map(drop),
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
        let waiting = join_all(messages.iter().map(|message| self.wait_in_table(endpoint, message))).await;
        // Each of them must be found, so the call comes after the writes.
        let called = self.drains.call(endpoint.account_id, self.clock.now()).await;
        let outcomes = messages.iter().zip(waiting).map(|(message, waiting)| {
            let done = waiting.and_then(|outcome| called.clone().map(|()| outcome));
            async move { (message.number, self.or_later(message, done).await) }
        });
        join_all(outcomes).await
    }

    /// Records that an attempt waits. A new delivery is held instead if its endpoint is full. If the delivery has moved on, or somebody is making the attempt, there is nothing to
    /// record. But whoever claimed the delivery may have died without giving it a wake-up, so it gets one before the
    /// message goes that carries it.
    async fn wait_in_table(
        &self,
        endpoint: &WebhookEndpoint,
        message: &Received,
    ) -> Result<DispatchOutcome, StoreError> {
        let (dispatch, now) = (&message.dispatch, self.clock.now());
        if let Some(carried) = &message.carried {
            let (new, outcome) = if endpoint.full_since.is_some() {
                (carried.held(now), DispatchOutcome::Overflowed)
            } else {
                (carried.stored(now), DispatchOutcome::Waiting)
            };
            if self.store.put_delivery(&new).await? == Put::New {
                return Ok(outcome);
            }
        }
        if self.store.settle(dispatch.delivery_id, dispatch.endpoint_id, &wait(dispatch, now)).await? {
            return Ok(DispatchOutcome::Waiting);
        }
        if let Some(carried) = &message.carried {
            self.store(carried).await?;
        }
        Ok(DispatchOutcome::Void)
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
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => {
                self.postpone(received, up_to_twice(AWAY_SECONDS), error.to_string()).await
            }
            Err(error) => {
                if let Some(carried) = &received.carried
                    && let Err(error) = self.store(carried).await
                {
                    tracing::warn!(delivery_id = %carried.delivery_id, %error, "cannot store the delivery");
                }
                DispatchOutcome::stopped_by(&error)
            }
        }
    }

    /// Sends a copy of a message to the retry queue, with a delay.
    pub(crate) async fn postpone(&self, received: &Received, delay_seconds: u32, why: String) -> DispatchOutcome {
        match self.queues.call_once(Lane::Retry, received.call(delay_seconds)).await {
            Ok(()) => DispatchOutcome::Postponed(why),
            Err(unsent) => DispatchOutcome::uncopied(&unsent),
        }
    }
}

/// Returns a random number of seconds, from `seconds` to twice as many, so that messages that were postponed together
/// do not come back together.
pub(crate) fn up_to_twice(seconds: u32) -> u32 {
    equal_jitter_seconds(2 * seconds)
}
