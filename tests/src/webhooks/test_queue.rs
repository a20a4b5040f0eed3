//! Queues whose messages a test counts, takes and sends itself, in place of a function.

use std::time::Duration;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::Message;
use aws_sdk_sqs::types::QueueAttributeName::{self, QueueArn};
use local::environment::Variables;
use local::workers::Backlog;
use platform::aws::{Environment, Patience};
use platform::resources::Queue;
use tokio::time::{Instant, sleep};
use webhooks::notice::DisabledNotice;
use webhooks::notice::EndpointNotice;

use super::steps::record;
use crate::queue::DeadLetter;
use crate::stack::Stack;

/// A message that takes longer than this never comes.
const WAIT_TIMEOUT: Duration = Duration::from_mins(2);
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
        let client = queues::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
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
