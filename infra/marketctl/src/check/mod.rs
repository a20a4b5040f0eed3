//! Checks that every table, queue and secret of a stack exists, can be reached and has the expected form.

mod next;
mod probe;

use futures_util::future::join_all;
use platform::preflight::{Problem, ResourceKind};
use platform::resources::{Queue, Table};
use serde::Serialize;

pub(crate) use next::sentence;
pub(crate) use probe::table;

use crate::failure::Failure;
use crate::output::{self, Output};
use crate::session::Session;

/// The result of checking one resource.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    kind: ResourceKind,
    name: String,
    ok: bool,
    /// What is wrong with it and what to do next; `None` if nothing is wrong.
    pub(crate) error: Option<String>,
}

/// The results of checking all resources of a stack.
#[derive(Debug, Serialize)]
pub(crate) struct CheckReport {
    ok: bool,
    pub(crate) checks: Vec<Check>,
}

impl Check {
    fn new(kind: ResourceKind, name: String, found: Result<(), Problem>) -> Self {
        let error = found.err().map(|problem| sentence(&problem, kind, &name));
        Self { kind, name, ok: error.is_none(), error }
    }
}

impl CheckReport {
    fn new(checks: Vec<Check>) -> Self {
        Self { ok: checks.iter().all(|check| check.ok), checks }
    }

    pub(crate) fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| !check.ok)
    }
}

pub(crate) async fn run(stack: &str, output: Output) -> Result<(), Failure> {
    let session = Session::open(stack).await?;
    let report = CheckReport::new(look(&session).await);
    output.print(&report, text)?;
    if report.ok { Ok(()) } else { Err(Failure::Unhealthy(report)) }
}

/// Checks all resources at the same time.
async fn look(session: &Session) -> Vec<Check> {
    let Session { resources, dynamodb, .. } = session;
    let (sqs, secrets) = (&session.sqs(), &session.secrets());
    let tables = Table::ALL.map(|table| async move {
        let name = resources.table(table);
        let found = probe::table(dynamodb, &name, table.indexes()).await;
        Check::new(ResourceKind::Table, name, found)
    });
    let queues = Queue::ALL.map(|queue| async move {
        let name = resources.queue(queue);
        let found = probe::queue(sqs, &name).await;
        Check::new(ResourceKind::Queue, name, found)
    });
    let keyring = async {
        let name = resources.keyring();
        let found = probe::keyring(secrets, &name).await;
        Check::new(ResourceKind::Secret, name, found)
    };
    let (mut checks, queues, keyring) = tokio::join!(join_all(tables), join_all(queues), keyring);
    checks.extend(queues);
    checks.push(keyring);
    checks
}

fn text(report: &CheckReport) -> String {
    let rows = report.checks.iter().map(|check| {
        let state = if check.ok { "ok" } else { "failed" };
        [check.kind.as_str().to_owned(), check.name.clone(), state.to_owned()]
    });
    let table = output::table(["KIND", "NAME", "STATE"], rows);
    if report.ok { format!("{table}\n\nEvery table, queue and secret exists and can be reached.") } else { table }
}
