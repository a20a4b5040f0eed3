//! `marketctl repair`: its options, its progress on the terminal, and why it fails.

use std::sync::Arc;

use accounts::Accounts;
use admin::keys::KeyAdmin;
use market::Market;
use platform::resources::Table;
use platform::store::StoreError;
use serde_json::json;
use terminal::{Bar, count};
use thiserror::Error;
use webhooks::store::WebhookStore;

use super::Repair;
use super::mode::{Mode, Progress, RepairError};
use super::report::Report;
use super::rows::Keys;
use super::versions::{NotVersioned, ResetReport, Versioned};
use crate::cli::RepairOptions;
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::session::Session;

pub(crate) async fn run(options: RepairOptions, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let RepairOptions { dry_run, restored, table, name, revoked_in, reset_version } = options;
    let table = table.map(Table::from);
    if revoked_in.is_some() && table != Some(Table::Keys) {
        return Err(RepairFailed::NoKeys.into());
    }
    let versioned = match reset_version.as_slice() {
        [kind, id] => Some((format!("{kind} {id}"), Versioned::parse(kind, id).map_err(RepairFailed::from)?)),
        _ => None,
    };
    let session = Session::open(stack).await?;
    let name = |of: Table| name.clone().unwrap_or_else(|| session.resources.table(of));
    let market = Market::new(session.dynamodb.clone(), name(Table::Market));
    let accounts = Accounts::new(session.dynamodb.clone(), name(Table::Accounts));
    if let Some((entity, versioned)) = versioned {
        let version = versioned.reset(&market, &accounts).await.map_err(RepairFailed::from)?;
        let version = version.ok_or_else(|| RepairFailed::Missing(entity.clone()))?;
        return output.print(&ResetReport { entity, version }, ResetReport::text);
    }
    let clock = Arc::clone(&session.clock);
    let has = |one: Table| table.is_none_or(|table| table == one);
    let market = if has(Table::Market) { Some((market, session.objects().await?)) } else { None };
    let accounts = has(Table::Accounts).then_some(accounts);
    let key_admin = |table: String| KeyAdmin::new(session.dynamodb.clone(), table, Arc::clone(&clock));
    let keys = || Keys { table: key_admin(name(Table::Keys)), damaged: revoked_in.map(key_admin) };
    let keys = has(Table::Keys).then(keys);
    let webhooks = || WebhookStore::new(session.dynamodb.clone(), name(Table::Webhooks));
    let webhooks = has(Table::Webhooks).then(webhooks);
    let repair = Repair { market, accounts, keys, webhooks, clock, mode: Mode { dry_run, restored } };
    let progress = RepairProgress::start();
    let found = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(RepairFailed::from)?;
    drop(progress);
    let report = Report::new(found, dry_run);
    output.print(&report, Report::text)?;
    if report.is_complete() { Ok(()) } else { Err(RepairFailed::Incomplete(report).into()) }
}

#[derive(Debug, Error)]
enum RepairFailed {
    #[error("nothing was done: {0}")]
    Version(#[from] NotVersioned),
    #[error("nothing was done: there is no {0}")]
    Missing(String),
    #[error("nothing was done: --revoked-in is for keys")]
    NoKeys,
    #[error("the repair ended early: {0}")]
    Ended(#[from] RepairError),
    #[error(
        "users whose orders could not be repaired: {}; rows that cannot be read: {}",
        .0.failed.len(), .0.unreadable.len()
    )]
    Incomplete(Report),
}

impl From<StoreError> for RepairFailed {
    fn from(error: StoreError) -> Self {
        Self::Ended(error.into())
    }
}

impl From<RepairFailed> for CommandFailure {
    fn from(error: RepairFailed) -> Self {
        let hint = match &error {
            RepairFailed::Version(_) | RepairFailed::Missing(_) => {
                "The kind is the type of a message, and the id is that in its messages; for a balance it is the account's."
            }
            RepairFailed::NoKeys => "Name the restored table of keys with --table keys and --name.",
            RepairFailed::Ended(RepairError::Written(_)) => {
                "Stop `ingest`, `compact` and every import, then repeat the repair; what is in line already stays as it is."
            }
            RepairFailed::Ended(RepairError::Store(_)) => {
                "Fix the cause (`marketctl check` helps), then repeat the repair; what is in line already stays as it is."
            }
            RepairFailed::Incomplete(_) => {
                "Everything else is in line. Look at the rows of these users and at these rows, then repeat the repair."
            }
        };
        let failure = Self::new(error.to_string(), hint);
        let RepairFailed::Incomplete(report) = error else { return failure };
        let users = report.failed.iter().map(|failed| format!("user {}: {}", failed.user_id, failed.reason));
        let rows = report.unreadable.iter().map(|unreadable| format!("{}: {}", unreadable.row, unreadable.what));
        let failed = report.failed.iter().map(|failed| json!(failed));
        let failed = failed.chain(report.unreadable.iter().map(|unreadable| json!(unreadable))).collect();
        failure.with_details(users.chain(rows)).with_member("failed", failed)
    }
}

const BAR_TEMPLATE: &str = "{bar:32} {human_pos} of {human_len} {msg}, {eta} left";
const SPINNER_TEMPLATE: &str = "{spinner} {msg}";

/// Shows how far a repair is, on standard error, if that is a terminal.
pub(crate) struct RepairProgress {
    bar: Bar,
}

impl RepairProgress {
    pub(crate) fn start() -> Self {
        Self { bar: Bar::spinner(SPINNER_TEMPLATE) }
    }

    pub(crate) fn show(&self, progress: Progress) {
        match progress {
            Progress::Comparing(stream) => self.spin(format!("comparing {stream} with its entities")),
            Progress::Writing(stream) => self.spin(format!("writing the base of {stream}")),
            Progress::Scanning { rows, of } => self.show_rows(rows, of, "rows of accounts"),
            Progress::Users { done, of } => self.fill(done, of, "users"),
            Progress::Keys { keys } => self.spin(format!("{} keys", count(keys))),
            Progress::Endpoints { endpoints } => self.spin(format!("{} webhook endpoints", count(endpoints))),
        }
    }

    /// Shows how many rows were read, and about how many there are if that is known.
    pub(crate) fn show_rows(&self, rows: u64, of: Option<u64>, what: &'static str) {
        match of {
            None => self.spin(format!("{} {what}", count(rows))),
            Some(of) => self.fill(rows, of.max(rows), what),
        }
    }

    fn spin(&self, message: String) {
        self.bar.set_template(SPINNER_TEMPLATE);
        self.bar.set_message(message);
    }

    fn fill(&self, done: u64, of: u64, what: &'static str) {
        self.bar.set_template(BAR_TEMPLATE);
        self.bar.show(done, of);
        self.bar.set_message(what);
    }
}
