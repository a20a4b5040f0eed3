//! The report of an import: how many lines did what, and why lines were refused.

use std::fmt;

use feed::{ApplyOutcome, BadField, Rejection, TaggedOutcome};
use serde::Serialize;

use crate::text::shortened;

/// If all messages of a chunk fail, and there are at least this many, the fault lies with the store.
const MIN_MESSAGES_OF_OUTAGE: usize = 20;

/// How many lines were applied or changed nothing, and which were refused.
#[derive(Debug, Default, Serialize)]
pub(super) struct ImportReport {
    pub(super) applied: u64,
    pub(super) unchanged: u64,
    /// In the order of their line numbers.
    pub(super) refused: Vec<RefusedLine>,
}

/// A line that was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RefusedLine {
    /// The line's number, counted from 1.
    pub(super) line: u64,
    /// The path of the offending field; empty if the line as a whole is refused.
    pub(super) field: String,
    pub(super) reason: String,
    /// The other offending fields.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) others: Vec<RefusedField>,
}

/// A field that is one of several for which a line was not applied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct RefusedField {
    field: String,
    reason: String,
}

impl ImportReport {
    /// Returns the number of lines in the report.
    pub(super) fn lines(&self) -> u64 {
        self.applied + self.unchanged + self.refused.len() as u64
    }

    /// Counts the outcomes of a chunk's messages. Returns an error if all of them failed, and there are at least
    /// [`MIN_MESSAGES_OF_OUTAGE`]: then the store is down.
    pub(super) fn settle(&mut self, outcomes: Vec<TaggedOutcome<u64>>) -> Result<(), String> {
        let (messages, mut errors) = (outcomes.len(), Vec::new());
        for (line, outcome) in outcomes {
            match outcome {
                Ok(ApplyOutcome::Changed) => self.applied += 1,
                Ok(ApplyOutcome::Unchanged) => self.unchanged += 1,
                Ok(ApplyOutcome::Rejected(rejection)) => {
                    self.refused.push(RefusedLine::from_rejection(line, &rejection));
                }
                Err(error) => errors.push(RefusedLine::whole(line, &error.to_string())),
            }
        }
        let away = errors.first().filter(|_| errors.len() == messages && messages >= MIN_MESSAGES_OF_OUTAGE);
        let ended = away.map(|error| format!("none of {messages} messages could be stored: {}", error.reason));
        self.refused.append(&mut errors);
        ended.map_or(Ok(()), Err)
    }

    /// Counts messages as refused, because the import stopped before their outcome was known.
    pub(super) fn abandon(&mut self, lines: &[u64], reason: &str) {
        let reason = format!("this may or may not have been stored: {reason}");
        self.refused.extend(lines.iter().map(|line| RefusedLine::whole(*line, &reason)));
    }

    pub(super) fn sort(&mut self) {
        self.refused.sort_by_key(|refusal| refusal.line);
    }

    pub(super) fn text(&self) -> String {
        let Self { applied, unchanged, refused } = self;
        if self.lines() == 0 {
            return "Nothing was imported.".to_owned();
        }
        let why = if *unchanged > 0 { " (stored already, in this version or a newer one)" } else { "" };
        let refused = match refused.len() {
            0 => String::new(),
            count => format!(", {count} refused"),
        };
        format!("{applied} applied, {unchanged} unchanged{why}{refused}.")
    }
}

impl RefusedLine {
    pub(super) fn from_rejection(line: u64, rejection: &Rejection) -> Self {
        let other = |bad: &BadField| RefusedField { field: shortened(&bad.field), reason: shortened(&bad.reason) };
        let others = rejection.others.iter().map(other).collect();
        Self { line, field: shortened(&rejection.field), reason: shortened(&rejection.reason), others }
    }

    /// Refuses a line as a whole and not because of one of its fields.
    pub(super) fn whole(line: u64, reason: &str) -> Self {
        Self { line, field: String::new(), reason: shortened(reason), others: Vec::new() }
    }
}

impl fmt::Display for RefusedLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, reason, others } = self;
        write!(f, "line {line}: ")?;
        if !field.is_empty() {
            write!(f, "{field}: ")?;
        }
        f.write_str(reason)?;
        others.iter().try_for_each(|RefusedField { field, reason }| write!(f, "; {field}: {reason}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use platform::store::StoreError;
    use serde_json::json;

    #[test]
    fn the_document_names_line_field_and_reason() {
        let refused = vec![
            RefusedLine::from_rejection(3, &Rejection::new("variants[0].wear", "missing")),
            RefusedLine::whole(4, "no"),
        ];
        let report = ImportReport { applied: 2, unchanged: 1, refused };
        let expected = json!({ "applied": 2, "unchanged": 1, "refused": [
            { "line": 3, "field": "variants[0].wear", "reason": "missing" },
            { "line": 4, "field": "", "reason": "no" },
        ]});
        assert_eq!(serde_json::to_value(&report).unwrap(), expected);
        assert_eq!(report.lines(), 5);
    }

    #[test]
    fn every_bad_field_of_a_line_is_named() {
        let line = r#"{"type":"item","id":"no spaces","variants":[{"variant_id":"x","colour":"red"}],"version":1}"#;
        let rejection = feed::parse(line, types::timestamp::Timestamp::from_millis(0)).unwrap_err();
        let refused = RefusedLine::from_rejection(7, &rejection);
        let document = json!(refused);
        let others = document["others"].as_array().unwrap();
        let named: Vec<_> = others.iter().map(|other| other["field"].as_str().unwrap()).collect();
        assert_eq!(document["field"], "id");
        assert_eq!(named, ["variants[0].stattrak", "variants[0].colour", "variants[0].variant_id"]);
        let text = refused.to_string();
        assert!(text.starts_with("line 7: id: ") && text.contains("; variants[0].variant_id: "), "{text}");
    }

    #[test]
    fn messages_that_fail_one_and_all_end_the_import() {
        let error = || Err(StoreError::Unavailable("away".to_owned()));
        let mut report = ImportReport::default();
        assert!(report.settle((1..=19).map(|line| (line, error())).collect()).is_ok());
        assert!(report.settle((20..=60).map(|line| (line, error())).collect()).is_err());
        let one_stored = (61..=99).map(|line| (line, error())).chain([(100, Ok(ApplyOutcome::Changed))]);
        assert!(report.settle(one_stored.collect()).is_ok());
        assert_eq!((report.applied, report.lines()), (1, 100));
        assert_eq!(report.refused[0], RefusedLine::whole(1, "away"));
    }

    #[test]
    fn refusals_are_told_by_line() {
        let mut report = ImportReport::default();
        report.abandon(&[7, 9], "away");
        report.refused.push(RefusedLine::whole(8, "no"));
        report.sort();
        assert_eq!(report.refused.iter().map(|refusal| refusal.line).collect::<Vec<_>>(), [7, 8, 9]);
    }
}
