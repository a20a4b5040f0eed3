//! A message that calls for an attempt, what becomes of it without one, and how outcomes are logged.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsMessage;
use common::backoff::equal_jitter_seconds;
use common::metrics::{Meter, Metric};
use common::store::StoreError;
use futures_util::future::join_all;
use webhooks::delivery::{Carried, Dispatch, Lane, overdue_at, wait, watch};
use webhooks::endpoint::WebhookEndpoint;
use webhooks::store::Put;
use webhooks::{Call, Unsent};

use crate::Webhook;
use DispatchOutcome as Of;

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

impl DispatchOutcome {
    /// The message stays in its queue. The panic hook has logged why.
    pub(crate) fn panicked() -> Self {
        Self::Failed("its handling panicked".to_owned())
    }
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
        match watch(&found.progress, wake_at) {
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

    /// Records that an attempt waits. A new delivery is held instead if its endpoint is full.
    ///
    /// If the delivery has moved on, or somebody is making the attempt, there is nothing to record. But whoever claimed the
    /// delivery may have died without giving it a wake-up. So it gets one before its message is acknowledged.
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
            Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => {
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

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DispatchOutcome {
    /// The endpoint acknowledged the attempt.
    Delivered,
    /// The attempt failed, and its failure is recorded.
    Unacknowledged,
    /// The delivery's last attempt failed, and its failure is recorded.
    Exhausted,
    /// The delivery's last attempt failed, and its endpoint was switched off because of it.
    SwitchedOff,
    /// The delivery is held, because its endpoint is off.
    Held,
    /// The delivery is held, because too many of its endpoint wait.
    Overflowed,
    /// The delivery waited until it was no longer kept, and has failed.
    Expired,
    /// The message calls for nothing any more: the delivery has moved on or has ended.
    Void,
    /// No attempt was made. The delivery waits in the table for the drain of its account.
    Waiting,
    /// A copy was sent to the retry lane, because another instance is making the attempt or something that it needs is
    /// unavailable.
    Postponed(String),
    /// The message called for a run of a drain. What the run did has lines of its own.
    Drained,
    /// The message, a row or a secret cannot be read, the store takes what the message calls for as invalid, or the code
    /// cannot put it together. None of these would change with another try. A copy goes to the dead-letter queue.
    Defective(String),
    /// Its copy cannot be sent, or its drain cannot be begun now. The message stays in its queue.
    Failed(String),
}

impl DispatchOutcome {
    /// Returns the outcome of a message that an error of the store stops for good.
    pub(crate) fn stopped_by(error: &StoreError) -> Self {
        match error {
            StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. } => {
                Self::Defective(error.to_string())
            }
            StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_) => {
                Self::Failed(error.to_string())
            }
        }
    }

    /// Returns the outcome of a message whose copy cannot be sent.
    pub(crate) fn uncopied(unsent: &Unsent) -> Self {
        Self::Failed(format!("its copy cannot be sent: {unsent}"))
    }
}

/// Logs one line for the batch and the deliveries of its drains, and one for each message that met a defect or failed. No
/// line contains a body, a URL or a secret.
pub(crate) fn log(
    meter: &Meter,
    records: &[SqsMessage],
    outcomes: &[DispatchOutcome],
    drained: &[DispatchOutcome],
    waits: &[u64],
    keyless: u64,
) {
    for (record, outcome) in records.iter().zip(outcomes) {
        let message_id = record.message_id.as_deref();
        match outcome {
            DispatchOutcome::Defective(defect) => tracing::error!(message_id, defect, "defective"),
            DispatchOutcome::Failed(error) => tracing::error!(message_id, error, "failed"),
            _ => {}
        }
    }
    let all = || outcomes.iter().chain(drained);
    let count = |is: fn(&DispatchOutcome) -> bool| all().filter(|outcome| is(outcome)).count() as u64;
    let because = all().find_map(|outcome| match outcome {
        DispatchOutcome::Postponed(why) => Some(why),
        _ => None,
    });
    let mut line = meter.line("batch");
    line.member("received", &outcomes.len());
    line.count(Metric::Delivered, count(|outcome| matches!(outcome, Of::Delivered)));
    // Every attempt that failed.
    line.count(
        Metric::Unacknowledged,
        count(|outcome| matches!(outcome, Of::Unacknowledged | Of::Exhausted | Of::SwitchedOff)),
    );
    // Every delivery whose last attempt failed, whether or not its endpoint was switched off.
    line.count(Metric::Exhausted, count(|outcome| matches!(outcome, Of::Exhausted | Of::SwitchedOff)));
    line.count(Metric::SwitchedOff, count(|outcome| matches!(outcome, Of::SwitchedOff)));
    line.count(Metric::Held, count(|outcome| matches!(outcome, Of::Held)));
    line.count(Metric::Overflowed, count(|outcome| matches!(outcome, Of::Overflowed)));
    line.count(Metric::Expired, count(|outcome| matches!(outcome, Of::Expired)));
    line.member("void", &count(|outcome| matches!(outcome, Of::Void)));
    line.member("waiting", &count(|outcome| matches!(outcome, Of::Waiting)));
    line.count(Metric::Postponed, count(|outcome| matches!(outcome, Of::Postponed(_))));
    line.known("postponed_because", because);
    line.count(Metric::Defects, count(|outcome| matches!(outcome, Of::Defective(_))));
    // Attempts without a key wait. If that lasts, the alarm on failures must tell of it: once for each batch.
    line.count(Metric::Failed, count(|outcome| matches!(outcome, Of::Failed(_))) + keyless.min(1));
    line.samples(Metric::EventToPost, waits);
    line.log(false);
}
