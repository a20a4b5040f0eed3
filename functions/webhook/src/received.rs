//! A message that calls for an attempt, and what becomes of it without one.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use platform::backoff::equal_jitter_seconds;
use platform::store::StoreError;
use webhooks::Call;
use webhooks::delivery::{Carried, Dispatch, Lane, watch};
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
    /// each time, a sweep finds the delivery.
    pub(crate) async fn store(&self, carried: &Carried) -> Result<(), StoreError> {
        let now = self.clock.now();
        let Put::Present(found) = self.store.put_delivery(&carried.stored(self.schedule, now)).await? else {
            return Ok(());
        };
        match watch(&found.progress, self.schedule, now) {
            Some(step) => self.store.settle(found.id, &step).await.map(drop),
            None => Ok(()),
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

    /// Sends messages on to a lane, as they are.
    pub(crate) async fn forward(&self, lane: Lane, messages: &[Received]) -> Vec<(usize, DispatchOutcome)> {
        let calls: Vec<Call> = messages.iter().map(|message| message.call(0)).collect();
        let sent = self.queues.call(lane, &calls).await;
        let outcomes = messages.iter().zip(sent).map(|(message, sent)| {
            let forwarded =
                sent.map_or_else(|unsent| DispatchOutcome::uncopied(&unsent), |()| DispatchOutcome::Forwarded);
            (message.number, forwarded)
        });
        outcomes.collect()
    }
}

/// Returns a random number of seconds, from `seconds` to twice as many, so that messages that were postponed together
/// do not come back together.
pub(crate) fn up_to_twice(seconds: u32) -> u32 {
    equal_jitter_seconds(2 * seconds)
}
