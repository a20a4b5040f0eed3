//! The emulated SQS, with two things that it lacks.
//!
//! Standard queues take message groups, which are a hint in SQS (fair queues). And many delayed messages do not make it
//! slow: the emulated SQS moves all of a queue's delayed messages on each receive, which SQS does not do. So batches of
//! delayed messages wait here, and the emulated SQS gets them when they are due. A consumer sees another message id than
//! the one that its sender was told.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use common::queues::{MAX_BATCH_BYTES, MAX_DELAY_SECONDS};
use http::Response;
use rustack_sqs_core::handler::RustackSqsHandler;
use rustack_sqs_core::message::md5_of_body;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_http::body::SqsResponseBody;
use rustack_sqs_http::dispatch::SqsHandler;
use rustack_sqs_http::response::json_response;
use rustack_sqs_model::error::SqsError;
use rustack_sqs_model::input::{GetQueueAttributesInput, PurgeQueueInput, SendMessageBatchInput, SendMessageInput};
use rustack_sqs_model::operations::SqsOperation;
use rustack_sqs_model::output::SendMessageBatchOutput;
use rustack_sqs_model::types::{SendMessageBatchRequestEntry, SendMessageBatchResultEntry};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::task::JoinSet;
use uuid::Uuid;

const GROUP_FIELD: &str = "MessageGroupId";
const DELAYED_COUNT: &str = "ApproximateNumberOfMessagesDelayed";
/// The most messages in a batch (SQS).
const MAX_ENTRIES: usize = 10;

/// Answers the calls to SQS.
pub(super) struct Queues {
    sqs: Arc<RustackSqs>,
    handler: RustackSqsHandler,
    waiting: Arc<Waiting>,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl Queues {
    pub(super) fn new(sqs: RustackSqs) -> Self {
        let sqs = Arc::new(sqs);
        Self { handler: RustackSqsHandler::new(Arc::clone(&sqs)), sqs, waiting: Arc::default() }
    }

    /// Sends one message or a batch.
    fn send(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let Some(request) = without_groups(&body) else {
            return self.handler.handle_operation(operation, body);
        };
        match SendMessageBatchInput::deserialize(&request) {
            Ok(batch) if can_hold(&batch) => self.hold(batch),
            _ => self.handler.handle_operation(operation, request.to_string().into()),
        }
    }

    fn hold(&self, batch: SendMessageBatchInput) -> ResponseFuture {
        let (sqs, waiting) = (Arc::clone(&self.sqs), Arc::clone(&self.waiting));
        Box::pin(async move {
            // Fails if there is no such queue.
            let queue = GetQueueAttributesInput { queue_url: batch.queue_url.clone(), attribute_names: Vec::new() };
            sqs.get_queue_attributes(queue).await?;
            response(&waiting.hold(&sqs, batch))
        })
    }

    /// Counts first what is held. So a message that becomes due meanwhile is counted twice rather than not at all.
    fn attributes(&self, asked: GetQueueAttributesInput) -> ResponseFuture {
        let (sqs, held) = (Arc::clone(&self.sqs), self.waiting.count(&asked.queue_url));
        Box::pin(async move {
            let mut output = sqs.get_queue_attributes(asked).await?;
            if let Some(delayed) = output.attributes.get_mut(DELAYED_COUNT) {
                *delayed = (delayed.parse().unwrap_or(0) + held).to_string();
            }
            response(&output)
        })
    }
}

impl SqsHandler for Queues {
    fn handle_operation(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        match operation {
            SqsOperation::SendMessage | SqsOperation::SendMessageBatch => return self.send(operation, body),
            SqsOperation::GetQueueAttributes => {
                if let Ok(asked) = serde_json::from_slice(&body) {
                    return self.attributes(asked);
                }
            }
            // Both name the queue in the same way.
            SqsOperation::PurgeQueue | SqsOperation::DeleteQueue => {
                if let Ok(PurgeQueueInput { queue_url }) = serde_json::from_slice(&body) {
                    self.waiting.queues().remove(name(&queue_url));
                }
            }
            _ => {}
        }
        self.handler.handle_operation(operation, body)
    }
}

/// The messages that wait until they are due, by the names of their queues. A task waits for each of them.
#[derive(Default)]
struct Waiting(Mutex<HashMap<String, JoinSet<()>>>);

impl Waiting {
    /// Holds the messages of a batch until they are due. The batch must be one that [`can_hold`] approves of.
    fn hold(&self, sqs: &Arc<RustackSqs>, batch: SendMessageBatchInput) -> SendMessageBatchOutput {
        let mut queues = self.queues();
        let waiting = queues.entry(name(&batch.queue_url).to_owned()).or_default();
        while waiting.try_join_next().is_some() {}
        let mut output = SendMessageBatchOutput::default();
        for entry in batch.entries {
            output.successful.push(SendMessageBatchResultEntry {
                id: entry.id.clone(),
                message_id: Uuid::new_v4().to_string(),
                md5_of_message_body: md5_of_body(&entry.message_body),
                ..SendMessageBatchResultEntry::default()
            });
            let delay = delay(&entry);
            let (sqs, queue_url) = (Arc::clone(sqs), batch.queue_url.clone());
            let due = SendMessageInput {
                queue_url,
                message_body: entry.message_body,
                message_system_attributes: entry.message_system_attributes,
                ..SendMessageInput::default()
            };
            waiting.spawn(async move {
                tokio::time::sleep(delay).await;
                if let Err(error) = sqs.send_message(due).await {
                    tracing::warn!(%error, "a delayed message is lost");
                }
            });
        }
        output
    }

