//! A queue that triggers a function: batches, partial failure, visibility.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName, QueueAttributeName::QueueArn,
};
use platform::store::explain;
use runtime::Worker;

use super::background::BackgroundTask;
use super::event::event;
use super::invoke::invoke;
use crate::init;

/// The most messages that SQS returns in one call.
const MAX_BATCH_MESSAGES: i32 = 10;
/// How long one call waits for messages, in seconds. It is well below the client's time-out of one attempt.
const LONG_POLL_SECONDS: i32 = 5;
/// The pause after a failed call.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// A queue that is polled for a function.
#[derive(Clone, Debug)]
pub struct EventSource {
    client: Client,
    url: String,
    arn: String,
    timeout: Duration,
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
        Ok(Self { client, url: url.to_owned(), arn, timeout })
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
        let request = self.client.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(MAX_BATCH_MESSAGES).wait_time_seconds(LONG_POLL_SECONDS);
        let request = request.message_attribute_names("All");
        let received = request.message_system_attribute_names(MessageSystemAttributeName::All).send().await;
        Ok(received.map_err(|error| explain(&error))?.messages.unwrap_or_default())
    }

    /// Deletes messages. A message that is not deleted is received again after its visibility time-out.
    async fn delete(&self, messages: Vec<&Message>) {
        if messages.is_empty() {
            return;
        }
        let entries = messages.iter().zip(0..).map(|(message, number)| {
            let entry = DeleteMessageBatchRequestEntry::builder().id(number.to_string());
            entry.set_receipt_handle(message.receipt_handle.clone()).build()
        });
        let entries = match entries.collect::<Result<Vec<_>, _>>() {
            Ok(entries) => entries,
            Err(error) => return tracing::warn!(queue = self.url, %error, "cannot delete messages"),
        };
        let request = self.client.delete_message_batch().queue_url(&self.url);
        match request.set_entries(Some(entries)).send().await {
            Ok(deleted) if deleted.failed.is_empty() => {}
            Ok(deleted) => tracing::warn!(queue = self.url, failed = ?deleted.failed, "cannot delete messages"),
            Err(error) => tracing::warn!(queue = self.url, error = explain(&error), "cannot delete messages"),
        }
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
