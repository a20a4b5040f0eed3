//! The outcome of each message of a batch, and the batch's log lines.

use common::store::StoreError;
use feed::{ApplyOutcome, Rejection};

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// The message changed something.
    Changed,
    /// The message is not newer than what is stored.
    Unchanged,
    /// The message is invalid. A copy goes to the dead-letter queue.
    Refused(Rejection),
    /// The store takes what the message calls for as invalid, the code cannot put it together, or a row cannot be read.
    /// None of these would change with another try. A copy goes to the dead-letter queue.
    Defective(String),
    /// The store was busy or unavailable, or an event's endpoint cannot be read. That is not the message's fault. A copy
    /// goes back to the feed queue with a delay, so the message does not use up its receives.
    Postponed(String),
    /// Its copy cannot be sent. The message stays in the queue.
    Failed(String),
}

impl MessageOutcome {
    /// Returns the outcome of an event. If an endpoint cannot be read, its other endpoints have got the event. This one
    /// gets it as soon as a release runs that can read it.
    pub(crate) fn from_fan_out(fanned_out: Result<bool, StoreError>) -> Self {
        match fanned_out {
            Err(error @ StoreError::Corrupt { .. }) => Self::Postponed(error.to_string()),
            other => other.map(ApplyOutcome::from_changed).into(),
        }
    }
}

impl From<Result<ApplyOutcome, StoreError>> for MessageOutcome {
    fn from(outcome: Result<ApplyOutcome, StoreError>) -> Self {
        match outcome {
            Ok(ApplyOutcome::Changed) => Self::Changed,
            Ok(ApplyOutcome::Unchanged) => Self::Unchanged,
            Ok(ApplyOutcome::Rejected(rejection)) => Self::Refused(rejection),
            Err(error @ (StoreError::Conflict | StoreError::Unavailable(_))) => Self::Postponed(error.to_string()),
            Err(error @ (StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. })) => {
                Self::Defective(error.to_string())
            }
        }
    }
}
