//! A queue that triggers a function, as Lambda does it: batches, partial failure, visibility, and as many instances as
//! the work needs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_lambda_events::encodings::Base64Data;
use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage, SqsMessageAttribute};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{
    DeleteMessageBatchRequestEntry, Message, MessageAttributeValue, MessageSystemAttributeName,
    QueueAttributeName::QueueArn,
};
use common::resources::Batching;
use common::runtime::Worker;
use common::store::explain;
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::host::log_failed_warm_up;
use crate::server::BackgroundTask;

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
}

/// Hands batches of a queue to one instance of a function.
pub fn poll<W>(source: EventSource, worker: W) -> BackgroundTask
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
{
    BackgroundTask::start(async move {
        log_failed_warm_up(worker.warm_up().await);
        let worker = Arc::new(worker);
        loop {
            let messages = source.receive().await;
            if !messages.is_empty() {
                source.hand_over(&worker, messages).await;
            }
        }
    })
}

/// A function with its idle instances, and room for more.
struct Fleet<W, F> {
    source: EventSource,
    idle: Mutex<Vec<Arc<W>>>,
    free: Semaphore,
    new_instance: F,
}

/// Hands batches of a queue to at most `max_instances` instances of a function, one batch at a time each. An instance
/// is created when all others are busy. Only one call at a time waits for messages: several would share messages that
/// arrive together, and each would get a small batch.
pub fn poll_with_fleet<W, F>(source: EventSource, max_instances: usize, new_instance: F) -> BackgroundTask
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    F: Fn() -> W + Send + Sync + 'static,
{
    let fleet = Arc::new(Fleet { source, idle: Mutex::default(), free: Semaphore::new(max_instances), new_instance });
    BackgroundTask::start(async move {
        let first = fleet.take().await;
        fleet.put_back(first);
        fleet.receive().await;
    })
}

impl<W, F> Fleet<W, F>
where
    W: Worker<Event = SqsEvent, Response = SqsBatchResponse>,
    F: Fn() -> W + Send + Sync + 'static,
{
    async fn receive(self: Arc<Self>) {
        let mut invocations = JoinSet::new();
        loop {
            while invocations.try_join_next().is_some() {}
            // Waits for a free instance before it receives messages, because nobody else gets them from then on.
            let Ok(room) = self.free.acquire().await else { return };
            let messages = self.source.receive().await;
            if messages.is_empty() {
                continue;
            }
            room.forget();
            let fleet = Arc::clone(&self);
            invocations.spawn(async move {
                let instance = fleet.take().await;
                // An instance that failed is not used again, as in Lambda.
                if fleet.source.hand_over(&instance, messages).await {
                    fleet.put_back(instance);
                }
                fleet.free.add_permits(1);
            });
        }
    }

    async fn take(&self) -> Arc<W> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(instance) = idle {
            return instance;
        }
        let instance = (self.new_instance)();
        log_failed_warm_up(instance.warm_up().await);
        Arc::new(instance)
    }

    fn put_back(&self, instance: Arc<W>) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(instance);
    }
}

impl EventSource {
    /// Opens the queue with this URL. `timeout` is that of the function that it triggers.
    pub async fn open(client: Client, url: &str, timeout: Duration) -> Result<Self, String> {
        let found = client.get_queue_attributes().queue_url(url).attribute_names(QueueArn).send().await;
        let found = found.map_err(|error| format!("queue {url}: {}", explain(&error)))?;
        let arn = found.attributes.and_then(|mut attributes| attributes.remove(&QueueArn)).unwrap_or_default();
        Ok(Self { client, url: url.to_owned(), arn, timeout, batching: Batching::AT_ONCE })
    }

    /// Returns the queue with batches of another size.
    #[must_use]
    pub fn with_batching(self, batching: Batching) -> Self {
        Self { batching, ..self }
    }

    /// Receives messages, waiting a while if there are none. If the call fails, logs the error and returns no messages.
    async fn receive(&self) -> Vec<Message> {
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
    async fn hand_over<W>(&self, worker: &Arc<W>, messages: Vec<Message>) -> bool
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

/// Hands one event to a worker. A panic or the time-out ends the invocation, but not the caller.
pub(super) async fn invoke<W: Worker>(
    worker: &Arc<W>,
    event: W::Event,
    timeout: Duration,
) -> Result<W::Response, String> {
    let worker = Arc::clone(worker);
    let mut invocation = JoinSet::new();
    invocation.spawn(async move { worker.work(event).await });
    match tokio::time::timeout(timeout, invocation.join_next()).await {
        Ok(Some(Ok(Ok(response)))) => Ok(response),
        Ok(Some(Ok(Err(error)))) => Err(error.to_string()),
        Ok(Some(Err(panic))) => Err(panic.to_string()),
        Ok(None) | Err(_) => Err(format!("timed out after {} s", timeout.as_secs())),
    }
}

/// Makes the event of a batch from the queue with this ARN.
fn event(messages: &[Message], queue_arn: &str) -> SqsEvent {
    let mut event = SqsEvent::default();
    event.records = messages.iter().map(|message| record(message.clone(), queue_arn)).collect();
    event
}

fn record(message: Message, queue_arn: &str) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = message.message_id;
    record.receipt_handle = message.receipt_handle;
    record.body = message.body;
    record.md5_of_body = message.md5_of_body;
    record.md5_of_message_attributes = message.md5_of_message_attributes;
    let attributes = message.attributes.unwrap_or_default();
    record.attributes = attributes.into_iter().map(|(name, value)| (name.as_str().to_owned(), value)).collect();
    let attributes = message.message_attributes.unwrap_or_default();
    record.message_attributes = attributes.into_iter().map(|(name, value)| (name, attribute(value))).collect();
    record.event_source = Some("aws:sqs".to_owned());
    record.event_source_arn = Some(queue_arn.to_owned());
    record.aws_region = queue_arn.split(':').nth(3).map(str::to_owned);
    record
}

fn attribute(value: MessageAttributeValue) -> SqsMessageAttribute {
    let mut attribute = SqsMessageAttribute::default();
    attribute.string_value = value.string_value;
    attribute.binary_value = value.binary_value.map(|bytes| {
        let mut data = Base64Data::default();
        data.0 = bytes.into_inner();
        data
    });
    attribute.data_type = Some(value.data_type);
    attribute
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
