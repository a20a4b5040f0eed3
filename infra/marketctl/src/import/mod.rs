//! Messages written straight to the tables, in bulk. Repeating an import is safe: versions decide.

mod chunks;
mod lines;
mod progress;
mod reader;
mod report;
mod run;
mod source;
mod watch;

pub(crate) use report::{ImportReport, Stopped};
pub(crate) use source::Source;

use progress::Progress;
use reader::Reader;
use run::Import;
use watch::Watch;

use crate::failure::Failure;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(source: Source, stack: &str, output: Output) -> Result<(), Failure> {
    let opened = source.open()?;
    let session = Session::open(stack).await?;
    let mut import = Import::new(&session, Progress::new(opened.bytes, &session));
    let finished = match Watch::new(&session).look().await {
        Ok(()) => import.run(Reader::start(opened.stream, &session)).await,
        Err(stopped) => Err(stopped),
    };
    let report = import.finish();
    output.print(&report, ImportReport::text)?;
    match finished {
        Err(stopped) => Err(Failure::Stopped { report, stopped }),
        Ok(()) if report.refused.is_empty() => Ok(()),
        Ok(()) => Err(Failure::Refused(report)),
    }
}
