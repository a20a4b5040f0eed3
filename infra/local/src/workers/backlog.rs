//! Counts the messages that a queue still holds.

use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::QueueAttributeName;
use platform::store::explain;

/// The messages that wait, that are being worked on, and that are delayed.
const COUNT_ATTRIBUTES: [QueueAttributeName; 3] = [
    QueueAttributeName::ApproximateNumberOfMessages,
    QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    QueueAttributeName::ApproximateNumberOfMessagesDelayed,
];
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The messages of a queue.
#[derive(Clone, Debug)]
pub struct Backlog {
    client: Client,
    queue_url: String,
}

impl Backlog {
    /// Counts the messages of the queue with this URL.
    pub fn new(client: Client, queue_url: String) -> Self {
        Self { client, queue_url }
    }

    /// Returns the number of messages, including those that are being worked on or delayed.
    pub async fn count(&self) -> Result<u64, String> {
        let request = self.client.get_queue_attributes().queue_url(&self.queue_url);
        let found = request.set_attribute_names(Some(COUNT_ATTRIBUTES.to_vec())).send().await;
        let found = found.map_err(|error| format!("queue {}: {}", self.queue_url, explain(&error)))?;
        let counts = found.attributes.unwrap_or_default();
        Ok(COUNT_ATTRIBUTES.iter().filter_map(|name| counts.get(name)?.parse::<u64>().ok()).sum())
    }

    /// Waits until the queue holds no messages.
    pub async fn wait_until_empty(&self) -> Result<(), String> {
        while self.count().await? > 0 {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }
}
