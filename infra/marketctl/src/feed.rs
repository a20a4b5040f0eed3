//! `marketctl feed send`: puts messages into the feed queue, as the marketplace's own systems do. Their content is not
//! checked, because an operator may send invalid messages on purpose. Those that are too long for the feed are refused.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws_sdk_sqs::Client;
use aws_sdk_sqs::operation::send_message_batch::SendMessageBatchOutput;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use common::backoff::full_jitter;
use common::resources::Queue;
use common::store::explain;
use feed::MAX_MESSAGE_BYTES;
use futures_util::{StreamExt, stream};
use serde::Serialize;
use terminal::Output;

use crate::failure::{CommandFailure, shortened};
use crate::input::{Input, RefusedLine, Source, Words};
use crate::session::Session;

/// The most calls in flight at a time.
const MAX_CALLS_IN_FLIGHT: usize = 16;
/// A message that SQS fails to accept, and not by the message's fault, is sent at most this many times.
const MAX_ATTEMPTS: u32 = 5;
/// The pause after the first attempt is random and below this. The ceiling doubles with each further attempt.
const FIRST_CEILING: Duration = Duration::from_millis(320);

const WORDS: Words = Words {
    done: "sent",
    refused: "not sent",
    refused_hint: "All other lines are in the feed queue. Correct these and send them again.",
    all_refused_hint: "Nothing is in the feed queue. Correct the lines and send the file again.",
    stopped_hint: "Send the file again; a message that arrives twice is applied once. If something is wrong, `marketctl check` finds it.",
};

/// How many lines were sent, and which were refused.
#[derive(Debug, Default, Serialize)]
struct Report {
    sent: u64,
    /// In the order of their line numbers.
    refused: Vec<RefusedLine>,
}

pub(crate) async fn send(source: &Source, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let opened = source.open()?;
    let mut input = Input::start(opened, &session.clock, MAX_MESSAGE_BYTES, |line| Ok(line.to_owned()));
    let mut report = Report::default();
    let ended = send_all(session, &mut input, &mut report).await;
    let lines_read = input.finish(&mut report.refused);
    output.print(&report, Report::text)?;
    WORDS.result(ended, lines_read, report.sent + report.refused.len() as u64, &report.refused)
}

/// Sends all messages, chunk by chunk. The report has every line that was read, even if sending stops before the end.
async fn send_all(session: &Session, input: &mut Input<String>, report: &mut Report) -> Result<(), String> {
    let queue = FeedQueue { client: session.sqs(), url: session.queue_url(Queue::Feed).await? };
    while let Some(chunk) = input.next().await? {
        for (line, rejection) in &chunk.refused {
            report.refuse(*line, &rejection.reason);
        }
        let mut open: BTreeSet<u64> = chunk.messages.iter().map(|(line, _)| *line).collect();
        let batches = common::queues::batches(chunk.messages, |(_, text)| text.len()).into_iter();
        let mut calls = stream::iter(batches.map(|batch| queue.send(batch))).buffer_unordered(MAX_CALLS_IN_FLIGHT);
        while let Some(sent) = calls.next().await {
            match sent {
                Ok(outcomes) => {
                    for (line, outcome) in outcomes {
                        open.remove(&line);
                        match outcome {
                            Ok(()) => report.sent += 1,
                            Err(reason) => report.refuse(line, &reason),
                        }
                    }
                }
                Err(reason) => {
                    let unknown = format!("this may or may not have been sent: {reason}");
                    for line in open {
                        report.refuse(line, &unknown);
                    }
                    return Err(reason);
                }
            }
        }
    }
    Ok(())
}

impl Report {
    fn refuse(&mut self, line: u64, reason: &str) {
        self.refused.push(RefusedLine { line, field: None, reason: shortened(reason), others: Vec::new() });
    }

    fn text(&self) -> String {
        match (self.sent, self.refused.len()) {
            (0, 0) => "Nothing was sent.".to_owned(),
            (sent, 0) => format!("{sent} sent."),
            (sent, refused) => format!("{sent} sent, {refused} refused."),
        }
    }
}

/// The feed queue of a stack.
struct FeedQueue {
    client: Client,
    url: String,
}

/// A message with its line number.
type NumberedMessage = (u64, String);

/// A line's number, and whether SQS accepted its message. The error is the reason in SQS's words.
type SendOutcome = (u64, Result<(), String>);

impl FeedQueue {
    /// Sends a batch and returns the outcome of each message. An error means that a call failed as a whole: any
    /// of the messages may or may not have been sent.
    async fn send(&self, batch: Vec<NumberedMessage>) -> Result<Vec<SendOutcome>, String> {
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
