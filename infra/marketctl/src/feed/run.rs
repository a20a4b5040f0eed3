//! Sends the input chunk by chunk, until it ends or the queue fails.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream;

use super::queue::{FeedQueue, NumberedMessage};
use super::report::SendReport;
use crate::input::{ProgressDisplay, Reader, Stopped};
use crate::session::Session;

/// The most calls in flight at a time.
const MAX_CALLS_IN_FLIGHT: usize = 16;

/// A run of `marketctl feed send`.
pub(super) struct FeedSender {
    progress: ProgressDisplay,
    report: SendReport,
}

impl FeedSender {
    pub(super) fn new(progress: ProgressDisplay) -> Self {
        Self { progress, report: SendReport::default() }
    }

    /// Sends all messages. The report has every line that was read, even if sending stops before the end.
    pub(super) async fn run(
        mut self,
        session: &Session,
        mut reader: Reader<String>,
    ) -> (SendReport, Result<(), Stopped>) {
        let mut line = 0;
        let ended = self.drain(session, &mut reader, &mut line).await;
        self.report.sort();
        (self.report, ended.map_err(|reason| Stopped { action: "sent", line, reason }))
    }

    async fn drain(&mut self, session: &Session, reader: &mut Reader<String>, line: &mut u64) -> Result<(), String> {
        let queue = FeedQueue::find(session).await?;
        while let Some(chunk) = reader.next().await.map_err(|error| format!("the input cannot be read: {error}"))? {
            *line += chunk.lines;
            for (line, rejection) in &chunk.refused {
                self.report.refuse(*line, &rejection.reason);
            }
            self.send(&queue, chunk.messages).await?;
            self.progress.advance(chunk.lines, chunk.bytes);
        }
        Ok(())
    }

    async fn send(&mut self, queue: &FeedQueue, messages: Vec<NumberedMessage>) -> Result<(), String> {
        let mut open: BTreeSet<u64> = messages.iter().map(|(line, _)| *line).collect();
        let calls =
            queues::batches(messages, |(_, text)| text.len()).into_iter().map(|batch| queue.clone().send(batch));
        let mut calls = stream::iter(calls).buffer_unordered(MAX_CALLS_IN_FLIGHT);
        while let Some(sent) = calls.next().await {
            match sent {
                Ok(outcomes) => {
                    for (line, outcome) in outcomes {
                        open.remove(&line);
                        match outcome {
                            Ok(()) => self.report.sent += 1,
                            Err(reason) => self.report.refuse(line, &reason),
                        }
                    }
                }
                Err(reason) => {
                    let unknown = format!("this may or may not have been sent: {reason}");
                    for line in open {
                        self.report.refuse(line, &unknown);
                    }
                    return Err(reason);
                }
            }
        }
        Ok(())
    }
}
