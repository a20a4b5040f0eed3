//! `marketctl check`: reports whether every table, queue, bucket and secret of a stack exists, can be reached and has the
//! expected form, and what waits in the queues.

use common::preflight::ResourceKind;
use common::resources::{Queue, Resources, Table};
use pretraffic::inventory::CheckedResource;
use serde::Serialize;
use terminal::{Output, count, table};

use crate::failure::{CommandFailure, with_remedy};
use crate::repair::settings::Lacking;
use crate::session::Session;

#[derive(Debug, Serialize)]
struct Report {
    ok: bool,
    checks: Vec<Check>,
    /// What somebody should know about the service, although the data is there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<&'static str>,
}

/// The tag by which the template says which topic alarms go to. It is empty if there are none.
const ALARM_TOPIC_TAG: &str = "alarm-topic";
const NO_ALARMS: &str = "Nobody hears alarms: the stack has none. Deploy it with AlarmTopicArn (docs/deployment.md, \"Before the \
    first customer\").";
const NO_SERVICE: &str = "The service is not deployed, only its data: run `sam deploy`.";

/// The result of checking one resource.
#[derive(Debug, Serialize)]
struct Check {
    kind: ResourceKind,
    name: String,
    ok: bool,
    /// What is wrong with it and what to do next; `None` if nothing is wrong.
    error: Option<String>,
    /// About how many messages a queue holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<u64>,
    /// What somebody should look at, although the resource can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

pub(crate) async fn run(session: &Session, output: Output) -> Result<(), CommandFailure> {
    let checked =
        Box::pin(pretraffic::inventory::check(&session.clients(), &session.resources, session.bucket())).await;
    let mut checks: Vec<Check> = checked.into_iter().map(|checked| Check::new(checked, &session.resources)).collect();
    for table in Table::ALL {
        let name = session.resources.table(table);
        if let Some(check) = checks.iter_mut().find(|check| check.ok && check.name == name) {
            check.warning = warn_of_lacking(session, table, &name).await;
        }
    }
    let notes = note_on_service(session).await.into_iter().collect();
    let report = Report { ok: checks.iter().all(|check| check.ok), checks, notes };
    output.print(&report, Report::text)?;
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.ok).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let message = format!("{} of {} checks failed", failed.len(), report.checks.len());
    Err(CommandFailure::new(message, "Fix these, then run `marketctl check` again.")
        .with_details(failed.iter().filter_map(|check| check.error.clone())))
}

/// Returns what a table lacks that a restore left out.
async fn warn_of_lacking(session: &Session, table: Table, name: &str) -> Option<String> {
    let own = session.resources.own_table(table);
    match Lacking::of(&session.dynamodb, name, &own).await.map(|lacking| lacking.names()) {
        Ok(names) if names.is_empty() => None,
        Ok(names) => {
            let command = format!("`marketctl repair --table {}`", table.suffix());
            Some(format!("{name} lacks {}: {command}, and docs/operations.md", names.join(", ")))
        }
        Err(problem) => Some(format!("whether {name} lacks anything that a restore leaves out is unknown: {problem}")),
    }
}

/// Returns what somebody should know about the service itself. Nothing if the credentials do not allow to look.
async fn note_on_service(session: &Session) -> Option<&'static str> {
    match session.lambda().get_function().function_name(session.resources.hook()).send().await {
        Ok(found) => found.tags?.get(ALARM_TOPIC_TAG)?.is_empty().then_some(NO_ALARMS),
        Err(error) => error.as_service_error()?.is_resource_not_found_exception().then_some(NO_SERVICE),
    }
}

impl Check {
    fn new(checked: CheckedResource, resources: &Resources) -> Self {
        let CheckedResource { kind, name, found, messages } = checked;
        let error = found.err().map(|problem| with_remedy(&problem, kind, &name));
        let warning = messages.filter(|messages| *messages > 0).and_then(|messages| {
            let is_dead = [Queue::FeedDead, Queue::WebhooksDead].map(|queue| resources.queue(queue)).contains(&name);
            let count = count(messages);
            is_dead.then(|| {
                format!("{name} holds {count} dead letters: `marketctl dead-letters list`, and dead-letters in docs/runbook.md")
            })
        });
        Self { kind, name, ok: error.is_none(), error, messages, warning }
    }
}

impl Report {
    fn text(&self) -> String {
        let rows = self.checks.iter().map(|check| {
            let state = if check.ok { "ok" } else { "failed" };
            let messages = check.messages.map_or_else(|| "-".to_owned(), count);
            [check.kind.as_str().to_owned(), check.name.clone(), state.to_owned(), messages]
        });
        let mut parts = vec![table(["KIND", "NAME", "STATE", "MESSAGES"], rows)];
        let warnings: Vec<_> = self.checks.iter().filter_map(|check| check.warning.as_deref()).collect();
        if !warnings.is_empty() {
            parts.push(warnings.join("\n"));
        }
        parts.extend(self.notes.iter().map(|note| (*note).to_owned()));
        if self.ok {
            parts.push("Every table, queue, bucket and secret exists and can be reached.".to_owned());
        }
        parts.join("\n\n")
    }
}
