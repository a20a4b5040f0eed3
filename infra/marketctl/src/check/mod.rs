//! Reports whether every table, queue, bucket and secret of a stack exists, can be reached and has the expected form.

use inventory::CheckedResource;
use platform::preflight::ResourceKind;
use serde::Serialize;
use serde_json::json;
use thiserror::Error;

use crate::failure::CommandFailure;
use crate::output::Output;
use crate::remedy::with_remedy;
use crate::session::Session;
use crate::text::table;

/// The result of checking one resource.
#[derive(Debug, Serialize)]
struct CheckResult {
    kind: ResourceKind,
    name: String,
    ok: bool,
    /// What is wrong with it and what to do next; `None` if nothing is wrong.
    error: Option<String>,
}

/// The results of checking all resources of a stack.
#[derive(Debug, Serialize)]
struct CheckReport {
    ok: bool,
    checks: Vec<CheckResult>,
}

impl CheckResult {
    fn new(CheckedResource { kind, name, found }: CheckedResource) -> Self {
        let error = found.err().map(|problem| with_remedy(&problem, kind, &name));
        Self { kind, name, ok: error.is_none(), error }
    }
}

impl CheckReport {
    fn new(checks: Vec<CheckResult>) -> Self {
        Self { ok: checks.iter().all(|check| check.ok), checks }
    }

    fn failed(&self) -> impl Iterator<Item = &CheckResult> {
        self.checks.iter().filter(|check| !check.ok)
    }
}

/// Some of the checks failed.
#[derive(Debug, Error)]
#[error("{} of {} checks failed", .0.failed().count(), .0.checks.len())]
struct ChecksFailed(CheckReport);

impl From<ChecksFailed> for CommandFailure {
    fn from(error: ChecksFailed) -> Self {
        let failed: Vec<_> = error.0.failed().collect();
        Self::new(error.to_string(), "Fix these, then run `marketctl check` again.")
            .with_details(failed.iter().filter_map(|check| check.error.clone()))
            .with_member("checks", json!(failed))
    }
}

pub(crate) async fn run(stack: &str, output: Output) -> Result<(), CommandFailure> {
    let session = Session::open(stack).await?;
    let checked = inventory::check(&session.clients(), &session.resources, session.bucket()).await;
    let report = CheckReport::new(checked.into_iter().map(CheckResult::new).collect());
    output.print(&report, text)?;
    if report.ok { Ok(()) } else { Err(ChecksFailed(report).into()) }
}

fn text(report: &CheckReport) -> String {
    let rows = report.checks.iter().map(|check| {
        let state = if check.ok { "ok" } else { "failed" };
        [check.kind.as_str().to_owned(), check.name.clone(), state.to_owned()]
    });
    let rows = table(["KIND", "NAME", "STATE"], rows);
    if report.ok { format!("{rows}\n\nEvery table, queue, bucket and secret exists and can be reached.") } else { rows }
}
