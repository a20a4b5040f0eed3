//! What a command is answered with.

use admin::audit::Subject;
use serde::Serialize;
use serde_json::Value;

use crate::error::CommandError;
use crate::request::VERSION;

/// What a command did.
pub(crate) struct Done {
    pub(crate) result: Value,
    /// What it was about, if the command itself did not name all of it.
    pub(crate) subject: Option<Subject>,
    /// Whether no answer told that the change was made.
    pub(crate) in_doubt: bool,
}

impl Done {
    pub(crate) fn new(document: &impl Serialize) -> Result<Self, CommandError> {
        let result = serde_json::to_value(document).map_err(|error| CommandError::unwritable(&error))?;
        Ok(Self { result, subject: None, in_doubt: false })
    }

    /// Tells what was made.
    pub(crate) fn about(self, subject: impl Into<Subject>) -> Self {
        Self { subject: Some(subject.into()), ..self }
    }
}

#[derive(Serialize)]
pub(crate) struct Answer {
    version: u32,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Result(Value),
    Error(CommandError),
}

impl Answer {
    pub(crate) fn new(outcome: Result<Done, CommandError>) -> Self {
        let outcome = match outcome {
            Ok(done) => Outcome::Result(done.result),
            Err(error) => Outcome::Error(error),
        };
        Self { version: VERSION, outcome }
    }
}
