//! The feed queue and its dead-letter queue, used as the marketplace's systems and an operator use them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, QueueAttributeName, SendMessageBatchRequestEntry};
use local::environment::Variables;
use local::workers::Backlog;
use platform::aws::{Environment, Patience};
use platform::resources::Queue;
use tokio::time::Instant;

/// A feed that is not empty after this time never will be.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);

/// The feed queue of a stack.
#[derive(Clone)]
pub struct FeedQueue {
    pub client: Client,
    pub url: String,
    pub dead_url: String,
    pub backlog: Backlog,
}

/// A message of the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetter {
    pub body: String,
    /// The string attributes.
    pub attributes: BTreeMap<String, String>,
}

impl FeedQueue {
    pub fn from_variables(variables: &Variables) -> Self {
        let client = queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
        let [url, dead_url] = [Queue::Feed, Queue::FeedDead].map(|queue| variables.get(queue.variable()).unwrap());
        let backlog = Backlog::new(client.clone(), url.clone());
        Self { client, url, dead_url, backlog }
    }

    /// Sends messages without checking them.
    pub async fn send(&self, messages: &[String]) {
        for batch in messages.chunks(10) {
            let entries = batch.iter().enumerate().map(|(index, body)| {
                SendMessageBatchRequestEntry::builder().id(index.to_string()).message_body(body).build().unwrap()
            });
            let request = self.client.send_message_batch().queue_url(&self.url);
            let sent = request.set_entries(Some(entries.collect())).send().await.unwrap();
            assert!(sent.failed.is_empty(), "{:?}", sent.failed);
        }
    }

    /// Changes an attribute of the feed queue.
    pub async fn set_attribute(&self, name: QueueAttributeName, value: &str) {
        self.client.set_queue_attributes().queue_url(&self.url).attributes(name, value).send().await.unwrap();
    }

    /// Waits until the feed queue is empty.
    pub async fn wait_until_empty(&self) {
        let emptied = tokio::time::timeout(WAIT_TIMEOUT, self.backlog.wait_until_empty()).await;
        emptied.expect("the feed to be worked off").unwrap();
    }

    /// Waits for `count` dead letters that contain this word, and takes them out of the queue, which other tests may
    /// share. Returns them sorted, because the queue has no order.
    pub async fn dead_letters_with(&self, word: &str, count: usize) -> Vec<DeadLetter> {
        // A set, because a letter may have been sent twice.
        let (mut letters, begun) = (BTreeSet::new(), Instant::now());
        while letters.len() < count {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{} of {count} letters", letters.len());
            let request = self.client.receive_message().queue_url(&self.dead_url).message_attribute_names("All");
            let request = request.max_number_of_messages(10).visibility_timeout(1).wait_time_seconds(1);
            let received = request.send().await.unwrap().messages.unwrap_or_default();
            for message in received.into_iter().filter(|message| message.body.as_ref().unwrap().contains(word)) {
                letters.insert(self.take_dead_letter(message).await);
            }
        }
        letters.into_iter().collect()
    }

    /// Takes everything out of the dead-letter queue. Returns it sorted, because the queue has no order.
    pub async fn take_dead_letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        loop {
            let request = self.client.receive_message().queue_url(&self.dead_url).max_number_of_messages(10);
            let received = request.message_attribute_names("All").send().await.unwrap();
            let Some(messages) = received.messages.filter(|messages| !messages.is_empty()) else {
                letters.sort();
                return letters;
            };
            for message in messages {
                letters.push(self.take_dead_letter(message).await);
            }
        }
    }

    async fn take_dead_letter(&self, message: Message) -> DeadLetter {
        let delete = self.client.delete_message().queue_url(&self.dead_url);
        delete.set_receipt_handle(message.receipt_handle.clone()).send().await.unwrap();
        DeadLetter::from_message(message)
    }
}

impl DeadLetter {
    pub(crate) fn from_message(message: Message) -> Self {
        let attributes = message.message_attributes.unwrap_or_default().into_iter();
        let attributes = attributes.map(|(name, value)| (name, value.string_value.unwrap())).collect();
        Self { body: message.body.unwrap(), attributes }
    }

    /// An attribute's value, empty if there is none.
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}
