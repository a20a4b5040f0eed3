//! `marketctl check`: reports whether every table, queue, bucket and secret of a stack exists, can be reached and has the
//! expected form.

use common::preflight::ResourceKind;
use pretraffic::inventory::CheckedResource;
use serde::Serialize;
use terminal::{Output, table};

use crate::failure::{CommandFailure, with_remedy};
use crate::session::Session;

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
}

/// The result of checking one resource.
#[derive(Debug, Serialize)]
struct Check {
    kind: ResourceKind,
    name: String,
    ok: bool,
    /// What is wrong with it and what to do next; `None` if nothing is wrong.
    error: Option<String>,
}

pub(crate) async fn run(stack: &str, output: Output) -> Result<(), CommandFailure> {
    let session = Session::open(stack).await?;
    let checked =
        Box::pin(pretraffic::inventory::check(&session.clients(), &session.resources, session.bucket())).await;
    let checks: Vec<Check> = checked.into_iter().map(Check::from).collect();
    let report = Report { ok: checks.iter().all(|check| check.ok), checks };
    output.print(&report, Report::text)?;
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.ok).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let message = format!("{} of {} checks failed", failed.len(), report.checks.len());
    Err(CommandFailure::new(message, "Fix these, then run `marketctl check` again.")
        .with_details(failed.iter().filter_map(|check| check.error.clone()))
        .with_member("checks", &failed))
}

impl From<CheckedResource> for Check {
    fn from(CheckedResource { kind, name, found }: CheckedResource) -> Self {
        let error = found.err().map(|problem| with_remedy(&problem, kind, &name));
        Self { kind, name, ok: error.is_none(), error }
    }
}

impl Report {
    fn text(&self) -> String {
        let rows = self.checks.iter().map(|check| {
            let state = if check.ok { "ok" } else { "failed" };
            [check.kind.as_str().to_owned(), check.name.clone(), state.to_owned()]
        });
        let rows = table(["KIND", "NAME", "STATE"], rows);
        let all = "Every table, queue, bucket and secret exists and can be reached.";
        if self.ok { format!("{rows}\n\n{all}") } else { rows }
    }
}
