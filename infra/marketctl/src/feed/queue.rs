//! Sends batches of messages to the feed queue.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use platform::backoff::full_jitter;
use platform::resources::Queue;
use platform::store::explain;

use crate::session::Session;

/// A message that SQS fails to accept, and not by the message's fault, is sent at most this many times.
const MAX_ATTEMPTS: u32 = 5;
/// The pause after the first attempt is random and below this. The ceiling doubles with each further attempt.
const FIRST_CEILING: Duration = Duration::from_millis(320);

/// The feed queue of a stack.
#[derive(Clone)]
pub(super) struct FeedQueue {
    client: Client,
    url: String,
}

/// A message with its line number.
pub(super) type NumberedMessage = (u64, String);

/// A line's number, and whether SQS accepted its message. The error is the reason in SQS's words.
pub(super) type SendOutcome = (u64, Result<(), String>);

impl FeedQueue {
    /// Looks up the queue's URL.
    pub(super) async fn find(session: &Session) -> Result<Self, String> {
        Ok(Self { client: session.sqs(), url: session.queue_url(Queue::Feed).await? })
    }

    /// Sends a batch and returns the outcome of each message. An error means that a call failed as a whole: any
    /// of the messages may or may not have been sent.
    pub(super) async fn send(self, batch: Vec<NumberedMessage>) -> Result<Vec<SendOutcome>, String> {
        let (mut left, mut outcomes) = (batch, Vec::new());
        for attempt in 1..=MAX_ATTEMPTS {
            let answer = self.call(&left).await?;
            let (again, mut settled) = settle(left, &answer, attempt == MAX_ATTEMPTS);
            outcomes.append(&mut settled);
            left = again;
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(full_jitter(FIRST_CEILING * 2_u32.pow(attempt - 1))).await;
        }
        Ok(outcomes)
    }

    async fn call(&self, batch: &[NumberedMessage]) -> Result<SendMessageBatchOutput, String> {
        let entries = batch.iter().map(|(line, text)| {
            SendMessageBatchRequestEntry::builder().id(line.to_string()).message_body(text).build()
        });
        let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
        let request = self.client.send_message_batch().queue_url(&self.url).set_entries(Some(entries));
        request.send().await.map_err(|error| explain(&error))
    }
}

/// Separates the messages to send again from those whose outcome is final.
fn settle(
    batch: Vec<NumberedMessage>,
    answer: &SendMessageBatchOutput,
    is_last: bool,
) -> (Vec<NumberedMessage>, Vec<SendOutcome>) {
    let failures: BTreeMap<_, _> = answer.failed.iter().map(|failure| (failure.id.as_str(), failure)).collect();
    let (mut again, mut settled) = (Vec::new(), Vec::new());
    for (line, text) in batch {
        match failures.get(line.to_string().as_str()) {
            None => settled.push((line, Ok(()))),
            Some(failure) if failure.sender_fault || is_last => {
                let reason = failure.message.as_ref().unwrap_or(&failure.code);
                settled.push((line, Err(reason.clone())));
            }
            Some(_) => again.push((line, text)),
        }
    }
    (again, settled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_sdk_sqs::types::BatchResultErrorEntry;

    fn answer(failed: &[(&str, bool)]) -> SendMessageBatchOutput {
        let failed = failed.iter().map(|(id, sender_fault)| {
            BatchResultErrorEntry::builder().id(*id).code("Why").sender_fault(*sender_fault).build().unwrap()
        });
        let failed = Some(failed.collect());
        SendMessageBatchOutput::builder().set_successful(Some(Vec::new())).set_failed(failed).build().unwrap()
    }

    #[test]
    fn what_sqs_failed_to_take_is_sent_again_and_what_it_refused_is_not() {
        let batch = || [7, 8, 9].map(|line| (line, "{}".to_owned())).to_vec();
        let answer = answer(&[("8", true), ("9", false)]);
        let refused = |line| (line, Err("Why".to_owned()));
        assert_eq!(settle(batch(), &answer, false), (vec![(9, "{}".to_owned())], vec![(7, Ok(())), refused(8)]));
        assert_eq!(settle(batch(), &answer, true), (vec![], vec![(7, Ok(())), refused(8), refused(9)]));
    }
}
