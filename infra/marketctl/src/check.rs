//! `marketctl check`: reports whether every table, queue, bucket and secret of a stack exists, can be reached and has the
//! expected form, and what waits in the queues.

use common::preflight::ResourceKind;
use common::resources::{Queue, Resources};
use pretraffic::inventory::CheckedResource;
use serde::Serialize;
use terminal::{Output, count, table};

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
    let checks: Vec<Check> = checked.into_iter().map(|checked| Check::new(checked, &session.resources)).collect();
    let report = Report { ok: checks.iter().all(|check| check.ok), checks };
    output.print(&report, Report::text)?;
    let failed: Vec<_> = report.checks.iter().filter(|check| !check.ok).collect();
    if failed.is_empty() {
        return Ok(());
    }
    let message = format!("{} of {} checks failed", failed.len(), report.checks.len());
    Err(CommandFailure::new(message, "Fix these, then run `marketctl check` again.")
        .with_details(failed.iter().filter_map(|check| check.error.clone())))
}

impl Check {
    fn new(checked: CheckedResource, resources: &Resources) -> Self {
        let CheckedResource { kind, name, found, messages } = checked;
        let error = found.err().map(|problem| with_remedy(&problem, kind, &name));
        let warning = messages.filter(|messages| *messages > 0).and_then(|messages| {
            let alarm = [(Queue::FeedDead, "feed-dead-letters"), (Queue::WebhooksDead, "webhooks-dead-letters")];
            let (_, alarm) = alarm.into_iter().find(|(queue, _)| resources.queue(*queue) == name)?;
            let count = count(messages);
            Some(format!(
                "{name} holds {count} dead letters: `marketctl dead-letters list`, and {alarm} in docs/runbook.md"
            ))
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
        if self.ok {
            parts.push("Every table, queue, bucket and secret exists and can be reached.".to_owned());
        }
        parts.join("\n\n")
    }
}
