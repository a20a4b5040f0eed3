//! Why a command failed, in whole or in part, and what to do next. The only place that knows exit codes.
//!
//! The modules turn their own errors into failures, so nothing here depends on a command.

use std::process::ExitCode;

use admin::ErrorCode;
use serde_json::{Value, json};

use crate::text::printable;

/// The most details shown as text. The JSON output has all of them.
const MAX_DETAILS_SHOWN: usize = 20;

/// Why a command failed, in whole or in part.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    message: String,
    /// What to do next.
    hint: &'static str,
    /// Each detail for people is one line.
    details: Vec<String>,
    /// The details for programs are a member of the document, which has this name.
    member: Option<(&'static str, Value)>,
    /// What kind of error it is, unless it came after the change. The audit line has it.
    code: Option<ErrorCode>,
}

impl From<CommandFailure> for ExitCode {
    fn from(_: CommandFailure) -> Self {
        // The other exit code, 2 for wrong usage, comes from parsing the arguments.
        Self::from(1)
    }
}

impl CommandFailure {
    pub(crate) fn new(message: String, hint: &'static str) -> Self {
        Self { message, hint, details: Vec::new(), member: None, code: None }
    }

    /// Says what kind of error it is.
    pub(crate) fn with_code(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Says what to do next in other words.
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self { hint, ..self }
    }

    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Adds the details for people.
    pub(crate) fn with_details(self, details: impl IntoIterator<Item = String>) -> Self {
        Self { details: details.into_iter().collect(), ..self }
    }

    /// Adds the details for programs, as a member of the document.
    pub(crate) fn with_member(self, name: &'static str, value: Value) -> Self {
        Self { member: Some((name, value)), ..self }
    }

    /// Returns the failure as text for people: what went wrong, the details, and what to do next.
    pub(crate) fn text(&self) -> String {
        let more = self.details.len().saturating_sub(MAX_DETAILS_SHOWN);
        let mut lines = vec![format!("error: {}", self.message)];
        lines.extend(self.details.iter().take(MAX_DETAILS_SHOWN).map(|detail| format!("  {detail}")));
        if more > 0 {
            lines.push(format!("  … and {more} more; --json lists all of them"));
        }
        lines.push(self.hint.to_owned());
        lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the failure as JSON for programs, with all details.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({ "error": self.message, "hint": self.hint });
        if let Some((name, value)) = &self.member {
            document[*name] = value.clone();
        }
        document
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(details: usize) -> CommandFailure {
        let details: Vec<_> = (1..=details).map(|line| format!("line {line}: away")).collect();
        let member = json!(details);
        CommandFailure::new("lines refused".to_owned(), "Correct them.")
            .with_details(details)
            .with_member("refused", member)
    }

    #[test]
    fn people_see_the_first_details_and_how_many_more_there_are() {
        let text = failure(25).text();
        assert!(text.starts_with("error: lines refused\n  line 1: away\n"));
        assert!(text.contains("\n  line 20: ") && !text.contains("line 21: "));
        assert!(text.ends_with("\n  … and 5 more; --json lists all of them\nCorrect them."));
        assert!(!failure(20).text().contains("more;"));
    }

    #[test]
    fn programs_see_all_of_them() {
        let document = failure(25).document();
        assert_eq!((&document["error"], &document["hint"]), (&json!("lines refused"), &json!("Correct them.")));
        assert_eq!(document["refused"].as_array().map(Vec::len), Some(25));
    }
}
