//! `marketctl restore`: restores a table to a moment, under its own name.
//!
//! DynamoDB restores only into a table that does not exist, and cannot rename one. So the moment is restored into a copy
//! with another name, the copy is repaired and backed up, and the backup is restored in the place of the damaged table.
//! Functions know only the table's own name, so nobody writes to the copy but the repair.

mod state;
mod steps;
mod tables;
mod writers;

use std::sync::Arc;
use std::time::Duration;

use common::preflight::ResourceKind;
use common::resources::Table;
use common::timestamp::Timestamp;
use pretraffic::inventory::check_table;
use terminal::Output;

use state::{Cause, Found};
use steps::{Progress, Report, Step, steps_left};
use writers::{WriterState, Writers};

use crate::audit;
use crate::cli::RestoreOptions;
use crate::confirm::Confirmation;
use crate::failure::{CommandFailure, with_remedy};
use crate::repair::progress::RepairProgress;
use crate::repair::{Mode, REPAIR, Repair};
use crate::session::Session;

/// A restore under way.
struct Restore {
    session: Session,
    table: Table,
    to: Timestamp,
    writers: Writers,
    /// When the writers were seen to be stopped, in seconds since the Unix epoch.
    stopped_at: i64,
    /// Whether the copy was in line before its repair, if this run repaired it.
    in_line: Option<bool>,
}

pub(crate) async fn run(
    options: RestoreOptions,
    session: Session,
    output: Output,
    confirmation: Confirmation,
) -> Result<(), CommandFailure> {
    let RestoreOptions { table, to, dry_run, no_start, keys_revoked } = options;
    let table = Table::from(table);
    let resources = Arc::new(session.resources.clone());
    let writers = Writers::of(table, resources, session.lambda(), session.events());
    let mut restore = Restore { session, table, to, writers, stopped_at: 0, in_line: None };
    let not_begun = |cause: Cause| {
        let hint = "Allow these calls to DynamoDB, Lambda and EventBridge, or use another profile; then run it again.";
        CommandFailure::new(format!("nothing was done: {cause}"), hint)
    };
    let found = restore.look().await.map_err(not_begun)?;
    // Keys that were revoked since the moment are valid again in the restored table.
    let must_revoke = restore.table == Table::Keys && !keys_revoked;
    let starts = !no_start && !must_revoke;
    let steps = steps_left(&found, starts)?;
    let listed = restore.writers.list().await.map_err(not_begun)?;
    if dry_run {
        let mut report = Report::new(found, Vec::new(), steps, listed);
        report.dry_run = true;
        return Ok(output.print(&report, |report| report.text_of(must_revoke))?);
    }
    let name = restore.session.resources.table(restore.table);
    confirmation
        .ask(&format!("This puts the table {name} back as it was at {to}; a backup of it from today is kept."))?;
    let mut progress = Progress::start(steps.len());
    for step in &steps {
        progress.begin(*step);
        Box::pin(restore.perform(*step)).await.map_err(|cause| step.failed(&cause))?;
    }
    drop(progress);
    let ended = |cause: Cause| Step::Check.failed(&cause);
    let found = restore.look().await.map_err(ended)?;
    let listed = restore.writers.list().await.map_err(ended)?;
    let is_running = listed.iter().all(|writer| writer.state == WriterState::On);
    let left = if is_running { Vec::new() } else { vec![Step::Start] };
    let mut report = Report::new(found, steps, left, listed);
    report.in_line = restore.in_line;
    Ok(output.print(&report, |report| report.text_of(must_revoke))?)
}

impl Restore {
    async fn look(&self) -> Result<Found, Cause> {
        Found::look(&self.session.dynamodb, &self.session.resources, self.table, self.to).await
    }