    /// Returns how many messages wait for this queue.
    fn count(&self, queue_url: &str) -> usize {
        self.queues().get_mut(name(queue_url)).map_or(0, |waiting| {
            while waiting.try_join_next().is_some() {}
            waiting.len()
        })
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, JoinSet<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether each message of a batch is delayed and surely acceptable. The emulated SQS decides about all others.
fn can_hold(batch: &SendMessageBatchInput) -> bool {
    let is_plain = |entry: &SendMessageBatchRequestEntry| {
        let seconds = delay(entry).as_secs();
        (1..=MAX_DELAY_SECONDS.into()).contains(&seconds)
            && !entry.message_body.is_empty()
            && entry.message_attributes.is_empty()
    };
    let ids: HashSet<&str> = batch.entries.iter().map(|entry| entry.id.as_str()).collect();
    let bytes: usize = batch.entries.iter().map(|entry| entry.message_body.len()).sum();
    (1..=MAX_ENTRIES).contains(&batch.entries.len())
        && ids.len() == batch.entries.len()
        && bytes <= MAX_BATCH_BYTES
        && batch.entries.iter().all(is_plain)
}

/// Returns the name of a queue. Behind a proxy its URL has another host.
fn name(queue_url: &str) -> &str {
    queue_url.rsplit_once('/').map_or(queue_url, |(_, name)| name)
}

fn delay(entry: &SendMessageBatchRequestEntry) -> Duration {
    Duration::from_secs(entry.delay_seconds.unwrap_or_default().try_into().unwrap_or_default())
}

/// Returns the request without message groups. Returns `None` if the queue is FIFO, where groups matter, or if the
/// body is not a request to send messages.
fn without_groups(body: &[u8]) -> Option<Value> {
    let mut request: Value = serde_json::from_slice(body).ok()?;
    if request["QueueUrl"].as_str()?.rsplit_once('.').is_some_and(|(_, end)| end == "fifo") {
        return None;
    }
    request.as_object_mut()?.remove(GROUP_FIELD);
    for entry in request["Entries"].as_array_mut().into_iter().flatten() {
        entry.as_object_mut()?.remove(GROUP_FIELD);
    }
    Some(request)
}

fn response(output: &impl Serialize) -> Result<Response<SqsResponseBody>, SqsError> {
    let json = serde_json::to_vec(output).map_err(|error| SqsError::internal_error(error.to_string()))?;
    Ok(json_response(json, &Uuid::new_v4().to_string()))
}
