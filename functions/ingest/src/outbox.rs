//! Sends copies of refused and postponed messages, before the messages are acknowledged.

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::Client;
use futures_util::future::join_all;
use platform::store::explain;

use crate::copies::MessageCopy;
use crate::outcome::MessageOutcome;

/// Sends to the feed queue and to its dead-letter queue.
pub(crate) struct Outbox {
    client: Client,
    feed: String,
    dead: String,
}

/// The place of a message whose copy may not have been sent, and the reason.
type Unsent = (usize, String);

impl Outbox {
    pub(crate) fn new(client: Client, feed: String, dead: String) -> Self {
        Self { client, feed, dead }
    }

    /// Sends a copy of each message that was refused or postponed, and returns the messages' final outcomes. If it is
    /// not certain that a copy was sent, its message has failed and stays in its queue.
    pub(crate) async fn settle(
        &self,
        records: &[SqsMessage],
        mut outcomes: Vec<MessageOutcome>,
    ) -> Vec<MessageOutcome> {
        let (mut refused, mut postponed, mut unsent) = (Vec::new(), Vec::new(), Vec::<Unsent>::new());
        for (place, (record, outcome)) in records.iter().zip(&outcomes).enumerate() {
            let (copies, copy) = match outcome {
                MessageOutcome::Refused(rejection) => (&mut refused, MessageCopy::refused(place, record, rejection)),
                MessageOutcome::Postponed(_) => (&mut postponed, MessageCopy::postponed(place, record)),
                MessageOutcome::Changed | MessageOutcome::Unchanged | MessageOutcome::Failed(_) => continue,
            };
            match copy {
                Ok(copy) => copies.push(copy),
                Err(error) => unsent.push((place, error.to_string())),
            }
        }
        let refused =
            queues::batches(refused, MessageCopy::bytes).into_iter().map(|copies| self.send(&self.dead, copies));
        let postponed =
            queues::batches(postponed, MessageCopy::bytes).into_iter().map(|copies| self.send(&self.feed, copies));
        unsent.extend(join_all(refused.chain(postponed)).await.into_iter().flatten());
        for (place, error) in unsent {
            outcomes[place] = MessageOutcome::Failed(format!("its copy cannot be sent: {error}"));
        }
        outcomes
    }

    /// Sends the copies of a batch, and returns those that may not have been sent.
    async fn send(&self, queue: &str, copies: Vec<MessageCopy>) -> Vec<Unsent> {
        let (places, entries): (Vec<usize>, Vec<_>) = copies.into_iter().map(|copy| (copy.place, copy.entry)).unzip();
        // Body and attributes of one message together may exceed the size limit of SQS. Then this fails on every
        // receive, until the redrive policy moves the message itself.
        let request = self.client.send_message_batch().queue_url(queue).set_entries(Some(entries));
        let sent = match request.send().await {
            Ok(sent) => sent,
            Err(error) => return places.into_iter().map(|place| (place, explain(&error))).collect(),
        };
        let accepted = |place: usize| sent.successful.iter().any(|entry| entry.id == place.to_string());
        let reason = |place: usize| {
            let failure = sent.failed.iter().find(|entry| entry.id == place.to_string());
            failure.map_or_else(|| "SQS says nothing about it".to_owned(), |failure| failure.code.clone())
        };
        places.into_iter().filter(|place| !accepted(*place)).map(|place| (place, reason(place))).collect()
    }
}
