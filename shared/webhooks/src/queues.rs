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
    Drain(DrainCall),
}

/// Calls for a run of the drain of an account. It is void once a run has begun under its token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DrainCall {
    pub account_id: UserId,
    pub token: Token,
}

impl QueueMessage {
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
    Drain(DrainCall),
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

    /// Sends calls. Returns one outcome for each, in order.
    pub async fn call(&self, lane: Lane, calls: &[Call]) -> Vec<Result<(), Unsent>> {
        let entries = calls.iter().map(|call| (call.body(), call.dispatch.account_id, call.delay_seconds));
        self.send_all(lane, entries.collect()).await
    }

    async fn send_all(&self, lane: Lane, messages: Vec<Message>) -> Vec<Result<(), Unsent>> {
        let mut outcomes = vec![Ok(()); messages.len()];
        let mut entries = Vec::with_capacity(messages.len());
        for (number, message) in messages.into_iter().enumerate() {
            match entry(message, number) {
                Ok(entry) => entries.push((number, entry)),
                Err(error) => outcomes[number] = Err(error),
            }
        }
        let batches = common::queues::batches(entries, |(_, entry)| entry.message_body.len());
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

    /// Calls for runs of drains, each after a delay in seconds. Returns one outcome for each, in order.
    pub async fn call_drains(&self, calls: &[(DrainCall, u32)]) -> Vec<Result<(), Unsent>> {
        let entries = calls.iter().map(|(call, delay)| {
            let body = serde_json::to_string(&QueueMessage::Drain(*call));
            (body, call.account_id, *delay)
        });
        self.send_all(Lane::Slow, entries.collect()).await
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
        let found = self.urls.iter().find(|(of, _)| *of == lane);
        found.map(|(_, url)| url.as_str()).ok_or_else(|| Unsent("this function sends nothing there".to_owned()))
    }
}

/// A message's body, its account, and its delay in seconds.
type Message = (Result<String, serde_json::Error>, UserId, u32);

fn entry((body, account, delay): Message, number: usize) -> Result<SendMessageBatchRequestEntry, Unsent> {
    let entry = SendMessageBatchRequestEntry::builder().id(number.to_string()).message_body(body.map_err(unsent)?);
    // In a standard queue, message groups make SQS serve accounts fairly. Nothing here depends on it.
    let entry = entry.message_group_id(account.to_string());
    let delay = delay.min(MAX_DELAY_SECONDS).cast_signed();
    let entry = if delay > 0 { entry.delay_seconds(delay) } else { entry };
    entry.build().map_err(unsent)
}

fn unsent(error: impl std::error::Error) -> Unsent {
    Unsent(error.to_string())
}
