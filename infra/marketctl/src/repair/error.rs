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
    #[error("the repair ended early: {0}")]
    Ended(#[from] RepairError),
    #[error("users whose orders could not be repaired: {}", .0.failed.len())]
    Users(Report),
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
            RepairFailed::Ended(RepairError::Written(_)) => {
                "Stop `ingest`, `compact` and every import, then repeat the repair; what is in line already stays as it is."
            }
            RepairFailed::Ended(RepairError::Store(_)) => {
                "Fix the cause (`marketctl check` helps), then repeat the repair; what is in line already stays as it is."
            }
            RepairFailed::Users(_) => {
                "Everything else is in line. Look at the rows of these users, then repeat the repair."
            }
        };
        let failure = Self::new(error.to_string(), hint);
        let RepairFailed::Users(report) = error else { return failure };
        let details = report.failed.iter().map(|failed| format!("user {}: {}", failed.user_id, failed.reason));
        failure.with_details(details).with_member("failed", json!(report.failed))
    }
}
