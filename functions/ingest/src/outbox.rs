//! Sends copies of messages that were not applied, before the messages are acknowledged.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use common::queues::{MessageCopy, UnsentCopy, send_copies};

use crate::copies::{postponed, refused};
use crate::outcome::MessageOutcome;

/// Sends to the feed queue and to its dead-letter queue.
pub(crate) struct Outbox {
    client: Client,
    feed: String,
    dead: String,
}

impl Outbox {
    pub(crate) fn new(client: Client, feed: String, dead: String) -> Self {
        Self { client, feed, dead }
    }

    /// Sends a copy of each message that was refused or postponed or met a defect, and returns the messages' final
    /// outcomes. If it is not certain that a copy was sent, its message has failed and stays in its queue.
    pub(crate) async fn settle(
        &self,
        records: &[SqsMessage],
        mut outcomes: Vec<MessageOutcome>,
    ) -> Vec<MessageOutcome> {
        let (mut dead, mut later, mut unsent) = (Vec::new(), Vec::new(), Vec::<UnsentCopy>::new());
        for (number, (record, outcome)) in records.iter().zip(&outcomes).enumerate() {
            let (copies, copy) = match outcome {
                MessageOutcome::Refused(rejection) => (&mut dead, refused(number, record, rejection)),
                MessageOutcome::Defective(defect) => {
                    (&mut dead, MessageCopy::defective(number, record.body.clone(), defect))
                }
                MessageOutcome::Postponed(_) => (&mut later, postponed(number, record)),
                MessageOutcome::Changed | MessageOutcome::Unchanged | MessageOutcome::Failed(_) => continue,
            };
            match copy {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((number, error.to_string())),
            }
        }
        let (not_dead, not_later) =
            tokio::join!(send_copies(&self.client, &self.dead, dead), send_copies(&self.client, &self.feed, later));
        for (number, error) in unsent.into_iter().chain(not_dead).chain(not_later) {
            outcomes[number] = MessageOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
        outcomes
    }
}
