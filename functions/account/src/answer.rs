//! What a command is answered with: its result, or why it was not done. What is wrong inside the service is logged, and
//! not in the answer.

use admin::ErrorCode;
use admin::audit::Subject;
use admin::keys::AdminError;
use admin::webhooks::WebhookAdminError;
use serde::Serialize;
use serde_json::Value;

/// The only version of commands and answers so far.
pub(crate) const VERSION: u32 = 1;

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

/// The error of an answer.
#[derive(Debug, Serialize)]
pub(crate) struct CommandError {
    pub(crate) code: ErrorCode,
    message: String,
    /// The member that breaks a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    /// After how many seconds repeating helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
    /// The cause, for the log.
    #[serde(skip)]
    pub(crate) cause: Option<String>,
}

impl CommandError {
    /// A member breaks a rule.
    pub(crate) fn invalid(field: &str, reason: impl AsRef<str>) -> Self {
        let reason = reason.as_ref();
        let message = if field.is_empty() { reason.to_owned() } else { format!("{field}: {reason}") };
        let field = Some(field).filter(|field| !field.is_empty()).map(str::to_owned);
        Self { code: ErrorCode::Invalid, message, field, retry_after: None, cause: None }
    }

    /// A result that cannot be written as JSON. That is a defect in the code.
    fn unwritable(error: &serde_json::Error) -> Self {
        Self::new(ErrorCode::Internal, error.to_string())
    }

    /// A command that took too long. It may have been done in part.
    pub(crate) fn late() -> Self {
        Self::new(ErrorCode::Unavailable, "the command took too long".to_owned())
    }

    fn new(code: ErrorCode, text: String) -> Self {
        let (message, cause) = match code {
            ErrorCode::Unavailable => {
                ("a part of the service did not answer; look whether the change was made, then try again", Some(text))
            }
            ErrorCode::Internal => ("the service cannot do this now; its operator has to look at it", Some(text)),
            _ => return Self { code, message: text, field: None, retry_after: None, cause: None },
        };
        Self { code, message: message.to_owned(), field: None, retry_after: None, cause }
    }
}

impl From<AdminError> for CommandError {
    fn from(error: AdminError) -> Self {
        match error {
            AdminError::Invalid { field, reason } => Self::invalid(member(field), reason),
            AdminError::TooManyToday { seconds, .. } => {
                Self { retry_after: Some(seconds), ..Self::new(error.code(), error.to_string()) }
            }
            error => Self::new(error.code(), error.to_string()),
        }
    }
}

impl From<WebhookAdminError> for CommandError {
    fn from(error: WebhookAdminError) -> Self {
        match error {
            WebhookAdminError::Invalid { field, reason } => Self::invalid(member(field), reason),
            WebhookAdminError::TooManyTrials { seconds } | WebhookAdminError::TooManyRoundsToday { seconds, .. } => {
                Self { retry_after: Some(seconds), ..Self::new(error.code(), error.to_string()) }
            }
            error => Self::new(error.code(), error.to_string()),
        }
    }
}

/// Returns the name of a member whose rule is about a single one of its values, or has no unit.
fn member(field: &'static str) -> &'static str {
    match field {
        "scope" => "scopes",
        "event" => "events",
        "overlap" => "overlap_seconds",
        other => other,
    }
}
