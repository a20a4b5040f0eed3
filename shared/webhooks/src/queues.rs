//! Sends messages to the delivery queues.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{QueueAttributeName, SendMessageBatchRequestEntry};
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::delivery::{CARRIED_LAYOUT, Carried, Dispatch, Lane};
use platform::layout::{Format, UnreadableMessage};
use platform::store::explain;
use queues::MAX_DELAY_SECONDS;
use types::timestamp::Timestamp;

/// The format of the messages. Members may be added to them, because readers ignore members that they do not know. Only
/// messages that carry a delivery have the second layout; all others have the first.
const FORMAT: Format = Format { name: "delivery queue", writes: CARRIED_LAYOUT, reads: CARRIED_LAYOUT };

/// A message in the delivery queues.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum QueueMessage {
    /// Calls for an attempt of a delivery that is stored.
    Attempt(Dispatch),
    /// Calls for the first attempt of the delivery that it carries.
    First(Arc<Carried>),
    /// Measures how long a message takes to come out of the queue.
    Probe { sent_at: Timestamp },
}

impl QueueMessage {
    /// Reads a message.
    pub fn parse(text: &str) -> Result<Self, UnreadableMessage> {
        FORMAT.of_message(text)?;
        let read = || {
            Ok(match serde_json::from_str(text)? {
                Stored::First => Self::First(serde_json::from_str(text)?),
                Stored::Attempt(dispatch) => Self::Attempt(dispatch),
                Stored::Probe { sent_at } => Self::Probe { sent_at },
            })
        };
        read().map_err(|error: serde_json::Error| FORMAT.unreadable_message(&error))
    }
}

/// A message as it is read at first. A tagged enum of serde cannot hold raw JSON.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Stored {
    Attempt(Dispatch),
    First,
    Probe { sent_at: Timestamp },
}

/// An attempt to call for, and the delay before it.
#[derive(Clone, Debug)]
pub struct Call {
    pub dispatch: Dispatch,
    /// The delivery, if it is not stored yet.
    pub carried: Option<Arc<Carried>>,
    /// A delay that is longer than SQS allows ([`MAX_DELAY_SECONDS`]) is cut to that.
    pub delay_seconds: u32,
}

/// Why a message may not have been sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsent(String);

impl Call {
    /// Calls for an attempt of a delivery that is stored.
    pub const fn new(dispatch: Dispatch, delay_seconds: u32) -> Self {
        Self { dispatch, carried: None, delay_seconds }
    }

    /// Calls for the first attempt of a delivery that its message carries.
    pub fn carrying(carried: Arc<Carried>, delay_seconds: u32) -> Self {
        Self { dispatch: carried.dispatch(), carried: Some(carried), delay_seconds }
    }

    fn body(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string(&match &self.carried {
            None => QueueMessage::Attempt(self.dispatch),
            Some(carried) => QueueMessage::First(Arc::clone(carried)),
        })
    }
}

/// The delivery queues.
#[derive(Clone)]
pub struct Queues {
    client: Client,
    first: String,
    retry: String,
    slow: Option<String>,
}

impl Queues {
    /// Takes the URLs of the first lane and the retry lane.
    pub const fn new(client: Client, first: String, retry: String) -> Self {
        Self { client, first, retry, slow: None }
    }

    /// Adds the URL of the slow lane. Only those send there who have read the endpoint.
    #[must_use]
    pub fn with_slow_lane(self, url: String) -> Self {
        Self { slow: Some(url), ..self }
    }

    /// Returns the lane whose queue has this ARN. The last part of an ARN is the queue's name.
    pub fn lane_at(&self, arn: &str) -> Option<Lane> {
        let name = arn.rsplit(':').next()?;
        Lane::ALL.into_iter().find(|lane| self.url(*lane).is_ok_and(|url| queues::name(url) == name))
    }

    /// Sends calls. Returns one outcome for each, in order.
    pub async fn call(&self, lane: Lane, calls: &[Call]) -> Vec<Result<(), Unsent>> {
        let mut outcomes = vec![Ok(()); calls.len()];
        let mut entries = Vec::with_capacity(calls.len());
        for (number, call) in calls.iter().enumerate() {
            match entry(call, number) {
                Ok(entry) => entries.push((number, entry)),
                Err(error) => outcomes[number] = Err(error),
            }
        }
        let batches = queues::batches(entries, |(_, entry)| entry.message_body.len());
        let sent = join_all(batches.into_iter().map(|batch| self.send(lane, batch))).await;
        for (number, error) in sent.into_iter().flatten() {
            outcomes[number] = Err(error);
        }
        outcomes
    }

    /// Sends one call.
    pub async fn call_once(&self, lane: Lane, call: Call) -> Result<(), Unsent> {
        self.call(lane, &[call]).await.into_iter().collect()
    }

    /// Sends a probe.
    pub async fn probe(&self, lane: Lane, sent_at: Timestamp) -> Result<(), Unsent> {
        let body = serde_json::to_string(&QueueMessage::Probe { sent_at }).map_err(unsent)?;
        let sent = self.client.send_message().queue_url(self.url(lane)?).message_body(body).send().await;
        sent.map(drop).map_err(|error| Unsent(explain(&error)))
    }

    /// Returns about how many messages wait in a queue. Messages that are delayed or being handled do not count.
    pub async fn waiting(&self, lane: Lane) -> Result<u64, Unsent> {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(self.url(lane)?).attribute_names(name.clone());
        let found = request.send().await.map_err(|error| Unsent(explain(&error)))?;
        let count = found.attributes.as_ref().and_then(|found| found.get(&name)?.parse().ok());
        count.ok_or_else(|| Unsent("the queue does not tell how many messages wait".to_owned()))
    }

    /// Sends a batch. Returns the messages that may not have been sent, by their numbers, and why.
    async fn send(&self, lane: Lane, batch: Vec<(usize, SendMessageBatchRequestEntry)>) -> Vec<(usize, Unsent)> {
        let (numbers, entries): (Vec<usize>, Vec<_>) = batch.into_iter().unzip();
        let all = |error: &Unsent| numbers.iter().map(|number| (*number, error.clone())).collect();
        let url = match self.url(lane) {
            Ok(url) => url,
            Err(error) => return all(&error),
        };
        let request = self.client.send_message_batch().queue_url(url).set_entries(Some(entries));
        match request.send().await {
            Ok(sent) => {
                let refused = |number: &usize| !sent.successful.iter().any(|entry| entry.id == number.to_string());
                let refused = numbers.into_iter().filter(refused);
                refused.map(|number| (number, Unsent("SQS refused the message".to_owned()))).collect()
            }
            Err(error) => all(&Unsent(explain(&error))),
        }
    }

    fn url(&self, lane: Lane) -> Result<&str, Unsent> {
        match lane {
            Lane::First => Ok(&self.first),
            Lane::Retry => Ok(&self.retry),
            Lane::Slow => self.slow.as_deref().ok_or_else(|| Unsent("this function sends nothing there".to_owned())),
        }
    }
}

fn entry(call: &Call, number: usize) -> Result<SendMessageBatchRequestEntry, Unsent> {
    let entry =
        SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(call.body().map_err(unsent)?);
    // In a standard queue, message groups make SQS serve accounts fairly. Nothing here depends on it.
    let entry = entry.message_group_id(call.dispatch.account_id.to_string());
    let delay = call.delay_seconds.min(MAX_DELAY_SECONDS).cast_signed();
    let entry = if delay > 0 { entry.delay_seconds(delay) } else { entry };
    entry.build().map_err(unsent)
}

fn unsent(error: impl std::error::Error) -> Unsent {
    Unsent(error.to_string())
}
