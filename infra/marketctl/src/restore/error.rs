//! Why a restore did not begin, or where it ended, and what to do next.

use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use platform::store::explain;
use serde_json::json;
use thiserror::Error;

use super::step::Step;
use crate::failure::CommandFailure;

/// What went wrong, in one line.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Cause(pub(super) String);

impl<E> From<SdkError<E, HttpResponse>> for Cause
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        Self(explain(&error))
    }
}

impl From<BuildError> for Cause {
    fn from(error: BuildError) -> Self {
        Self(error.to_string())
    }
}

/// Why a table cannot be restored to a moment.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum Refusal {
    #[error("table {0} does not exist, and neither does a backup from which this restore could go on")]
    NoTable(String),
    #[error("table {0} has no point-in-time recovery")]
    NoRecovery(String),
    #[error("table {table} can be restored to moments from {from} to {until}")]
    OutsideWindow { table: String, from: String, until: String },
    #[error("table {0} exists, but it is not a copy of this table at this moment")]
    OtherCopy(String),
}

#[derive(Debug, Error)]
pub(super) enum RestoreFailed {
    #[error("nothing was done: {0}")]
    Refused(#[from] Refusal),
    #[error("nothing was done: {0}")]
    NotFound(#[from] Cause),
    #[error("the restore ended at the step \"{step}\": {cause}")]
    Ended { step: Step, cause: Cause },
}

impl From<RestoreFailed> for CommandFailure {
    fn from(error: RestoreFailed) -> Self {
        let hint = match &error {
            RestoreFailed::Refused(Refusal::NoTable(_)) => {
                "Select the right stack with --stack and its region with AWS_REGION."
            }
            RestoreFailed::Refused(Refusal::NoRecovery(_)) => {
                "Without it nothing can be restored. A table that was restored has it again once its restore is complete."
            }
            RestoreFailed::Refused(Refusal::OutsideWindow { .. }) => {
                "Choose a moment within these times. The last minutes can be restored a few minutes later."
            }
            RestoreFailed::Refused(Refusal::OtherCopy(_)) => {
                "If it is left over from an earlier restore, delete it. To go on with that restore, give its moment."
            }
            RestoreFailed::NotFound(_) => {
                "Allow these calls to DynamoDB, Lambda and EventBridge, or use another profile; then run it again."
            }
            RestoreFailed::Ended { step, .. } => step.hint(),
        };
        let failure = Self::new(error.to_string(), hint);
        match &error {
            RestoreFailed::Ended { step, .. } => failure.with_member("step", json!(step)),
            RestoreFailed::Refused(_) | RestoreFailed::NotFound(_) => failure,
        }
    }
}
