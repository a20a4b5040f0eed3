//! `marketctl restore`: restores a table to a moment, under its own name.
//!
//! DynamoDB restores only into a table that does not exist, and cannot rename one. So the moment is restored into a copy
//! with another name, the copy is repaired and backed up, and the backup is restored in the place of the damaged table.
//! Functions know only the table's own name, so nobody writes to the copy but the repair.

mod error;
mod mend;
mod pause;
mod plan;
mod progress;
mod report;
mod settings;
mod state;
mod step;
mod tables;
mod writers;

use std::sync::Arc;
use std::time::Duration;

use platform::resources::Table;
use types::timestamp::Timestamp;

use error::{Cause, RestoreFailed};
use mend::Mended;
use plan::steps_left;
use progress::RestoreProgress;
use report::Report;
use state::Found;
use step::Step;
use writers::{WriterState, Writers};

use crate::cli::RestoreOptions;
use crate::failure::CommandFailure;
use crate::output::Output;
use crate::session::Session;

/// A restore under way.
struct Restore {
    session: Session,
    table: Table,
    to: Timestamp,
    writers: Writers,
    /// When the writers were seen to be stopped, in seconds since the Unix epoch.
    stopped_at: i64,
    mended: Option<Mended>,
}

pub(crate) async fn run(options: RestoreOptions, stack: &str, output: Output) -> Result<(), CommandFailure> {
    let RestoreOptions { table, to, dry_run, no_start, keys_revoked } = options;
    let (session, table) = (Session::open(stack).await?, Table::from(table));
    let resources = Arc::new(session.resources.clone());
    let writers = Writers::of(table, resources, session.lambda(), session.events());
    let mut restore = Restore { session, table, to, writers, stopped_at: 0, mended: None };
    let found = restore.look().await.map_err(RestoreFailed::from)?;
    // Keys that were revoked since the moment are valid again in the restored table.
    let must_revoke = restore.table == Table::Keys && !keys_revoked;
    let starts = !no_start && !must_revoke;
    let steps = steps_left(&found, starts).map_err(RestoreFailed::from)?;
    // An error here is one before anything was done.
    let listed = restore.writers.list().await.map_err(RestoreFailed::from)?;
    if dry_run {
        return output
            .print(&Report::new(found, Vec::new(), steps, listed).of_dry_run(), |report| report.text_of(must_revoke));
    }
    let mut progress = RestoreProgress::start(steps.len());
    for step in &steps {
        progress.begin(*step);
        Box::pin(restore.perform(*step)).await.map_err(|cause| RestoreFailed::Ended { step: *step, cause })?;
    }
    drop(progress);
    let ended = |cause| RestoreFailed::Ended { step: Step::Check, cause };
    let found = restore.look().await.map_err(ended)?;
    let listed = restore.writers.list().await.map_err(ended)?;
    let is_running = listed.iter().all(|writer| writer.state == WriterState::On);
    let left = if is_running { Vec::new() } else { vec![Step::Start] };
    let report = Report::new(found, steps, left, listed).with_mended(restore.mended);
    output.print(&report, |report| report.text_of(must_revoke))
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
                (Some(table), Some(copy)) => settings::note(client, table, copy).await,
                _ => Err(Cause(format!("{name} or {copy_name} is gone"))),
            },
            Step::Repair => {
                self.mended = Some(
                    mend::mend(&self.session, self.table, copy_name, found.table.as_ref().map(|_| name.as_str()))
                        .await?,
                );
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
            Step::Settings => settings::apply(client, name, found.copy.as_ref()).await,
            Step::Check => mend::check(&self.session, self.table, name).await,
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
