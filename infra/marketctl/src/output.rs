//! Prints results and failures: one JSON document for programs, or text and tables for people.

use std::fmt::Display;
use std::io::{self, Write};

use serde::Serialize;

use crate::failure::CommandFailure;

/// The form of what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Json,
}

impl Output {
    pub(crate) const fn from_json_flag(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Prints a command's result to standard output.
    pub(crate) fn print<D: Serialize>(
        self,
        document: &D,
        text: impl FnOnce(&D) -> String,
    ) -> Result<(), CommandFailure> {
        let result = match self {
            Self::Text => text(document),
            Self::Json => serde_json::to_string(document).map_err(|error| not_printed(&error))?,
        };
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{result}").and_then(|()| stdout.flush()).map_err(|error| not_printed(&error))
    }

    /// Prints what failed, and why, to standard error.
    pub(crate) fn print_failure(self, failure: &CommandFailure) {
        let text = match self {
            Self::Text => failure.text(),
            Self::Json => failure.document().to_string(),
        };
        // If standard error is closed, the exit code still reports the failure.
        let _ = writeln!(io::stderr(), "{text}");
    }
}

/// Returns the failure of a command that did its work but could not print the result.
fn not_printed(cause: &impl Display) -> CommandFailure {
    CommandFailure::new(
        format!("the command ran, but its result could not be printed: {cause}"),
        "`marketctl keys list` and `marketctl webhooks list` show what exists now. If a new key was not shown, revoke it; if a new secret was not shown, rotate it.",
    )
}
