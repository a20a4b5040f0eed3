//! Why a repair failed, in whole or in part, and what to do next.

use platform::store::StoreError;
use repair::{NotVersioned, RepairError};
use serde_json::json;
use thiserror::Error;

use super::report::Report;
use crate::failure::CommandFailure;

#[derive(Debug, Error)]
pub(super) enum RepairFailed {
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
