//! `marketctl repair`: its options, and why it fails.

use std::sync::Arc;

use accounts::Accounts;
use admin::audit::Subject;
use admin::keys::KeyAdmin;
use common::resources::Table;
use market::Market;
use terminal::Output;
use webhooks::store::WebhookStore;

use super::mode::{Mode, RepairError};
use super::progress::RepairProgress;
use super::report::Report;
use super::rows::Keys;
use super::versions::{ResetReport, Versioned};
use super::{REPAIR, Repair, RepairReport};
use crate::audit;
use crate::cli::RepairOptions;
use crate::failure::CommandFailure;
use crate::session::Session;

const KIND_HINT: &str =
    "The kind is the type of a message, and the id is that in its messages; for a balance it is the account's.";
const LEFT_HINT: &str = "Nothing was written. Stop all writers, then run it without --dry-run.";

pub(crate) async fn run(options: RepairOptions, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let RepairOptions { dry_run, restored, table, reset_version } = options;
    let table = table.map(Table::from);
    if let [kind, id] = reset_version.as_slice() {
        return reset(kind, id, session, output).await;
    }
    let repair = Repair::of(session, table, |of| session.resources.table(of), None, Mode { dry_run, restored }).await?;
    let progress = RepairProgress::start();
    let mut found = RepairReport::default();
    let ended = Box::pin(repair.run_into(&mut found, &|at| progress.show(at))).await;
    drop(progress);
    if !dry_run {
        audit::tell(session, REPAIR, found.changes()).await;
    }
    if ended.is_err() && found.examined.is_empty() {
        return Ok(ended?);
    }
    let report = Report::new(found, dry_run);
    output.print(&report, Report::text)?;
    ended?;
    if report.is_complete() {
        return if report.is_left() {
            Err(CommandFailure::new("not everything is in line", LEFT_HINT))
        } else {
            Ok(())
        };
    }
    let Report { failed, unreadable, .. } = report;
    let what = "users whose orders could not be repaired";
    let message = format!("{what}: {}; rows that cannot be read: {}", failed.len(), unreadable.len());
    let users = failed.iter().map(|failed| format!("user {}: {}", failed.user_id, failed.reason));
    let rows = unreadable.iter().map(|unreadable| format!("{}: {}", unreadable.row, unreadable.what));
    Err(CommandFailure::new(
        message,
        "Everything else is in line. Look at the rows of these users and at these rows, then repeat the repair.",
    )
    .with_details(users.chain(rows)))
}

/// Sets the version of an entity to 0.
async fn reset(kind: &str, id: &str, session: &Session, output: Output) -> Result<(), CommandFailure> {
    let (entity, versioned) = (format!("{kind} {id}"), Versioned::parse(kind, id));
    let versioned =
        versioned.map_err(|error| CommandFailure::invalid("reset-version", &error.to_string(), KIND_HINT))?;
    let market = Market::new(session.dynamodb.clone(), session.resources.table(Table::Market));
    let accounts = Accounts::new(session.dynamodb.clone(), session.resources.table(Table::Accounts));
    let version = versioned.reset(&market, &accounts).await.map_err(RepairError::from)?;
    let nothing = || CommandFailure::new(format!("nothing was done: there is no {entity}"), KIND_HINT);
    let version = version.ok_or_else(nothing)?;
    audit::tell(session, REPAIR, [(None, Subject::default())]).await;
    Ok(output.print(&ResetReport { entity, version }, ResetReport::text)?)
}

impl Repair {
    /// Returns the repair of one table of a stack, or of all four. `name` says what a table is called. Keys that are
    /// revoked in the table `damaged` are revoked, too.
    pub(crate) async fn of(
        session: &Session,
        table: Option<Table>,
        name: impl Fn(Table) -> String,
        damaged: Option<String>,
        mode: Mode,
    ) -> Result<Self, CommandFailure> {
        let (client, clock) = (&session.dynamodb, Arc::clone(&session.clock));
        let has = |one: Table| table.is_none_or(|table| table == one);
        let key_admin = |table: String| KeyAdmin::new(client.clone(), table, Arc::clone(&clock));
        let mut repair =
            Self { market: None, accounts: None, keys: None, webhooks: None, clock: Arc::clone(&clock), mode };
        if has(Table::Market) {
            repair.market = Some((Market::new(client.clone(), name(Table::Market)), session.objects().await?));
        }
        if has(Table::Accounts) {
            repair.accounts = Some(Accounts::new(client.clone(), name(Table::Accounts)));
        }
        if has(Table::Keys) {
            repair.keys = Some(Keys { table: key_admin(name(Table::Keys)), damaged: damaged.map(key_admin) });
        }
        if has(Table::Webhooks) {
            repair.webhooks = Some(WebhookStore::new(client.clone(), name(Table::Webhooks)));
        }
        Ok(repair)
    }
}

impl From<RepairError> for CommandFailure {
    fn from(error: RepairError) -> Self {
        let hint = match &error {
            RepairError::Written(_) => {
                "Stop `ingest`, `compact` and every import, then repeat the repair; what is in line already stays as it is."
            }
            RepairError::Store(_) => {
                "Fix the cause (`marketctl check` helps), then repeat the repair; what is in line already stays as it is."
            }
        };
        Self::new(format!("the repair ended early: {error}"), hint)
    }
}
