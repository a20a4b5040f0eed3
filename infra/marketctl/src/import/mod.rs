//! `marketctl import`: writes messages straight to the tables, in bulk. An import can be repeated safely, because
//! a message changes nothing unless it is newer than what is stored.

mod error;
mod outages;
mod report;
mod run;

use std::sync::Arc;

use feed::{MAX_MESSAGE_BYTES, parse};

use error::ImportError;
use report::ImportReport;
use run::Import;

use crate::failure::CommandFailure;
use crate::input::{ProgressDisplay, Reader, Source};
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(source: Source, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let opened = source.open()?;
    let session = Session::open(stack).await?;
    let progress = ProgressDisplay::start(opened.bytes, Arc::clone(&session.clock));
    let clock = Arc::clone(&session.clock);
    let reader = Reader::start(opened.stream, MAX_MESSAGE_BYTES, Box::new(move |line| parse(line, clock.now())));
    let (report, ended) = Import::new(&session, progress).run(reader).await;
    output.print(&report, ImportReport::text)?;
    match ended {
        Err(stopped) => Err(ImportError::Stopped { report, stopped }.into()),
        Ok(()) if report.refused.is_empty() => Ok(()),
        Ok(()) => Err(ImportError::Refused(report).into()),
    }
}
