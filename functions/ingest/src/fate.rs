//! What becomes of a message.

use feed::{Applied, Rejection};
use platform::store::StoreError;

/// What becomes of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It changed something.
    Changed,
    /// What was there is as new.
    Unchanged,
    /// It is invalid and goes to the dead-letter queue.
    Refused(Rejection),
    /// The store was busy or away, which says nothing about the message: it goes to the end of the queue
    /// instead of using up its receives.
    Postponed(String),
    /// It stays in the queue, and after a few receives it is moved to the dead-letter queue as it is.
    Failed(String),
}

impl From<Result<Applied, StoreError>> for Fate {
    fn from(outcome: Result<Applied, StoreError>) -> Self {
        match outcome {
            Ok(Applied::Changed) => Self::Changed,
            Ok(Applied::Unchanged) => Self::Unchanged,
            Ok(Applied::Rejected(rejection)) => Self::Refused(rejection),
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => Self::Postponed(error.to_string()),
            Err(error @ (StoreError::Defect(_) | StoreError::Corrupt { .. })) => Self::Failed(error.to_string()),
        }
    }
}
