//! The steps of a restore: which are left, how far it is, and its report.
//!
//! Each step does nothing if it was done before. What was done is seen from AWS alone: a table that was restored names
//! its source and its moment, and a backup of the copy is only made after the repair. So a command that was interrupted
//! goes on where it was, on whichever machine it is run again.

use std::fmt;

use common::timestamp::Timestamp;
use serde::Serialize;
use terminal::{Bar, table};

use super::state::{Cause, Found};
use super::writers::Writer;
use crate::failure::CommandFailure;

const BAR_TEMPLATE: &str = "{bar:20} step {pos} of {len}: {msg}, {elapsed}";

/// A step of a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Step {
    /// Stops whatever writes to the table.
    Stop,
    /// Restores the moment into a table with another name.
    Copy,
    /// Notes the table's settings in tags of the copy, because the table is deleted.
    Note,
    /// Brings the copy in line.
    Repair,
    /// Backs the copy up. The backup says that the copy was repaired.
    BackUp,
    /// Deletes the damaged table.
    Delete,
    /// Restores the backup under the table's name.
    Swap,
    /// Sets what a restored table lacks.
    Settings,
    /// Checks that the table can be used.
    Check,
    /// Starts what was stopped.
    Start,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop the writers",
            Self::Copy => "restore a copy",
            Self::Note => "note the settings",
            Self::Repair => "repair the copy",
            Self::BackUp => "back up the copy",
            Self::Delete => "delete the damaged table",
            Self::Swap => "restore the backup in its place",
            Self::Settings => "set what a restore leaves out",
            Self::Check => "check the table",
            Self::Start => "start the writers",
        })
    }
}

impl Step {
    /// Every step, in their order.
    pub(super) const ALL: [Self; 10] = [
        Self::Stop,
        Self::Copy,
        Self::Note,
        Self::Repair,
        Self::BackUp,
        Self::Delete,
        Self::Swap,
        Self::Settings,
        Self::Check,
        Self::Start,
    ];

    /// Returns the failure of this step.
    pub(super) fn failed(self, cause: &Cause) -> CommandFailure {
        let hint = match self {
            Self::Stop => {
                "Some writers may be stopped. Fix the cause, then run the same command again. To give up, start them: docs/runbook.md says how."
            }
            Self::Copy | Self::Note | Self::Repair | Self::BackUp => {
                "The table is as it was, and its writers are stopped. Fix the cause, then run the same command again. To give up, start the writers: docs/runbook.md says how."
            }
            Self::Delete | Self::Swap => {
                "The backup of the repaired copy has everything, and the writers are stopped. Fix the cause, then run the same command again."
            }
            Self::Settings | Self::Check | Self::Start => {
                "The table is restored, and its writers are not all started. Fix the cause, then run the same command again."
            }
        };
        let message = format!("the restore ended at the step \"{self}\": {cause}");
        CommandFailure::new(message, hint).with_member("step", self)
    }
}

/// Returns the steps that are left, or why the table cannot be restored.
pub(super) fn steps_left(found: &Found, start: bool) -> Result<Vec<Step>, CommandFailure> {
    let Found { name, copy_name, to, .. } = found;
    let refused = |why: &str, hint| CommandFailure::new(format!("nothing was done: table {why}"), hint);
    let first = match found {
        Found { is_swapped: true, .. } => Step::Swap,
        Found { table: None, backup: None, .. } => {
            let why = format!("{name} does not exist, and neither does a backup from which this restore could go on");
            return Err(refused(&why, "Select the right stack with --stack and its region with AWS_REGION."));
        }
        Found { backup: Some(_), .. } => Step::Delete,
        Found { copy: Some(_), is_own_copy: false, .. } => {
            return Err(refused(
                &format!("{copy_name} exists, but it is not a copy of this table at this moment"),
                "If it is left over from an earlier restore, delete it. To go on with that restore, give its moment.",
            ));
        }
        Found { copy: None, window: None, .. } => {
            return Err(refused(
                &format!("{name} has no point-in-time recovery"),
                "Without it nothing can be restored. A table that was restored has it again once its restore is complete.",
            ));
        }
        Found { copy: None, window: Some((from, until)), .. } if !(from..=until).contains(&to) => {
            return Err(refused(
                &format!("{name} can be restored to moments from {from} to {until}"),
                "Choose a moment within these times. The last minutes can be restored a few minutes later.",
            ));
        }
        Found { .. } => Step::Copy,
    };
    // Once the restored table is in its place, the writers may run.
    let stop = (!found.is_swapped).then_some(Step::Stop);
    let steps = Step::ALL.into_iter().skip_while(|step| *step != first);
    Ok(stop.into_iter().chain(steps).filter(|step| start || *step != Step::Start).collect())
}

/// The bar of the step that a restore is at.
pub(super) struct Progress {
    steps: usize,
    begun: usize,
    bar: Option<Bar>,
}

impl Progress {
    pub(super) fn start(steps: usize) -> Self {
        Self { steps, begun: 0, bar: None }
    }