    /// Does one step, or nothing if it was done before.
    async fn perform(&mut self, step: Step) -> Result<(), Cause> {
        let found = self.look().await?;
        let client = &self.session.dynamodb.clone();
        let Found { name, copy_name, .. } = &found;
        match step {
            Step::Stop => self.stop(&found).await,
            Step::Copy => tables::copy(client, &found).await,
            Step::Note => match (&found.table, &found.copy) {
                (Some(table), Some(copy)) => tables::note(client, table, copy).await,
                _ => Err(Cause(format!("{name} or {copy_name} is gone"))),
            },
            Step::Repair => {
                let damaged = found.table.as_ref().map(|_| name.as_str());
                self.in_line = Some(repair(&self.session, self.table, copy_name, damaged).await?);
                Ok(())
            }
            Step::BackUp => {
                let backup = tables::back_up(client, &found).await?;
                tables::wait_until_backed_up(client, &backup).await
            }
            Step::Delete => {
                tables::wait_until_backed_up(client, backup(&found)?).await?;
                self.wait_until_nothing_runs().await?;
                tables::delete(client, name).await
            }
            Step::Swap => tables::swap(client, name, backup(&found)?).await,
            Step::Settings => tables::set_up(client, name, found.copy.as_ref()).await,
            Step::Check => check(&self.session, self.table, name).await,
            Step::Start if found.is_swapped => self.writers.switch(true).await.map(drop),
            Step::Start => Err(Cause(format!("{name} is not the table that was repaired"))),
        }
    }

    /// Stops the writers, and notes since when they are stopped. If an earlier run stopped them, that was before it made
    /// the copy.
    async fn stop(&mut self, found: &Found) -> Result<(), Cause> {
        let is_changed = self.writers.switch(false).await?;
        let now = self.session.clock.now().seconds();
        let earlier = found.copy.as_ref().map_or(now, |copy| copy.created);
        self.stopped_at = if is_changed { now } else { earlier.min(now) };
        Ok(())
    }

    /// Waits until functions that began before they were stopped have ended, and makes sure that they are still stopped.
    async fn wait_until_nothing_runs(&self) -> Result<(), Cause> {
        let ended_at = self.stopped_at + self.writers.longest_run().await?;
        let left = ended_at - self.session.clock.now().seconds();
        tokio::time::sleep(Duration::from_secs(u64::try_from(left).unwrap_or_default())).await;
        let writers = self.writers.list().await?;
        if writers.iter().all(|writer| writer.state == WriterState::Off) {
            Ok(())
        } else {
            Err(Cause("somebody has started the writers meanwhile".to_owned()))
        }
    }
}

/// Returns the backup of the repaired copy, without which nothing is deleted.
fn backup(found: &Found) -> Result<&str, Cause> {
    found.backup.as_deref().ok_or_else(|| Cause(format!("there is no backup {}", found.backup_name())))
}

/// Brings the copy in line, where nobody reads it yet, and returns whether it was. Keys that are revoked in the damaged
/// table, if there still is one, are revoked in the copy too. Does nothing wrong if it is repeated.
async fn repair(session: &Session, table: Table, copy: &str, damaged: Option<&str>) -> Result<bool, Cause> {
    check(session, table, copy).await?;
    let mode = Mode { dry_run: false, restored: true };
    let repair = Repair::of(session, Some(table), |_| copy.to_owned(), damaged.map(ToOwned::to_owned), mode).await;
    let repair = repair.map_err(|failure| Cause(failure.message().to_owned()))?;
    let progress = RepairProgress::start();
    let report = Box::pin(repair.run(&|at| progress.show(at))).await.map_err(|error| Cause(error.to_string()))?;
    drop(progress);
    audit::tell(session, REPAIR, report.changes()).await;
    let left = report.orders.failed.len() + report.keys.unreadable.len() + report.endpoints.unreadable.len();
    if left > 0 {
        let table = table.suffix();
        return Err(Cause(format!(
            "{left} users or rows could not be repaired; `marketctl repair --restored --table {table} --name {copy}` names them"
        )));
    }
    Ok(report.is_in_line())
}

/// Checks that a table and its indexes can be used.
async fn check(session: &Session, table: Table, name: &str) -> Result<(), Cause> {
    let checked = check_table(&session.dynamodb, name, table.indexes()).await;
    checked.map_err(|problem| Cause(with_remedy(&problem, ResourceKind::Table, name)))
}
