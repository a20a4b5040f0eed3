//! The steps of a restore.
//!
//! Each step does nothing if it was done before. What was done is seen from AWS alone: a table that was restored names
//! its source and its moment, and a backup of the copy is only made after the repair. So a command that was interrupted
//! goes on where it was, on whichever machine it is run again.

use std::fmt;

use serde::Serialize;

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

    /// Says what to do if the step failed.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::Stop => {
                "Some writers may be stopped. Fix the cause, then run the same command again. To give up, start them: docs/operations.md says how."
            }
            Self::Copy | Self::Note | Self::Repair | Self::BackUp => {
                "The table is as it was, and its writers are stopped. Fix the cause, then run the same command again. To give up, start the writers: docs/operations.md says how."
            }
            Self::Delete | Self::Swap => {
                "The backup of the repaired copy has everything, and the writers are stopped. Fix the cause, then run the same command again."
            }
            Self::Settings | Self::Check | Self::Start => {
                "The table is restored, and its writers are not all started. Fix the cause, then run the same command again."
            }
        }
    }
}
