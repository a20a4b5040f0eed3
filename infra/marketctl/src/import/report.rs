//! What an import did, line by line where it refused one.

use std::fmt;

use serde::Serialize;
use shared::feed::Rejection;
use thiserror::Error;

/// A reason may quote the line; so much of it is kept.
const MAX_CHARS: usize = 500;

/// What became of the lines.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ImportReport {
    pub(super) applied: u64,
    pub(super) unchanged: u64,
    /// By line.
    pub(crate) refused: Vec<Refusal>,
}

/// A line that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Refusal {
    /// Its number, from 1.
    pub(super) line: u64,
    /// The offending field as a path; empty when it is the line as a whole.
    pub(super) field: String,
    pub(super) reason: String,
}

/// Why an import ended before its input did.
#[derive(Debug, Error)]
pub(crate) enum Stopped {
    #[error("nothing was imported: {0}")]
    AtOnce(String),
    #[error("stopped after line {line}: {reason}")]
    After { line: u64, reason: String },
}

impl ImportReport {
    /// The lines whose fate is known.
    pub(crate) fn lines(&self) -> u64 {
        self.applied + self.unchanged + self.refused.len() as u64
    }

    pub(super) fn text(&self) -> String {
        let Self { applied, unchanged, refused } = self;
        match (applied, unchanged, refused.len()) {
            (0, 0, 0) => "There was nothing to import.".to_owned(),
            (_, _, 0) => format!("{applied} applied, {unchanged} unchanged because what is stored is as new."),
            (_, _, count) => format!("{applied} applied, {unchanged} unchanged, {count} refused."),
        }
    }
}

impl Refusal {
    pub(super) fn of(line: u64, rejection: &Rejection) -> Self {
        Self { line, field: shortened(&rejection.field), reason: shortened(&rejection.reason) }
    }

    /// A refusal that is no single field's fault.
    pub(super) fn whole(line: u64, reason: &str) -> Self {
        Self { line, field: String::new(), reason: shortened(reason) }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, reason } = self;
        if field.is_empty() { write!(f, "line {line}: {reason}") } else { write!(f, "line {line}: {field}: {reason}") }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_document_names_line_field_and_reason() {
        let refused = vec![Refusal::of(3, &Rejection::new("variants[0].wear", "missing")), Refusal::whole(4, "no")];
        let report = ImportReport { applied: 2, unchanged: 1, refused };
        let expected = json!({ "applied": 2, "unchanged": 1, "refused": [
            { "line": 3, "field": "variants[0].wear", "reason": "missing" },
            { "line": 4, "field": "", "reason": "no" },
        ]});
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert_eq!(report.lines(), 5);
    }

    #[test]
    fn a_reason_that_quotes_a_long_line_is_shortened() {
        let refusal = Refusal::whole(1, &"é".repeat(200_000));
        assert_eq!(refusal.reason.chars().count(), MAX_CHARS + 1);
        assert_eq!(Refusal::whole(1, "short").reason, "short");
    }
}