    /// Shows the next step. A repair shows a bar of its own.
    pub(super) fn begin(&mut self, step: Step) {
        self.begun += 1;
        // The bar of the step before goes away first.
        self.bar = None;
        if step != Step::Repair {
            let bar = Bar::new(BAR_TEMPLATE, self.steps as u64);
            bar.advance(self.begun as u64);
            bar.set_message(step.to_string());
            self.bar = Some(bar);
        }
    }
}

/// The result of a restore.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    table: String,
    to: Timestamp,
    pub(super) dry_run: bool,
    /// The table that holds the moment, repaired. It can be deleted once nobody needs it.
    copy: String,
    /// The backup of the copy, if there is one. It can be deleted then, too.
    backup: Option<String>,
    /// What this run did. What an earlier run had done is left out.
    done: Vec<Step>,
    left: Vec<Step>,
    /// Whether the copy was in line before its repair, if this run repaired it.
    pub(super) in_line: Option<bool>,
    writers: Vec<Writer>,
}

impl Report {
    /// Describes a run that has done some steps and left others.
    pub(super) fn new(found: Found, done: Vec<Step>, left: Vec<Step>, writers: Vec<Writer>) -> Self {
        let Found { name, copy_name, to, backup, .. } = found;
        Self { table: name, to, dry_run: false, copy: copy_name, backup, done, left, in_line: None, writers }
    }

    /// Returns the report for people: a table of the steps and the writers, and what comes next. Keys may have to be
    /// revoked first.
    pub(super) fn text_of(&self, must_revoke: bool) -> String {
        let row = |step: &Step, state: &str| ["step".to_owned(), step.to_string(), state.to_owned()];
        let done = self.done.iter().map(|step| row(step, "done"));
        let left = self.left.iter().map(|step| row(step, "left"));
        let rows = done.chain(left).chain(self.writers.iter().map(Writer::row));
        let rows = table(["KIND", "WHAT", "STATE"], rows);
        let Self { table, to, copy, .. } = self;
        let sentence = if self.dry_run {
            format!("Nothing was done. Without --dry-run these steps restore {table} to {to}.")
        } else if self.left.is_empty() {
            format!("{table} is restored to {to}. Delete {copy} and its backup once you no longer need them.")
        } else if must_revoke {
            format!(
                "{table} is restored to {to}. The API is off the air. Keys that were revoked since then are valid again: revoke them, then run the same command with --keys-revoked."
            )
        } else {
            format!("{table} is restored to {to}. Its writers are stopped; run it without --no-start to start them.")
        };
        format!("{rows}\n\n{sentence}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::restore::state::Described;
    use aws_sdk_dynamodb::types::TableStatus;

    fn table() -> Described {
        Described { status: TableStatus::Active, arn: String::new(), created: 0, is_protected: true, origin: None }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn found() -> Found {
        Found {
            name: "t".to_owned(),
            copy_name: "t-restored".to_owned(),
            to: at(5),
            table: Some(table()),
            copy: None,
            is_own_copy: false,
            backup: None,
            is_swapped: false,
            window: Some((at(1), at(9))),
        }
    }

    #[test]
    fn a_restore_goes_on_where_it_was() {
        let (copy, backup) = (|| Some(table()), || Some("arn".to_owned()));
        let left = |found: Found| steps_left(&found, true).unwrap();
        assert_eq!(left(found()), Step::ALL);
        assert_eq!(left(Found { copy: copy(), is_own_copy: true, window: None, ..found() }), Step::ALL);
        let backed_up = Found { copy: copy(), is_own_copy: true, backup: backup(), ..found() };
        assert_eq!(left(backed_up)[..2], [Step::Stop, Step::Delete]);
        let deleted = Found { table: None, copy: copy(), is_own_copy: true, backup: backup(), ..found() };
        assert_eq!(left(deleted)[..2], [Step::Stop, Step::Delete]);
        let swapped = Found { copy: copy(), is_own_copy: true, backup: backup(), is_swapped: true, ..found() };
        assert_eq!(left(swapped), [Step::Swap, Step::Settings, Step::Check, Step::Start]);
    }

    #[test]
    fn nothing_starts_that_shall_stay_stopped() {
        assert!(!steps_left(&found(), false).unwrap().contains(&Step::Start));
    }

    #[test]
    fn what_cannot_be_restored_is_refused() {
        for (found, why) in [
            (Found { table: None, ..found() }, "table t does not exist"),
            (Found { window: None, ..found() }, "table t has no point-in-time recovery"),
            (Found { copy: Some(table()), ..found() }, "table t-restored exists, but it is not a copy"),
            (Found { to: at(0), ..found() }, "table t can be restored to moments from 1970-01-01T00:00:01.000Z to"),
            (Found { to: at(10), ..found() }, "table t can be restored to moments from"),
        ] {
            let text = steps_left(&found, true).unwrap_err().text();
            assert!(text.starts_with(&format!("error: nothing was done: {why}")), "{text}");
        }
    }
}
