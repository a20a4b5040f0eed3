//! The sending itself: chunk after chunk into the queue, until the input ends or the queue is away.

use std::collections::BTreeSet;

use futures_util::StreamExt;
use futures_util::stream;

use super::batches::{Numbered, batches};
use super::queue::FeedQueue;
use super::report::SendReport;
use crate::input::{Progress, Reader, Stopped};
use crate::session::Session;

/// Calls that are under way at a time.
const CONCURRENCY: usize = 16;

/// A sending on its way.
pub(super) struct Sending {
    progress: Progress,
    report: SendReport,
}

impl Sending {
    pub(super) fn new(progress: Progress) -> Self {
        Self { progress, report: SendReport::default() }
    }

    /// Sends everything. Whatever line was read is in the report, also if it stops before the end.
    pub(super) async fn run(
        mut self,
        session: &Session,
        mut reader: Reader<String>,
    ) -> (SendReport, Result<(), Stopped>) {
        let mut line = 0;
        let ended = self.drain(session, &mut reader, &mut line).await;
        self.report.sort();
        (self.report, ended.map_err(|reason| Stopped { done: "sent", line, reason }))
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

    async fn send(&mut self, queue: &FeedQueue, messages: Vec<Numbered>) -> Result<(), String> {
        let mut open: BTreeSet<u64> = messages.iter().map(|(line, _)| *line).collect();
        let calls = batches(messages).into_iter().map(|batch| queue.clone().send(batch));
        let mut calls = stream::iter(calls).buffer_unordered(CONCURRENCY);
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
                    let unknown = format!("it is not known whether this was sent: {reason}");
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
