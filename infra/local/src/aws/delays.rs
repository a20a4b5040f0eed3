//! Delayed messages of standard queues. The emulated SQS moves all of a queue's delayed messages on each receive, which
//! SQS does not do. So batches of delayed messages wait here, and the emulated SQS gets them when they are due.
//!
//! A consumer sees another message id than the one that its sender was told.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use queues::{MAX_BATCH_BYTES, MAX_DELAY_SECONDS};
use rustack_sqs_core::message::md5_of_body;
use rustack_sqs_core::provider::RustackSqs;
use rustack_sqs_model::input::{SendMessageBatchInput, SendMessageInput};
use rustack_sqs_model::output::SendMessageBatchOutput;
use rustack_sqs_model::types::{SendMessageBatchRequestEntry, SendMessageBatchResultEntry};
use tokio::task::JoinSet;

/// The most messages in a batch (SQS).
const MAX_ENTRIES: usize = 10;

/// The messages that wait, by the names of their queues. A task waits for each of them.
#[derive(Default)]
pub(super) struct Delays(Mutex<HashMap<String, JoinSet<()>>>);

impl Delays {
    /// Holds the messages of a batch until they are due. The batch must be one that [`can_hold`] approves of.
    pub(super) fn hold(&self, sqs: &Arc<RustackSqs>, batch: SendMessageBatchInput) -> SendMessageBatchOutput {
        let mut queues = self.queues();
        let waiting = queues.entry(name(&batch.queue_url).to_owned()).or_default();
        while waiting.try_join_next().is_some() {}
        let mut output = SendMessageBatchOutput::default();
        for entry in batch.entries {
            output.successful.push(accepted(&entry));
            let delay = delay(&entry);
            let (sqs, queue_url) = (Arc::clone(sqs), batch.queue_url.clone());
            waiting.spawn(async move {
                tokio::time::sleep(delay).await;
                if let Err(error) = sqs.send_message(due(queue_url, entry)).await {
                    tracing::warn!(%error, "a delayed message is lost");
                }
            });
        }
        output
    }

    /// Returns how many messages wait for this queue.
    pub(super) fn count(&self, queue_url: &str) -> usize {
        self.queues().get_mut(name(queue_url)).map_or(0, |waiting| {
            while waiting.try_join_next().is_some() {}
            waiting.len()
        })
    }

    /// Drops the messages that wait for this queue.
    pub(super) fn drop_all(&self, queue_url: &str) {
        self.queues().remove(name(queue_url));
    }

    fn queues(&self) -> MutexGuard<'_, HashMap<String, JoinSet<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether each message of a batch is delayed and surely acceptable. The emulated SQS decides about all others.
pub(super) fn can_hold(batch: &SendMessageBatchInput) -> bool {
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

fn accepted(entry: &SendMessageBatchRequestEntry) -> SendMessageBatchResultEntry {
    SendMessageBatchResultEntry {
        id: entry.id.clone(),
        message_id: uuid::Uuid::new_v4().to_string(),
        md5_of_message_body: md5_of_body(&entry.message_body),
        ..SendMessageBatchResultEntry::default()
    }
}

fn due(queue_url: String, entry: SendMessageBatchRequestEntry) -> SendMessageInput {
    SendMessageInput {
        queue_url,
        message_body: entry.message_body,
        message_system_attributes: entry.message_system_attributes,
        ..SendMessageInput::default()
    }
}
