//! Messages written straight to the tables, in bulk. Repeating an import is safe: versions decide.

mod chunks;
mod lines;
mod progress;
mod reader;
mod report;
mod run;
mod source;
mod watch;

use std::sync::Arc;

pub(crate) use report::{ImportReport, Stopped};
pub(crate) use source::Source;

use progress::Progress;
use reader::Reader;
use run::Import;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(source: Source, stack: &str, output: Output) -> Result<(), Failure> {
    let opened = source.open()?;
    let session = Session::open(stack).await?;
    let progress = Progress::start(opened.bytes, Arc::clone(&session.clock));
    let reader = Reader::start(opened.stream, Arc::clone(&session.clock));
    let (report, ended) = Import::new(&session, progress).run(reader).await;
    output.print(&report, ImportReport::text)?;
    match ended {
        Err(stopped) => Err(Failure::Stopped { report, stopped }),
        Ok(()) if report.refused.is_empty() => Ok(()),
        Ok(()) => Err(Failure::Refused(report)),
    }
}
