//! The emulated SQS, with four things that it lacks.
//!
//! With a folder, messages are kept ([`super::journal`]). Standard queues take message groups, which are a hint in SQS
//! (fair queues). And many delayed messages do not make it slow: the emulated SQS moves all of a queue's delayed
//! messages on each receive, which SQS does not do. So batches of delayed messages wait here, and the emulated SQS gets
//! them when they are due. A consumer sees another message id than the one that its sender was told. And what SQS refuses
//! is refused.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::io;
use std::path::Path;
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
use rustack_sqs_model::error::{SqsError, SqsErrorCode};
use rustack_sqs_model::input::{
    CreateQueueInput, DeleteMessageBatchInput, DeleteMessageInput, GetQueueAttributesInput, GetQueueUrlInput,
    PurgeQueueInput, SendMessageBatchInput, SendMessageInput,
};
use rustack_sqs_model::operations::SqsOperation;
use rustack_sqs_model::output::{SendMessageBatchOutput, SendMessageOutput};
use rustack_sqs_model::types::{BatchResultErrorEntry, SendMessageBatchRequestEntry, SendMessageBatchResultEntry};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use uuid::Uuid;

use super::faults::FaultInjector;
use super::journal::{Journal, Place, queue_name};

const GROUP_FIELD: &str = "MessageGroupId";
const DELAYED_COUNT: &str = "ApproximateNumberOfMessagesDelayed";
/// The most messages in a batch (SQS).
const MAX_ENTRIES: usize = 10;
/// The most bytes of the messages of a batch (SQS).
const MAX_SENT_BYTES: usize = 1_024 * 1_024;
/// The most characters of the id of a message in its batch (SQS).
const MAX_ID_CHARS: usize = 80;
const NO_TEXT: &str = "the message has a character that SQS does not take: only #x9, #xA, #xD, #x20 to #xD7FF, #xE000 to \
    #xFFFD and #x10000 to #x10FFFF are taken";

/// Answers the calls to SQS. Clones are the same queues.
#[derive(Clone)]
pub(super) struct Queues {
    sqs: Arc<RustackSqs>,
    handler: Arc<RustackSqsHandler>,
    waiting: Arc<Waiting>,
    faults: Arc<FaultInjector>,
    /// What is kept. Who sends holds it until the message is in the journal, so no message ends before.
    journal: Option<Arc<tokio::sync::Mutex<Journal>>>,
}

type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<SqsResponseBody>, SqsError>> + Send>>;

impl Queues {
    /// Keeps the messages in the folder `data` if there is one.
    pub(super) fn open(sqs: RustackSqs, data: Option<&Path>, faults: Arc<FaultInjector>) -> io::Result<Self> {
        let sqs = Arc::new(sqs);
        let journal = data.map(Journal::open).transpose()?;
        let journal = journal.map(|journal| Arc::new(tokio::sync::Mutex::new(journal)));
        let handler = Arc::new(RustackSqsHandler::new(Arc::clone(&sqs)));
        Ok(Self { handler, sqs, waiting: Arc::default(), faults, journal })
    }

    /// Sends one message or a batch.
    fn send(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let mut request = without_groups(&body);
        if let Some(request) = &mut request {
            self.send_again(request);
        }
        let body = request.map_or(body, |request| request.to_string().into());
        let queues = self.clone();
        Box::pin(async move {
            if matches!(operation, SqsOperation::SendMessage) {
                return response(&queues.send_one(parse(&body)?).await?);
            }
            response(&queues.send_batch(parse(&body)?).await?)
        })
    }

    async fn send_one(&self, message: SendMessageInput) -> Result<SendMessageOutput, SqsError> {
        if !is_text(&message.message_body) {
            return Err(SqsError::invalid_parameter_value(NO_TEXT));
        }
        let mut journal = self.journal().await;
        let sent = self.sqs.send_message(message.clone()).await?;
        if let Some(journal) = &mut journal {
            journal.add_taken(
                message,
                sent.message_id.as_deref().unwrap_or_default(),
                sent.sequence_number.as_deref(),
            )?;
        }
        Ok(sent)
    }

    async fn send_batch(&self, mut batch: SendMessageBatchInput) -> Result<SendMessageBatchOutput, SqsError> {
        check(&batch)?;
        let refused: Vec<_> =
            batch.entries.extract_if(.., |entry| !is_text(&entry.message_body)).map(refusal).collect();
        let mut sent = match batch.entries.len() {
            0 if !refused.is_empty() => SendMessageBatchOutput::default(),
            _ if can_hold(&batch) => self.hold(batch).await?,
            _ => self.take(batch).await?,
        };
        sent.failed.extend(refused);
        Ok(sent)
    }

