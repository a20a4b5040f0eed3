//! Queues whose messages a test sends, counts and takes, as the marketplace's systems and an operator do.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::receive_message::builders::ReceiveMessageFluentBuilder;
use aws_sdk_sqs::types::{Message, QueueAttributeName, SendMessageBatchRequestEntry};
use common::aws::{Environment, Patience};
use common::resources::Queue;
use local::environment::Variables;
use local::workers::Backlog;
use tokio::time::{Instant, sleep};
use webhooks::notice::{DisabledNotice, EndpointNotice};

use crate::stack::Stack;
use crate::webhooks::record;

/// A queue that does not hold what is awaited after this time never will.
const WAIT_TIMEOUT: Duration = Duration::from_mins(3);
/// The time between two counts of a queue's messages.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A queue in the hands of a test.
#[derive(Clone)]
pub struct TestQueue {
    pub client: Client,
    pub url: String,
    backlog: Backlog,
}

/// A message of a dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeadLetter {
    pub body: String,
    /// The string attributes.
    pub attributes: BTreeMap<String, String>,
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

impl Stack {
    /// Returns a queue of the stack.
    pub fn queue(&self, queue: Queue) -> TestQueue {
        TestQueue::new(&Variables::new(&self.aws.endpoint_url), queue)
    }

    /// Takes every notice that is in its queue now. Returns those that an endpoint was switched off.
    pub async fn take_notices(&self) -> Vec<DisabledNotice> {
        let disabled = |notice| match notice {
            EndpointNotice::Disabled(notice) => Some(notice),
            EndpointNotice::Failing(_) => None,
        };
        self.take_all_notices().await.into_iter().filter_map(disabled).collect()
    }

    /// Takes every notice that is in its queue now.
    pub async fn take_all_notices(&self) -> Vec<EndpointNotice> {
        let queue = self.queue(Queue::Notices);
        let messages = queue.take(usize::try_from(queue.count().await).unwrap()).await;
        messages.iter().map(|message| serde_json::from_str(message.body.as_deref().unwrap()).unwrap()).collect()
    }
}

impl TestQueue {
    /// Returns a queue of the stack with these variables.
    pub fn new(variables: &Variables, queue: Queue) -> Self {
        let client = common::queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
        let url = variables.get(queue.variable()).unwrap();
        Self { backlog: Backlog::new(client.clone(), url.clone()), client, url }
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

    /// Changes an attribute of the queue.
    pub async fn set_attribute(&self, name: QueueAttributeName, value: &str) {
        self.client.set_queue_attributes().queue_url(&self.url).attributes(name, value).send().await.unwrap();
    }

    /// Returns the number of its messages, including those that are being worked on or delayed.
    pub async fn count(&self) -> u64 {
        self.backlog.count().await.unwrap()
    }

    /// Returns the number of messages that could be received now.
    pub async fn visible_count(&self) -> u64 {
        self.attribute(QueueAttributeName::ApproximateNumberOfMessages).await.parse().unwrap()
    }

    async fn attribute(&self, name: QueueAttributeName) -> String {
        let request = self.client.get_queue_attributes().queue_url(&self.url).attribute_names(name.clone());
        request.send().await.unwrap().attributes.unwrap().remove(&name).unwrap()
    }

    /// Deletes every message, delayed ones included.
    pub async fn purge(&self) {
        self.client.purge_queue().queue_url(&self.url).send().await.unwrap();
        self.wait_until_empty().await;
    }

    /// Waits until the queue is empty.
    pub async fn wait_until_empty(&self) {
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
        let arn = self.attribute(QueueAttributeName::QueueArn).await;
        let taken = self.take_out(count).await;
        taken.into_iter().map(|message| record(&message.body.unwrap(), &arn)).collect()
    }

    /// Waits for this many dead letters and takes them out.
    pub async fn take_letters(&self, count: usize) -> Vec<DeadLetter> {
        self.take_out(count).await.into_iter().map(DeadLetter::from_message).collect()
    }

    /// Takes all dead letters out. Returns them sorted, because the queue has no order.
    pub async fn take_all_letters(&self) -> Vec<DeadLetter> {
        let mut letters = Vec::new();
        loop {
            let messages = self.receive(self.client.receive_message()).await;
            if messages.is_empty() {
                letters.sort();
                return letters;
            }
            for message in messages {
                letters.push(DeadLetter::from_message(self.delete(message).await));
            }
        }
    }

    /// Waits for `count` dead letters that contain this word, and takes them out of the queue, which other tests may
    /// share. Returns them sorted, because the queue has no order.
    pub async fn letters_with(&self, word: &str, count: usize) -> Vec<DeadLetter> {
        // A set, because a letter may have been sent twice.
        let (mut letters, begun) = (BTreeSet::new(), Instant::now());
        while letters.len() < count {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{} of {count} letters", letters.len());
            let received = self.receive(self.client.receive_message().visibility_timeout(1).wait_time_seconds(1)).await;
            for message in received.into_iter().filter(|message| message.body.as_ref().unwrap().contains(word)) {
                letters.insert(DeadLetter::from_message(self.delete(message).await));
            }
        }
        letters.into_iter().collect()
    }

    async fn take_out(&self, count: usize) -> Vec<Message> {
        let (mut taken, begun) = (Vec::new(), Instant::now());
        while taken.len() < count {
            assert!(begun.elapsed() < WAIT_TIMEOUT, "{} of {count} messages", taken.len());
            let most = i32::try_from((count - taken.len()).min(10)).unwrap();
            let request = self.client.receive_message().wait_time_seconds(1).max_number_of_messages(most);
            for message in self.receive(request).await {
                taken.push(self.delete(message).await);
            }
        }
        taken
    }

    /// Receives messages: ten at the most, unless the request says otherwise.
    async fn receive(&self, request: ReceiveMessageFluentBuilder) -> Vec<Message> {
        let most = request.get_max_number_of_messages().unwrap_or(10);
        let request = request.queue_url(&self.url).max_number_of_messages(most).message_attribute_names("All");
        request.send().await.unwrap().messages.unwrap_or_default()
    }

    async fn delete(&self, message: Message) -> Message {
        let delete = self.client.delete_message().queue_url(&self.url);
        delete.set_receipt_handle(message.receipt_handle.clone()).send().await.unwrap();
        message
    }

    /// Returns the body of a message that contains this text. Every message stays in the queue, as if it had just been
    /// sent: being looked at uses up none of its receives.
    pub async fn find(&self, text: &str) -> Option<String> {
        let mut bodies = Vec::new();
        while self.visible_count().await > 0 {
            bodies.extend(self.take(1).await.into_iter().filter_map(|message| message.body));
        }
        self.send(&bodies).await;
        bodies.into_iter().find(|body| body.contains(text))
    }
}
