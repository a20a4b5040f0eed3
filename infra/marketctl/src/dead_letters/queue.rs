//! A dead-letter queue as SQS has it. Receiving hides a message for a while, returns at most ten, in no order, and may
//! leave out some that are there. So letters are received until no more come, and those that stay are given back.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{ChangeMessageVisibilityBatchRequestEntry, MessageSystemAttributeName, QueueAttributeName};
use common::ids::MessageId;
use common::store::explain;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};

use super::letter::Letter;
use crate::cli::LetterQueue;
use crate::failure::CommandFailure;
use crate::session::{CHECK_HINT, Session};

/// The most calls in flight at a time.
pub(super) const MAX_CALLS_IN_FLIGHT: usize = 16;
/// The most messages that SQS returns or takes in one call.
const MAX_MESSAGES: u8 = 10;
/// Receiving ends once this many answers in a row had nothing new.
const EMPTY_ANSWERS: usize = 2;
/// How long SQS waits for a message before it answers that there is none. Such a call asks all of its servers.
const WAIT_SECONDS: i32 = 1;
/// The most letters that a command takes, because it holds them in memory.
const MAX_LETTERS: usize = 10_000;

/// Why a change was not made.
pub(super) struct Unchanged {
    pub(super) reason: String,
    /// Whether it may have been made, because no answer came.
    pub(super) is_in_doubt: bool,
}

pub(super) struct DeadQueue {
    client: Client,
    pub(super) queue: LetterQueue,
    url: String,
}

/// The letters that a command has taken. They are hidden from everybody else until they are given back or deleted, or
/// until their time is over.
pub(super) struct Taken {
    /// Oldest first.
    pub(super) letters: Vec<Letter>,
    /// About how many were hidden before, because somebody else holds them.
    pub(super) hidden: u64,
    /// About how many were left because there are too many.
    pub(super) more: u64,
}

impl DeadQueue {
    pub(super) async fn open(session: &Session, queue: LetterQueue) -> Result<Self, CommandFailure> {
        let url = session.queue_url(queue.queue()).await;
        let url = url.map_err(|reason| CommandFailure::new(format!("nothing was done: {reason}"), CHECK_HINT))?;
        Ok(Self { client: session.sqs(), queue, url })
    }

    /// Takes all letters, or receives until it has those that are wanted. The others are hidden for `hold`.
    pub(super) async fn take(&self, wanted: &BTreeSet<MessageId>, hold: Duration) -> Result<Taken, CommandFailure> {
        let [visible, hidden, kept_seconds] = self.attributes().await?;
        let mut taken = BTreeMap::<MessageId, Letter>::new();
        let (mut calls, mut empty) = (1, 0);
        while empty < EMPTY_ANSWERS && taken.len() < MAX_LETTERS {
            let before = taken.len();
            let received = join_all((0..calls).map(|_| self.receive(hold, kept_seconds))).await;
            let mut failed = None;
            let mut is_full = false;
            for answer in received {
                match answer {
                    Ok(letters) => {
                        is_full |= letters.len() == usize::from(MAX_MESSAGES);
                        // Of a letter that was received twice, only the newest handle is sure to be of use.
                        taken.extend(letters.into_iter().map(|letter| (letter.message_id, letter)));
                    }
                    Err(failure) => failed = Some(failure),
                }
            }
            if let Some(failure) = failed {
                self.give_back(taken.values()).await;
                return Err(failure);
            }
            if !wanted.is_empty() && wanted.iter().all(|id| taken.contains_key(id)) {
                break;
            }
            empty = if taken.len() == before { empty + 1 } else { 0 };
            calls = if is_full { MAX_CALLS_IN_FLIGHT } else { 1 };
        }
        let is_cut = taken.len() >= MAX_LETTERS;
        let more = if is_cut { visible.saturating_sub(taken.len() as u64) } else { 0 };
        let mut letters: Vec<_> = taken.into_values().collect();
        letters.sort_by_key(|letter| (letter.sent_at, letter.message_id));
        Ok(Taken { letters, hidden, more })
    }

    /// Returns about how many letters can be received, about how many are hidden, and for how many seconds SQS keeps them.
    async fn attributes(&self) -> Result<[u64; 3], CommandFailure> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
            QueueAttributeName::MessageRetentionPeriod,
        ];
        let request = self.client.get_queue_attributes().queue_url(&self.url);
        let found = request.set_attribute_names(Some(names.to_vec())).send().await;
        let found = found.map_err(|error| self.unread(&explain(&error)))?.attributes.unwrap_or_default();
        Ok(names.map(|name| found.get(&name).and_then(|value| value.parse().ok()).unwrap_or_default()))
    }

    async fn receive(&self, hold: Duration, kept_seconds: u64) -> Result<Vec<Letter>, CommandFailure> {
        let request = self.client.receive_message().queue_url(&self.url);
        let request = request.max_number_of_messages(MAX_MESSAGES.into()).wait_time_seconds(WAIT_SECONDS);
        let request = request.visibility_timeout(i32::try_from(hold.as_secs()).unwrap_or(i32::MAX));
        let request = request.message_attribute_names("All");
        let request = request.message_system_attribute_names(MessageSystemAttributeName::All);
        let received = request.send().await.map_err(|error| self.unread(&explain(&error)))?;
        let kept_for = i64::try_from(kept_seconds.saturating_mul(1_000)).unwrap_or(i64::MAX);
        let letter = |message| Letter::new(self.queue, message, kept_for);
        Ok(received.messages.unwrap_or_default().into_iter().filter_map(letter).collect())
    }

    fn unread(&self, reason: &str) -> CommandFailure {
        let name = common::queues::name(&self.url);
        CommandFailure::new(format!("nothing was done: queue {name} cannot be read: {reason}"), CHECK_HINT)
    }

    /// Lets everybody see letters again. If that fails, SQS does it once their time is over.
    pub(super) async fn give_back<'a>(&self, letters: impl IntoIterator<Item = &'a Letter>) {
        let handles: Vec<&str> = letters.into_iter().map(|letter| letter.handle.as_str()).collect();
        let calls = handles.chunks(MAX_MESSAGES.into()).map(|chunk| {
            let entries = chunk.iter().enumerate().map(|(number, handle)| {
                let entry = ChangeMessageVisibilityBatchRequestEntry::builder().id(number.to_string());
                entry.receipt_handle(*handle).visibility_timeout(0).build()
            });
            let entries = entries.filter_map(Result::ok).collect();
            self.client.change_message_visibility_batch().queue_url(&self.url).set_entries(Some(entries)).send()
        });
        stream::iter(calls).buffer_unordered(MAX_CALLS_IN_FLIGHT).for_each(|_| std::future::ready(())).await;
    }

    /// Sends a message to the queue with this URL.
    pub(super) async fn send(&self, url: &str, body: &str) -> Result<(), Unchanged> {
        let sent = self.client.send_message().queue_url(url).message_body(body).send().await;
        sent.map(drop).map_err(|error| unchanged(&error))
    }

    pub(super) async fn delete(&self, letter: &Letter) -> Result<(), Unchanged> {
        let delete = self.client.delete_message().queue_url(&self.url).receipt_handle(&letter.handle);
        delete.send().await.map(drop).map_err(|error| unchanged(&error))
    }
}

fn unchanged<E>(error: &SdkError<E>) -> Unchanged
where
    E: ProvideErrorMetadata + Error + 'static,
{
    Unchanged { reason: explain(error), is_in_doubt: error.as_service_error().is_none() }
}
