//! Imports the input chunk by chunk, until it ends or the tables cannot be written to.

use std::sync::Arc;

use feed::{Applier, Message};
use types::clock::Clock;

use super::outages::OutageMonitor;
use super::report::{ImportReport, RefusedLine};
use crate::input::{ProgressDisplay, Reader, Stopped};
use crate::session::Session;

/// A running import.
pub(super) struct Import {
    applier: Applier,
    outages: OutageMonitor,
    clock: Arc<dyn Clock>,
    progress: ProgressDisplay,
    report: ImportReport,
}

impl Import {
    pub(super) fn new(session: &Session, progress: ProgressDisplay) -> Self {
        Self {
            applier: Applier::new(session.stores()),
            outages: OutageMonitor::new(session),
            clock: Arc::clone(&session.clock),
            progress,
            report: ImportReport::default(),
        }
    }

    /// Imports all messages. The report has every line that was read, even if the import stops before the end.
    pub(super) async fn run(mut self, mut reader: Reader<Message>) -> (ImportReport, Result<(), Stopped>) {
        let mut line = 0;
        let ended = self.drain(&mut reader, &mut line).await;
        self.report.sort();
        (self.report, ended.map_err(|reason| Stopped { action: "imported", line, reason }))
    }

    async fn drain(&mut self, reader: &mut Reader<Message>, line: &mut u64) -> Result<(), String> {
        self.outages.check_tables().await?;
        while let Some(chunk) = reader.next().await.map_err(|error| format!("the input cannot be read: {error}"))? {
            *line += chunk.lines;
            self.report
                .refused
                .extend(chunk.refused.iter().map(|(line, rejection)| RefusedLine::from_rejection(*line, rejection)));
            self.apply(chunk.messages).await?;
            self.progress.advance(chunk.lines, chunk.bytes);
        }
        Ok(())
    }

    async fn apply(&mut self, messages: Vec<(u64, Message)>) -> Result<(), String> {
        let lines: Vec<u64> = messages.iter().map(|(line, _)| *line).collect();
        let applied = Box::pin(self.applier.apply(messages, self.clock.now()));
        tokio::select! {
            biased;
            outcomes = applied => self.report.settle(outcomes),
            reason = self.outages.wait_for_outage() => {
                self.report.abandon(&lines, &reason);
                Err(reason)
            }
        }
    }
}
