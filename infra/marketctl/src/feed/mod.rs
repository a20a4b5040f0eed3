//! `marketctl feed send`: puts messages into the feed queue, as the marketplace's own systems do. Their content
//! is not checked, because an operator may send invalid messages on purpose.

mod batches;
mod queue;
mod report;
mod run;

use std::sync::Arc;

pub(crate) use report::SendReport;

use run::Sending;

use crate::failure::Failure;
use crate::input::{Progress, Reader, Source};
use crate::output::Output;
use crate::session::Session;

/// The most bytes that SQS accepts in one message. The messages of one call share the same limit.
const MAX_BYTES: usize = 256 * 1_024;

pub(crate) async fn send(source: Source, stack: &str, output: Output) -> Result<(), Failure> {
    let opened = source.open()?;
    let session = Session::open(stack).await?;
    let progress = Progress::start(opened.bytes, Arc::clone(&session.clock));
    let reader = Reader::start(opened.stream, MAX_BYTES, Box::new(|line| Ok(line.to_owned())));
    let (report, ended) = Sending::new(progress).run(&session, reader).await;
    output.print(&report, SendReport::text)?;
    match ended {
        Err(stopped) => Err(Failure::SendingStopped { report, stopped }),
        Ok(()) if report.refused.is_empty() => Ok(()),
        Ok(()) => Err(Failure::Unsent(report)),
    }
}
