//! The feed queue and its dead-letter queue, used as the marketplace's systems and an operator use them.
//!
//! Queues whose messages a test counts, takes and sends itself, in place of a function.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName::QueueArn;
use aws_sdk_sqs::types::{Message, QueueAttributeName, SendMessageBatchRequestEntry};
use common::aws::{Environment, Patience};
use common::resources::Queue;
use local::environment::Variables;
use local::workers::Backlog;
use tokio::time::{Instant, sleep};
use webhooks::notice::{DisabledNotice, EndpointNotice};

use crate::stack::Stack;
use crate::webhooks::record;

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
        let client = common::queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
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

/// A message that takes longer than this never comes.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A queue of a stack, in the hands of a test.
pub struct TestQueue {
    client: Client,
    url: String,
    arn: String,
    backlog: Backlog,
}

impl Stack {
    /// Returns a queue of the stack.
    pub async fn queue(&self, queue: Queue) -> TestQueue {
        let variables = Variables::new(&self.aws.endpoint_url);
        let client = common::queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
        let url = variables.get(queue.variable()).unwrap();
        let found = client.get_queue_attributes().queue_url(&url).attribute_names(QueueArn).send().await.unwrap();
        let arn = found.attributes.unwrap().remove(&QueueArn).unwrap();
        TestQueue { backlog: Backlog::new(client.clone(), url.clone()), client, url, arn }
    }

    /// Takes every notice that is in its queue now. Returns those that an endpoint was switched off.
    pub async fn take_notices(&self) -> Vec<DisabledNotice> {
        let disabled = |notice| match notice {
            EndpointNotice::Disabled(notice) => Some(notice),
            EndpointNotice::Failing(_) | EndpointNotice::Recovered(_) | EndpointNotice::Full(_) => None,
        };
        self.take_all_notices().await.into_iter().filter_map(disabled).collect()
    }

    /// Takes every notice that is in its queue now.
    pub async fn take_all_notices(&self) -> Vec<EndpointNotice> {
        let queue = self.queue(Queue::Notices).await;
        let messages = queue.take(usize::try_from(queue.count().await).unwrap()).await;
        messages.iter().map(|message| serde_json::from_str(message.body.as_deref().unwrap()).unwrap()).collect()
    }
}

impl TestQueue {
    /// Returns the number of its messages, including those that are being worked on or delayed.
    pub async fn count(&self) -> u64 {
        self.backlog.count().await.unwrap()
    }

    /// Returns the number of messages that could be received now.
    pub async fn visible_count(&self) -> u64 {
        let name = QueueAttributeName::ApproximateNumberOfMessages;
        let request = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(name.clone());
        request.send().await.unwrap().attributes.unwrap()[&name].parse().unwrap()
    }

    /// Deletes every message, delayed ones included.
    pub async fn purge(&self) {
        self.client.purge_queue().queue_url(&self.url).send().await.unwrap();
        self.wait_for_count(0).await;
    }

    /// Waits until it holds this many messages.
    pub async fn wait_for_count(&self, count: u64) {
        let begun = Instant::now();
        while self.count().await != count {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{} messages instead of {count}", self.count().await);
            sleep(POLL_INTERVAL).await;
        }
    }

    /// Waits for this many messages and takes them out.
    pub async fn take(&self, count: usize) -> Vec<SqsMessage> {
        let taken = self.take_out(count).await;
        taken.into_iter().map(|message| record(&message.body.unwrap(), &self.arn)).collect()
    }

    /// Waits for this many dead letters and takes them out.
    pub async fn take_letters(&self, count: usize) -> Vec<DeadLetter> {
        self.take_out(count).await.into_iter().map(DeadLetter::from_message).collect()
    }

    async fn take_out(&self, count: usize) -> Vec<Message> {
        let (mut taken, begun) = (Vec::new(), Instant::now());
        while taken.len() < count {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{} of {count} messages", taken.len());
            let most = i32::try_from((count - taken.len()).min(10)).unwrap();
            let request = self.client.receive_message().queue_url(&self.url).max_number_of_messages(most);
            let request = request.message_attribute_names("All");
            for message in request.wait_time_seconds(1).send().await.unwrap().messages.unwrap_or_default() {
                let delete = self.client.delete_message().queue_url(&self.url);
                delete.set_receipt_handle(message.receipt_handle.clone()).send().await.unwrap();
                taken.push(message);
            }
        }
        taken
    }

    /// Returns the body of a message that contains this text. Every message stays in the queue, as if it had just been
    /// sent: being looked at uses up none of its receives.
    pub async fn find(&self, text: &str) -> Option<String> {
        let mut bodies = Vec::new();
        while self.visible_count().await > 0 {
            bodies.extend(self.take(1).await.into_iter().filter_map(|message| message.body));
        }
        for body in &bodies {
            self.send(body).await;
        }
        bodies.into_iter().find(|body| body.contains(text))
    }

    /// Sends a message.
    pub async fn send(&self, body: &str) {
        self.client.send_message().queue_url(&self.url).message_body(body).send().await.unwrap();
    }

    /// Changes an attribute of the queue.
    pub async fn set_attribute(&self, name: QueueAttributeName, value: &str) {
        self.client.set_queue_attributes().queue_url(&self.url).attributes(name, value).send().await.unwrap();
    }
}