    /// Has the emulated SQS take a batch.
    async fn take(&self, batch: SendMessageBatchInput) -> Result<SendMessageBatchOutput, SqsError> {
        let mut journal = self.journal().await;
        let sent = self.sqs.send_message_batch(batch.clone()).await?;
        let Some(journal) = &mut journal else { return Ok(sent) };
        for SendMessageBatchResultEntry { id, message_id, sequence_number, .. } in &sent.successful {
            for entry in batch.entries.iter().filter(|entry| entry.id == *id) {
                journal.add_taken(message(&batch.queue_url, entry.clone()), message_id, sequence_number.as_deref())?;
            }
        }
        Ok(sent)
    }

    async fn journal(&self) -> Option<tokio::sync::MutexGuard<'_, Journal>> {
        Some(self.journal.as_ref()?.lock().await)
    }

    /// Lets messages of a request come late, or once more.
    fn send_again(&self, request: &mut Value) {
        let queue_url = request["QueueUrl"].as_str().unwrap_or_default().to_owned();
        for (body, delay_seconds) in self.faults.of_messages(request) {
            let message = json!({ "QueueUrl": queue_url, "MessageBody": body, "DelaySeconds": delay_seconds });
            if let Ok(message) = serde_json::from_value(message) {
                self.send_when_due(message, None);
            }
        }
    }

    /// Holds the messages of a batch until they are due. The batch must be one that [`can_hold`] approves of.
    async fn hold(&self, batch: SendMessageBatchInput) -> Result<SendMessageBatchOutput, SqsError> {
        // Fails if there is no such queue.
        let queue = GetQueueAttributesInput { queue_url: batch.queue_url.clone(), attribute_names: Vec::new() };
        self.sqs.get_queue_attributes(queue).await?;
        let mut output = SendMessageBatchOutput::default();
        for entry in batch.entries {
            output.successful.push(SendMessageBatchResultEntry {
                id: entry.id.clone(),
                message_id: Uuid::new_v4().to_string(),
                md5_of_message_body: md5_of_body(&entry.message_body),
                ..SendMessageBatchResultEntry::default()
            });
            let message = message(&batch.queue_url, entry);
            let place = match self.journal().await {
                Some(mut journal) => Some(journal.add(message.clone())?),
                None => None,
            };
            self.send_when_due(message, place);
        }
        Ok(output)
    }

    /// Sends a message after its delay. If it is kept, it has a place.
    fn send_when_due(&self, message: SendMessageInput, place: Option<Place>) {
        let (sqs, journal) = (Arc::clone(&self.sqs), self.journal.clone());
        let mut waiting = self.waiting.queues();
        let waiting = waiting.entry(queue_name(&message.queue_url).to_owned()).or_default();
        while waiting.try_join_next().is_some() {}
        waiting.spawn(async move {
            tokio::time::sleep(delay(message.delay_seconds)).await;
            let due = SendMessageInput { delay_seconds: None, ..message };
            let mut journal = match &journal {
                Some(journal) => Some(journal.lock().await),
                None => None,
            };
            match (sqs.send_message(due).await, &mut journal, place) {
                (Ok(sent), Some(journal), Some(place)) => {
                    journal.take(place, sent.message_id.as_deref().unwrap_or_default(), None);
                }
                (Ok(_), ..) => {}
                (Err(error), ..) => tracing::warn!(%error, "a delayed message is lost"),
            }
        });
    }

    /// Does what ends messages or brings kept ones back, and notes that.
    fn note(&self, operation: SqsOperation, body: Bytes) -> ResponseFuture {
        let queues = self.clone();
        Box::pin(async move {
            let answer = queues.handler.handle_operation(operation, body.clone()).await?;
            let Some(journal) = &queues.journal else { return Ok(answer) };
            let mut journal = journal.lock().await;
            match operation {
                SqsOperation::DeleteMessage => {
                    let DeleteMessageInput { receipt_handle, .. } = parse(&body)?;
                    journal.end(&[receipt_handle])?;
                }
                SqsOperation::DeleteMessageBatch => {
                    let DeleteMessageBatchInput { entries, .. } = parse(&body)?;
                    let receipts: Vec<String> = entries.into_iter().map(|entry| entry.receipt_handle).collect();
                    journal.end(&receipts)?;
                }
                SqsOperation::CreateQueue => {
                    let CreateQueueInput { queue_name, .. } = parse(&body)?;
                    queues.send_left(&mut journal, &queue_name).await?;
                }
                _ => {
                    let PurgeQueueInput { queue_url } = parse(&body)?;
                    journal.end_all(queue_name(&queue_url))?;
                }
            }
            Ok(answer)
        })
    }

    /// Sends again what an earlier start left in a queue.
    async fn send_left(&self, journal: &mut Journal, queue_name: &str) -> Result<(), SqsError> {
        let named = GetQueueUrlInput { queue_name: queue_name.to_owned(), queue_owner_aws_account_id: None };
        let queue_url = self.sqs.get_queue_url(named).await?.queue_url.unwrap_or_default();
        for (place, message) in journal.left(&queue_url)? {
            if message.delay_seconds.is_some() {
                self.send_when_due(message, Some(place));
            } else {
                let sent = self.sqs.send_message(message).await?;
                journal.take(place, sent.message_id.as_deref().unwrap_or_default(), sent.sequence_number.as_deref());
            }
        }
        Ok(())
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
                    self.waiting.queues().remove(queue_name(&queue_url));
                }
                return self.note(operation, body);
            }
            SqsOperation::DeleteMessage | SqsOperation::DeleteMessageBatch | SqsOperation::CreateQueue => {
                return self.note(operation, body);
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
    /// Returns how many messages wait for this queue.
    fn count(&self, queue_url: &str) -> usize {
        self.queues().get_mut(queue_name(queue_url)).map_or(0, |waiting| {
            while waiting.try_join_next().is_some() {}
            waiting.len()
        })
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, JoinSet<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns an error if SQS would refuse the batch as a whole. The emulated SQS checks what is not checked here.
fn check(batch: &SendMessageBatchInput) -> Result<(), SqsError> {
    let is_id = |id: &str| {
        (1..=MAX_ID_CHARS).contains(&id.len()) && id.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_".contains(&c))
    };
    if let Some(entry) = batch.entries.iter().find(|entry| !is_id(&entry.id)) {
        return Err(SqsError::new(SqsErrorCode::InvalidBatchEntryId, format!("{:?} is no id of an entry", entry.id)));
    }
    let bytes: usize = batch.entries.iter().map(|entry| entry.message_body.len()).sum();
    if bytes > MAX_SENT_BYTES {
        let reason = format!("the batch has {bytes} bytes, and {MAX_SENT_BYTES} are the most");
        return Err(SqsError::new(SqsErrorCode::BatchRequestTooLong, reason));
    }
    Ok(())
}

/// Returns whether SQS takes a text: all characters of XML 1.0.
fn is_text(body: &str) -> bool {
    body.chars().all(|c| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..))
}

fn refusal(entry: SendMessageBatchRequestEntry) -> BatchResultErrorEntry {
    let (code, message) = ("InvalidMessageContents".to_owned(), Some(NO_TEXT.to_owned()));
    BatchResultErrorEntry { id: entry.id, sender_fault: true, code, message }
}

/// Returns whether each message of a batch is delayed and surely acceptable. The emulated SQS decides about all others.
fn can_hold(batch: &SendMessageBatchInput) -> bool {
    let is_plain = |entry: &SendMessageBatchRequestEntry| {
        let seconds = delay(entry.delay_seconds).as_secs();
        (1..=MAX_DELAY_SECONDS.into()).contains(&seconds)
            && !entry.message_body.is_empty()
            && entry.message_attributes.is_empty()
            // In a FIFO queue it has one.
            && entry.message_group_id.is_none()
    };
    let ids: HashSet<&str> = batch.entries.iter().map(|entry| entry.id.as_str()).collect();
    (1..=MAX_ENTRIES).contains(&batch.entries.len())
        && ids.len() == batch.entries.len()
        && batch.entries.iter().map(|entry| entry.message_body.len()).sum::<usize>() <= MAX_BATCH_BYTES
        && batch.entries.iter().all(is_plain)
}

fn delay(seconds: Option<i32>) -> Duration {
    Duration::from_secs(seconds.unwrap_or_default().try_into().unwrap_or_default())
}

/// Returns a message of a batch.
fn message(queue_url: &str, entry: SendMessageBatchRequestEntry) -> SendMessageInput {
    SendMessageInput {
        queue_url: queue_url.to_owned(),
        message_body: entry.message_body,
        delay_seconds: entry.delay_seconds,
        message_deduplication_id: entry.message_deduplication_id,
        message_group_id: entry.message_group_id,
        message_attributes: entry.message_attributes,
        message_system_attributes: entry.message_system_attributes,
    }
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

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, SqsError> {
    serde_json::from_slice(body).map_err(|error| SqsError::invalid_parameter_value(error.to_string()))
}
