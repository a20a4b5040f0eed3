//! Why messages were not sent, and what to do next.

use serde_json::json;
use thiserror::Error;

use super::report::SendReport;
use crate::failure::CommandFailure;
use crate::input::Stopped;

/// Why sending failed, in whole or in part.
#[derive(Debug, Error)]
pub(super) enum SendError {
    #[error("{} of {} lines not sent", .0.refused.len(), .0.lines())]
    Refused(SendReport),
    #[error("{stopped}")]
    Stopped { report: SendReport, stopped: Stopped },
}

impl SendError {
    fn report(&self) -> &SendReport {
        match self {
            Self::Refused(report) | Self::Stopped { report, .. } => report,
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Refused(_) => "All other lines are in the feed queue. Correct these and send them again.",
            Self::Stopped { .. } => {
                "Fix the cause (`marketctl check` helps) and send the file again; a message that arrives twice is applied once."
            }
        }
    }
}

impl From<SendError> for CommandFailure {
    fn from(error: SendError) -> Self {
        let refused = &error.report().refused;
        Self::new(error.to_string(), error.hint())
            .with_details(refused.iter().map(ToString::to_string))
            .with_member("refused", json!(refused))
    }
}
