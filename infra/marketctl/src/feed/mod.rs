//! `marketctl feed send`: puts messages into the feed queue, as the marketplace's own systems do. Their content
//! is not checked, because an operator may send invalid messages on purpose.

mod error;
mod queue;
mod report;
mod run;

use std::sync::Arc;

use error::SendError;
use queues::MAX_BATCH_BYTES;
use report::SendReport;
use run::FeedSender;

use crate::failure::CommandFailure;
use crate::input::{ProgressDisplay, Reader, Source};
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn send(source: Source, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let opened = source.open()?;
    let session = Session::open(stack).await?;
    let progress = ProgressDisplay::start(opened.bytes, Arc::clone(&session.clock));
    let reader = Reader::start(opened.stream, MAX_BATCH_BYTES, Box::new(|line| Ok(line.to_owned())));
    let (report, ended) = FeedSender::new(progress).run(&session, reader).await;
    output.print(&report, SendReport::text)?;
    match ended {
        Err(stopped) => Err(SendError::Stopped { report, stopped }.into()),
        Ok(()) if report.refused.is_empty() => Ok(()),
        Ok(()) => Err(SendError::Refused(report).into()),
    }
}
