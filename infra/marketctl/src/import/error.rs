//! Why an import failed, and what to do next.

use serde_json::json;
use thiserror::Error;

use super::report::ImportReport;
use crate::failure::CommandFailure;
use crate::input::Stopped;

/// Why an import failed, in whole or in part.
#[derive(Debug, Error)]
pub(super) enum ImportError {
    #[error("{} of {} lines refused", .0.refused.len(), .0.lines())]
    Refused(ImportReport),
    #[error("{stopped}")]
    Stopped { report: ImportReport, stopped: Stopped },
}

impl ImportError {
    fn report(&self) -> &ImportReport {
        match self {
            Self::Refused(report) | Self::Stopped { report, .. } => report,
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::Refused(_) => {
                "All other lines are stored. Correct these and import the file again; lines that are already stored change nothing."
            }
            Self::Stopped { .. } => {
                "Fix the cause (`marketctl check` helps) and import the file again; lines that are already stored change nothing."
            }
        }
    }
}

impl From<ImportError> for CommandFailure {
    fn from(error: ImportError) -> Self {
        let refused = &error.report().refused;
        Self::new(error.to_string(), error.hint())
            .with_details(refused.iter().map(ToString::to_string))
            .with_member("refused", json!(refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_each_refused_line_to_people_and_to_programs() {
        let mut report = ImportReport::default();
        report.abandon(&[7, 9], "away");
        let failure = CommandFailure::from(ImportError::Refused(report));
        assert!(failure.text().starts_with("error: 2 of 2 lines refused\n  line 7: "));
        let document = failure.document();
        assert_eq!((&document["error"], &document["refused"][1]["line"]), (&json!("2 of 2 lines refused"), &json!(9)));
    }
}
