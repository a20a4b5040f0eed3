//! Sends messages to the delivery queues.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};

use super::delivery::{Dispatch, Lane};
use platform::layout::{Format, UnreadableMessage};
use platform::store::explain;
use queues::MAX_DELAY_SECONDS;
use types::timestamp::Timestamp;

/// The largest number of messages in a `SendMessageBatch` (SQS's limit).
const MAX_BATCH_MESSAGES: usize = 10;

/// The format of the messages. Members may be added to them, because readers ignore members that they do not know.
const FORMAT: Format = Format::first("delivery queue");

/// A message in the delivery queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum QueueMessage {
    /// Calls for an attempt.
    Attempt(Dispatch),
    /// Measures how long a message takes to come out of the queue.
    Probe { sent_at: Timestamp },
}

impl QueueMessage {
    /// Reads a message.
    pub fn parse(text: &str) -> Result<Self, UnreadableMessage> {
        FORMAT.of_message(text)?;
        serde_json::from_str(text).map_err(|error| FORMAT.unreadable_message(&error))
    }
}

/// An attempt to call for, and the delay before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub dispatch: Dispatch,
    /// A delay that is longer than SQS allows ([`MAX_DELAY_SECONDS`]) is cut to that.
    pub delay_seconds: u32,
}

/// Why a message may not have been sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsent(String);

/// The delivery queues, one for each lane.
#[derive(Clone)]
pub struct Queues {
    client: Client,
    first: String,
    retry: String,
    slow: String,
}

impl Queues {
    /// Takes the URLs of the queues.
    pub fn new(client: Client, first: String, retry: String, slow: String) -> Self {
        Self { client, first, retry, slow }
    }

    /// Returns the lane whose queue has this ARN. The last part of an ARN is the queue's name.
    pub fn lane_at(&self, arn: &str) -> Option<Lane> {
        let name = arn.rsplit(':').next()?;
        Lane::ALL.into_iter().find(|lane| queues::name(self.url(*lane)) == name)
    }

    /// Sends calls. Returns one outcome for each, in order.
    pub async fn call(&self, lane: Lane, calls: &[Call]) -> Vec<Result<(), Unsent>> {
        let batches = calls.chunks(MAX_BATCH_MESSAGES).map(|batch| self.send(lane, batch));
        join_all(batches).await.into_iter().flatten().collect()
    }

    /// Sends one call.
    pub async fn call_once(&self, lane: Lane, call: Call) -> Result<(), Unsent> {
        self.send(lane, &[call]).await.into_iter().collect()
    }

    /// Sends a probe.
    pub async fn probe(&self, lane: Lane, sent_at: Timestamp) -> Result<(), Unsent> {
        let body = serde_json::to_string(&QueueMessage::Probe { sent_at }).map_err(unsent)?;
        let sent = self.client.send_message().queue_url(self.url(lane)).message_body(body).send().await;
        sent.map(drop).map_err(|error| Unsent(explain(&error)))
    }

    /// Returns about how many messages wait in a queue. Messages that are delayed or being handled do not count.
    pub async fn waiting(&self, lane: Lane) -> Result<u64, Unsent> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(self.url(lane)).attribute_names(name.clone());
        let found = request.send().await.map_err(|error| Unsent(explain(&error)))?;
        let count = found.attributes.as_ref().and_then(|found| found.get(&name)?.parse().ok());
        count.ok_or_else(|| Unsent("the queue does not tell how many messages wait".to_owned()))
    }

    async fn send(&self, lane: Lane, batch: &[Call]) -> Vec<Result<(), Unsent>> {
        let entries = batch.iter().zip(0..).map(|(call, number)| entry(*call, number));
        let entries = match entries.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => entries,
            Err(error) => return vec![Err(error); batch.len()],
        };
        let request = self.client.send_message_batch().queue_url(self.url(lane)).set_entries(Some(entries));
        match request.send().await {
            Ok(sent) => {
                let accepted = |number: usize| sent.successful.iter().any(|entry| entry.id == number.to_string());
                let refused = || Err(Unsent("SQS refused the message".to_owned()));
                (0..batch.len()).map(|number| if accepted(number) { Ok(()) } else { refused() }).collect()
            }
            Err(error) => vec![Err(Unsent(explain(&error))); batch.len()],
        }
    }

    fn url(&self, lane: Lane) -> &str {
        match lane {
            Lane::First => &self.first,
            Lane::Retry => &self.retry,
            Lane::Slow => &self.slow,
        }
    }
}

fn entry(call: Call, number: usize) -> Result<SendMessageBatchRequestEntry, Unsent> {
    let Call { dispatch, delay_seconds } = call;
    let body = serde_json::to_string(&QueueMessage::Attempt(dispatch)).map_err(unsent)?;
    let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
    // In a standard queue, message groups make SQS serve accounts fairly. Nothing here depends on it.
    let entry = entry.message_group_id(dispatch.account_id.to_string());
    let delay = delay_seconds.min(MAX_DELAY_SECONDS).cast_signed();
    let entry = if delay > 0 { entry.delay_seconds(delay) } else { entry };
    entry.build().map_err(unsent)
}

fn unsent(error: impl std::error::Error) -> Unsent {
    Unsent(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delivery::Token;
    use uuid::Uuid;

    #[test]
    fn all_messages_of_an_account_are_one_group() {
        let account_id = Uuid::from_u128(1);
        let groups = [2, 3].map(|endpoint| {
            let dispatch = Dispatch {
                delivery_id: Uuid::from_u128(endpoint).into(),
                account_id: account_id.into(),
                endpoint_id: Uuid::from_u128(endpoint).into(),
                round: 1,
                attempt: 1,
                token: Token(Uuid::nil()),
            };
            entry(Call { dispatch, delay_seconds: 0 }, 0).unwrap().message_group_id
        });
        assert_eq!(groups, [Some(account_id.to_string()), Some(account_id.to_string())]);
    }
}
