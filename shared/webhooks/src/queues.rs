//! Sends messages to the delivery queues.

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

use super::delivery::{Carried, Dispatch, Lane, Token};
use common::ids::UserId;
use common::layout::{Format, UnreadableMessage};
use common::queues::MAX_DELAY_SECONDS;
use common::store::explain;

/// The format of the messages. Members may be added to them, because readers ignore members that they do not know.
const FORMAT: Format = Format::first("delivery queue");

/// A message in the delivery queues.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum QueueMessage {
    /// Calls for an attempt of a delivery that is stored.
    Attempt(Dispatch),
    /// Calls for the first attempt of the delivery that it carries.
    First(Arc<Carried>),
    /// Calls for a run of the drain of an account.
    Drain(DrainMessage),
}

/// Calls for a run of the drain of an account. It is void once a run has begun under its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DrainMessage {
    pub account_id: UserId,
    pub token: Token,
}

impl QueueMessage {
    /// Returns whose deliveries it is about.
    fn account_id(&self) -> UserId {
        match self {
            Self::Attempt(dispatch) => dispatch.account_id,
            Self::First(carried) => carried.account_id,
            Self::Drain(drain) => drain.account_id,
        }
    }

    /// Reads a message.
    pub fn parse(text: &str) -> Result<Self, UnreadableMessage> {
        FORMAT.of_message(text)?;
        let read = || {
            Ok(match serde_json::from_str(text)? {
                Stored::First => Self::First(serde_json::from_str(text)?),
                Stored::Attempt(dispatch) => Self::Attempt(dispatch),
                Stored::Drain(call) => Self::Drain(call),
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
    Drain(DrainMessage),
}

/// Why a message may not have been sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsent(String);

/// The delivery queues, as far as a function sends to them.
#[derive(Clone)]
pub struct Queues {
    client: Client,
    urls: Vec<(Lane, String)>,
}

impl Queues {
    /// Takes the URLs of the lanes to which the function sends.
    pub fn new(client: Client, urls: impl Into<Vec<(Lane, String)>>) -> Self {
        Self { client, urls: urls.into() }
    }

    /// Sends messages, each after a delay in seconds. A delay that is longer than SQS allows ([`MAX_DELAY_SECONDS`]) is cut
    /// to that. Returns one outcome for each, in order.
    pub async fn send(&self, lane: Lane, messages: &[(QueueMessage, u32)]) -> Vec<Result<(), Unsent>> {
        let mut outcomes = vec![Ok(()); messages.len()];
        let mut entries = Vec::with_capacity(messages.len());
        for (number, (message, delay_seconds)) in messages.iter().enumerate() {
            match entry(message, *delay_seconds, number) {
                Ok(entry) => entries.push((number, entry)),
                Err(error) => outcomes[number] = Err(error),
            }
        }
        let batches = common::queues::batches(entries, |(_, entry)| entry.message_body.len());
        let sent = join_all(batches.into_iter().map(|batch| self.send_batch(lane, batch))).await;
        for (number, error) in sent.into_iter().flatten() {
            outcomes[number] = Err(error);
        }
        outcomes
    }

    /// Sends one message.
    pub async fn send_one(&self, lane: Lane, message: QueueMessage, delay_seconds: u32) -> Result<(), Unsent> {
        self.send(lane, &[(message, delay_seconds)]).await.into_iter().collect()
    }

    /// Sends a batch. Returns the messages that may not have been sent, by their numbers, and why.
    async fn send_batch(&self, lane: Lane, batch: Vec<(usize, SendMessageBatchRequestEntry)>) -> Vec<(usize, Unsent)> {
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
        let found = self.urls.iter().find(|(of, _)| *of == lane);
        found.map(|(_, url)| url.as_str()).ok_or_else(|| Unsent("this function sends nothing there".to_owned()))
    }
}

fn entry(message: &QueueMessage, delay_seconds: u32, number: usize) -> Result<SendMessageBatchRequestEntry, Unsent> {
    let body = serde_json::to_string(message).map_err(unsent)?;
    let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body);
    // In a standard queue, message groups make SQS serve accounts fairly. Nothing here depends on it.
    let entry = entry.message_group_id(message.account_id().to_string());
    let delay = delay_seconds.min(MAX_DELAY_SECONDS).cast_signed();
    let entry = if delay > 0 { entry.delay_seconds(delay) } else { entry };
    entry.build().map_err(unsent)
}

fn unsent(error: impl std::error::Error) -> Unsent {
    Unsent(error.to_string())
}
