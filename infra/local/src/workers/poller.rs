//! A queue that triggers a function: batches, partial failure, visibility.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName::QueueArn,
};
use futures_util::future::join_all;
use platform::resources::Batching;
use platform::store::explain;
use runtime::Worker;
use tokio::time::Instant;

use super::background::BackgroundTask;
use super::event::event;
use super::invoke::invoke;
use crate::init;
use crate::switches::Switch;

/// The most messages that SQS returns, and deletes, in one call.
const MAX_CALL_MESSAGES: usize = 10;
/// The most bytes that the messages of one call have.
const MAX_CALL_BYTES: usize = MAX_CALL_MESSAGES * 256 * 1_024;
/// The most bytes of a batch (Lambda's limit for an event).
const MAX_BATCH_BYTES: usize = 6 * 1_024 * 1_024;
/// How long one call waits for messages, in seconds. It is well below the client's time-out of one attempt.
const LONG_POLL_SECONDS: i32 = 5;
/// The pause before the next call while a batch is collected and the queue is empty.
const COLLECTING_PAUSE: Duration = Duration::from_millis(20);
/// The pause after a failed call.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A queue that is polled for a function.
#[derive(Clone, Debug)]
pub struct EventSource {
    client: Client,
    url: String,
    arn: String,
    timeout: Duration,
    batching: Batching,
    pub(super) switch: Arc<Switch>,
}

/// Hands batches of a queue to one instance of a function.
pub fn poll<W>(source: EventSource, worker: W) -> BackgroundTask
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
{
    BackgroundTask::start(async move {
        init::log_failed_warm_up(worker.warm_up().await);
        let worker = Arc::new(worker);
        loop {
            let _pass = source.switch.enter().await;
            let messages = source.receive().await;
            if !messages.is_empty() {
                source.hand_over(&worker, messages).await;
            }
        }
    })
}

impl EventSource {
    /// Opens the queue with this URL. `timeout` is that of the function that it triggers.
    pub async fn open(client: Client, url: &str, timeout: Duration) -> Result<Self, String> {
        let found = client.get_queue_attributes().queue_url(url).attribute_names(QueueArn).send().await;
        let found = found.map_err(|error| format!("queue {url}: {}", explain(&error)))?;
        let arn = found.attributes.and_then(|mut attributes| attributes.remove(&QueueArn)).unwrap_or_default();
        Ok(Self { client, url: url.to_owned(), arn, timeout, batching: Batching::AT_ONCE, switch: Arc::default() })
    }

    /// Returns the queue with batches of another size.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// Returns the queue with a switch, which stops and starts what polls it.
    #[must_use]
    pub fn switched_by(self, switch: Arc<Switch>) -> Self {
        Self { switch, ..self }
    }

    /// Receives messages, waiting a while if there are none. If the call fails, logs the error and returns no messages.
    pub(super) async fn receive(&self) -> Vec<Message> {
        match self.try_receive().await {
            Ok(messages) => messages,
            Err(error) => {
                tracing::warn!(queue = self.url, error, "cannot receive messages");
                tokio::time::sleep(PAUSE_AFTER_FAILURE).await;
                Vec::new()
            }
        }
    }

    /// Hands messages to an instance and deletes those that it does not report as failed. Returns whether the instance
    /// can be used again.
    pub(super) async fn hand_over<W>(&self, worker: &Arc<W>, messages: Vec<Message>) -> bool
    where
        W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    {
        match invoke(worker, event(&messages, &self.arn), self.timeout).await {
            Ok(response) => {
                self.delete(acknowledged(&messages, &response)).await;
                true
            }
            Err(error) => {
                tracing::error!(queue = self.url, error, "invocation failed");
                false
            }
        }
    }

    async fn try_receive(&self) -> Result<Vec<Message>, String> {
        let mut messages = self.receive_some(self.batching.messages, LONG_POLL_SECONDS).await?;
        let end = Instant::now() + self.batching.window;
        while !messages.is_empty() && Instant::now() < end && self.has_room(&messages) {
            match self.receive_some(self.batching.messages - messages.len(), 0).await {
                Ok(more) if more.is_empty() => tokio::time::sleep(COLLECTING_PAUSE).await,
                Ok(more) => messages.extend(more),
                Err(error) => {
                    tracing::warn!(queue = self.url, error, "cannot receive more messages");
                    break;
                }
            }
        }
        Ok(messages)
    }

    /// Returns whether the messages of one more call fit in a batch.
    fn has_room(&self, messages: &[Message]) -> bool {
        let bytes: usize = messages.iter().filter_map(|message| message.body.as_ref()).map(String::len).sum();
        messages.len() < self.batching.messages && bytes + MAX_CALL_BYTES <= MAX_BATCH_BYTES
    }

    async fn receive_some(&self, most: usize, wait_seconds: i32) -> Result<Vec<Message>, String> {
        let most = i32::try_from(most.min(MAX_CALL_MESSAGES)).unwrap_or(i32::MAX);
        let request = self.client.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(most).wait_time_seconds(wait_seconds);
        let request = request.message_attribute_names("All");
        let received = request.message_system_attribute_names(MessageSystemAttributeName::All).send().await;
        Ok(received.map_err(|error| explain(&error))?.messages.unwrap_or_default())
    }

    /// Deletes messages. A message that is not deleted is received again after its visibility time-out.
    async fn delete(&self, messages: Vec<&Message>) {
        let calls = messages.chunks(MAX_CALL_MESSAGES).map(|messages| self.delete_some(messages));
        for deleted in join_all(calls).await {
            if let Err(error) = deleted {
                tracing::warn!(queue = self.url, error, "cannot delete messages");
            }
        }
    }

    async fn delete_some(&self, messages: &[&Message]) -> Result<(), String> {
        let entries = messages.iter().zip(0..).map(|(message, number)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
            entry.set_receipt_handle(message.receipt_handle.clone()).build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let request = self.client.delete_message_batch().queue_url(&self.url);
        let deleted = request.set_entries(Some(entries)).send().await.map_err(|error| explain(&error))?;
        if deleted.failed.is_empty() { Ok(()) } else { Err(format!("{:?}", deleted.failed)) }
    }
}

/// Returns the messages that the function did not report as failed. As in Lambda, if the report names a message that
/// is not in the batch, the whole batch counts as failed.
fn acknowledged<'m>(messages: &'m [Message], response: &SqsBatchResponse) -> Vec<&'m Message> {
    let failed: Vec<&str> = response.batch_item_failures.iter().map(|item| item.item_identifier.as_str()).collect();
    let is = |message: &Message, id: &str| message.message_id.as_deref() == Some(id);
    if failed.iter().any(|id| !messages.iter().any(|message| is(message, id))) {
        return Vec::new();
    }
    messages.iter().filter(|message| !failed.iter().any(|id| is(message, id))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reported_as_failed_stays_and_a_senseless_report_leaves_everything() {
        let messages = ["a", "b", "c"].map(|id| Message::builder().message_id(id).build());
        let kept = |failed: &[&str]| {
            let mut response = SqsBatchResponse::default();
            response.set_failures(failed.iter().copied());
            let acknowledged = acknowledged(&messages, &response);
            acknowledged.iter().map(|message| message.message_id.clone().unwrap()).collect::<String>()
        };
        assert_eq!([kept(&[]), kept(&["b"]), kept(&["a", "b", "c"])], ["abc", "ac", ""]);
        assert_eq!([kept(&["b", ""]), kept(&["x"])], ["", ""]);
    }
}
