//! The report of `marketctl feed send`.

use std::fmt;

use serde::Serialize;

use crate::text::shortened;

/// How many lines were sent, and which were refused.
#[derive(Debug, Default, Serialize)]
pub(super) struct SendReport {
    pub(super) sent: u64,
    /// In the order of their line numbers.
    pub(super) refused: Vec<UnsentLine>,
}

/// A line that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct UnsentLine {
    /// The line's number, counted from 1.
    line: u64,
    reason: String,
}

impl SendReport {
    /// Returns the number of lines in the report.
    pub(super) fn lines(&self) -> u64 {
        self.sent + self.refused.len() as u64
    }

    pub(super) fn refuse(&mut self, line: u64, reason: &str) {
        self.refused.push(UnsentLine { line, reason: shortened(reason) });
    }

    pub(super) fn sort(&mut self) {
        self.refused.sort_by_key(|unsent| unsent.line);
    }

    pub(super) fn text(&self) -> String {
        match (self.sent, self.refused.len()) {
            (0, 0) => "Nothing was sent.".to_owned(),
            (sent, 0) => format!("{sent} sent."),
            (sent, refused) => format!("{sent} sent, {refused} refused."),
        }
    }
}

impl fmt::Display for UnsentLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}
