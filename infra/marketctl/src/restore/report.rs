//! What a restore found and did, for programs and for people.

use serde::Serialize;
use types::timestamp::Timestamp;

use super::mend::Mended;
use super::state::Found;
use super::step::Step;
use super::writers::Writer;
use crate::text::table;

/// The result of a restore.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    table: String,
    to: Timestamp,
    dry_run: bool,
    /// The table that holds the moment, repaired. It can be deleted once nobody needs it.
    copy: String,
    /// The backup of the copy, if there is one. It can be deleted then, too.
    backup: Option<String>,
    /// What this run did. What an earlier run had done is left out.
    done: Vec<Step>,
    left: Vec<Step>,
    /// Whether the copy was in line before its repair, if this run repaired it.
    in_line: Option<bool>,
    writers: Vec<Writer>,
}

impl Report {
    /// Describes a run that has done some steps and left others.
    pub(super) fn new(found: Found, done: Vec<Step>, left: Vec<Step>, writers: Vec<Writer>) -> Self {
        let Found { name, copy_name, to, backup, .. } = found;
        Self { table: name, to, dry_run: false, copy: copy_name, backup, done, left, in_line: None, writers }
    }

    /// Says that the run only looked.
    pub(super) fn of_dry_run(self) -> Self {
        Self { dry_run: true, ..self }
    }

    pub(super) fn with_mended(self, mended: Option<Mended>) -> Self {
        Self { in_line: mended.map(|mended| mended == Mended::InLine), ..self }
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
