//! Why a command failed, in whole or in part, and what to do next. It is the program's one error type and the only place
//! that knows exit codes. Errors of the libraries become failures here, where each gets its hint.

use std::borrow::Cow;
use std::io::{self, Write};
use std::process::ExitCode;

use admin::ErrorCode;
use admin::keys::AdminError;
use admin::webhooks::WebhookAdminError;
use common::preflight::{Problem, ResourceKind};
use common::rotation::RotationError;
use common::rows::Unreadable;
use serde::Serialize;
use serde_json::{Value, json};
use terminal::{NotPrinted, Output, escaped, printable};

/// The most details shown as text. The JSON output has all of them.
const MAX_DETAILS_SHOWN: usize = 20;
/// The most characters that are quoted of a text of any length.
const MAX_QUOTED_CHARS: usize = 300;

/// Why a command failed, in whole or in part.
#[derive(Debug)]
pub(crate) struct CommandFailure {
    message: String,
    /// What to do next.
    hint: Cow<'static, str>,
    /// Each detail for people is one line.
    details: Vec<String>,
    /// The details for programs are a member of the document, which has this name.
    member: Option<Box<(&'static str, Value)>>,
    /// What kind of error it is, unless it came after the change. The audit line has it.
    code: Option<ErrorCode>,
}

impl CommandFailure {
    /// The exit code if the command line is wrong, or a value in it.
    pub(crate) const WRONG_USAGE: u8 = 2;

    pub(crate) fn new(message: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { message: message.into(), hint: hint.into(), details: Vec::new(), member: None, code: None }
    }

    /// The command line is wrong, or a value in it.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<Cow<'static, str>>) -> Self {
        Self::new(message, hint).with_code(ErrorCode::Invalid)
    }

    /// A value of an option is refused that looked right. The words are those of the parser.
    pub(crate) fn invalid(option: &str, reason: &str, hint: &'static str) -> Self {
        Self::usage(format!("invalid value for '--{}': {reason}", option.replace('_', "-")), hint)
    }

    /// Says what kind of error it is.
    pub(crate) fn with_code(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// Says what to do next in other words.
    pub(crate) fn with_hint(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: hint.into(), ..self }
    }

    pub(crate) const fn code(&self) -> Option<ErrorCode> {
        self.code
    }

    /// Adds the details for people.
    pub(crate) fn with_details(self, details: impl IntoIterator<Item = String>) -> Self {
        Self { details: details.into_iter().collect(), ..self }
    }

    /// Adds the details for programs, as a member of the document.
    pub(crate) fn with_member(self, name: &'static str, value: impl Serialize) -> Self {
        Self { member: Some(Box::new((name, json!(value)))), ..self }
    }

    /// Returns the failure as text for people: what went wrong, the details, and what to do next.
    pub(crate) fn text(&self) -> String {
        let more = self.details.len().saturating_sub(MAX_DETAILS_SHOWN);
        let mut lines = vec![format!("error: {}", self.message)];
        lines.extend(self.details.iter().take(MAX_DETAILS_SHOWN).map(|detail| format!("  {detail}")));
        if more > 0 {
            lines.push(format!("  … and {more} more; --json lists all of them"));
        }
        lines.extend(self.hint.lines().map(str::to_owned));
        lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
    }

    /// Returns the failure as JSON for programs, with all details.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({ "error": self.message, "hint": self.hint });
        if let Some((name, value)) = self.member.as_deref() {
            document[*name] = value.clone();
        }
        document
    }

    /// Prints the failure to standard error.
    pub(crate) fn print(&self, output: Output) -> ExitCode {
        let text = match output {
            Output::Text => self.text(),
            Output::Json => escaped(&self.document().to_string()),
        };
        // If standard error is closed, the exit code still reports the failure.
        let _ = writeln!(io::stderr(), "{text}");
        ExitCode::from(if self.code == Some(ErrorCode::Invalid) { Self::WRONG_USAGE } else { 1 })
    }
}

/// Cuts off text after [`MAX_QUOTED_CHARS`] characters: it may quote input of any length.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns an error if rows had to be left out of a result. The result, which is printed before, has the form that it
/// always has.
pub(crate) fn none_left_out(unreadable: &[Unreadable]) -> Result<(), CommandFailure> {
    if unreadable.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = unreadable.iter().map(|Unreadable { row, what }| json!({ "row": row, "what": what })).collect();
    Err(CommandFailure::new(
        format!("rows that cannot be read and were left out: {}", unreadable.len()),
        "Each line is a row's key and what cannot be read of it. If a newer release wrote it, use that release's `marketctl`.",
    )
    .with_details(unreadable.iter().map(ToString::to_string))
    .with_member("unreadable", rows))
}

/// Returns a whole sentence about a resource that cannot be used: which one, what is wrong with it, what to do next.
pub(crate) fn with_remedy(problem: &Problem, kind: ResourceKind, name: &str) -> String {
    let next = match (problem, kind) {
        (Problem::Missing, ResourceKind::Secret) => {
            "if it was deleted, restore it (`aws secretsmanager restore-secret`, for 30 days), because no deployment can \
             make the same again; if there is no such stack yet, deploy it, or select the right one with --stack and AWS_REGION"
        }
        (Problem::Missing, _) => {
            "deploy the stack, or select the right stack with --stack and its region with AWS_REGION"
        }
        (Problem::NotActive(_), ResourceKind::Secret) => {
            "restore it (`aws secretsmanager restore-secret`); without it no webhook delivery can be signed"
        }
        (Problem::NotActive(_), _) => "wait until it is active, then check again",
        (Problem::NoIndex(_), _) => {
            "deploy the stack again; without the index, webhook deliveries cannot be listed or retried"
        }
        (Problem::Content(_), _) => {
            "restore the secret's previous version; without a keyring no webhook delivery can be signed"
        }
        (Problem::Denied(_), ResourceKind::Table) => "allow dynamodb:DescribeTable, or use another profile",
        (Problem::Denied(_), ResourceKind::Queue) => {
            "allow sqs:GetQueueUrl and sqs:GetQueueAttributes, or use another profile"
        }
        (Problem::Denied(_), ResourceKind::Secret) => {
            "allow secretsmanager:DescribeSecret and secretsmanager:GetSecretValue, or use another profile"
        }
        (Problem::Denied(_), ResourceKind::Bucket) => "allow s3:GetObject and s3:ListBucket, or use another profile",
        (Problem::Refused(_), _) => "check the credentials and AWS_REGION",
        (Problem::Unreachable(_), _) => "check the network, AWS_REGION and AWS_ENDPOINT_URL",
    };
    format!("{}: {next}", problem.sentence(kind, name))
}

impl From<NotPrinted> for CommandFailure {
    fn from(cause: NotPrinted) -> Self {
        Self::new(
            format!("the command ran, but its result could not be printed: {cause}"),
            "A list can be read again. `marketctl keys list` and `marketctl webhooks list` show what exists now: if a new key was not shown, revoke it; if a new secret was not shown, rotate it.",
        )
    }
}

impl From<AdminError> for CommandFailure {
    fn from(error: AdminError) -> Self {
        let hint = match &error {
            AdminError::Store(_) => "Run `marketctl check` to find what is wrong, then try again.",
            AdminError::Unknown(_) => {
                "`marketctl keys list --user UUID` shows the ids of a user's keys. If it shows this one, run `marketctl repair --dry-run --table keys`."
            }
            AdminError::NotActive(_) => "Create a new key with `marketctl keys create`.",
            AdminError::Replaced { .. } => {
                "Nothing was changed. Rotate the key that replaced it, or revoke this one to end it now."
            }
            AdminError::Changed => {
                "Nothing was done. `marketctl keys list --user UUID` shows the keys as they are now."
            }
            AdminError::Invalid { .. } => "Nothing was changed. Correct the value and try again.",
            AdminError::TooMany { .. } => {
                "`marketctl keys list --user UUID` shows them. With --max-keys you let the user have more."
            }
            AdminError::TooManyToday { .. } => "Nothing was done.",
        };
        let failure = match &error {
            AdminError::Invalid { field, reason } => Self::invalid(field, reason, hint),
            error => Self::new(shortened(&error.to_string()), hint),
        };
        failure.with_code(error.code())
    }
}

impl From<WebhookAdminError> for CommandFailure {
    fn from(error: WebhookAdminError) -> Self {
        let hint = match &error {
            WebhookAdminError::Store(_) | WebhookAdminError::Keyring(_) => {
                "Run `marketctl check` to find what is wrong, then try again."
            }
            WebhookAdminError::Invalid { .. } => "Nothing was changed. Correct the value and try again.",
            WebhookAdminError::TooMany => "Remove one with `marketctl webhooks remove ID`, then try again.",
            WebhookAdminError::UnknownEndpoint(_) => {
                "`marketctl webhooks list --user UUID` shows the ids of a user's endpoints."
            }
            WebhookAdminError::UnknownDelivery(_) => {
                "`marketctl webhooks deliveries ID` shows the ids of an endpoint's deliveries."
            }
            WebhookAdminError::Disabled(_) => "Switch it on with `marketctl webhooks enable ID`, then try again.",
            WebhookAdminError::Removed(_) => {
                "Add a new endpoint with `marketctl webhooks add`; it receives the events that happen from then on."
            }
            WebhookAdminError::TooManyTrials { .. } => "Nothing was changed or sent.",
            WebhookAdminError::Busy(_) => "`marketctl webhooks show DELIVERY_ID` shows the result within two minutes.",
            WebhookAdminError::TooManyRounds(_) => {
                "`marketctl webhooks show DELIVERY_ID` shows its body, which you can hand to the receiver yourself."
            }
            WebhookAdminError::TooManyRoundsToday { .. } | WebhookAdminError::Unproven(_) => "The rest was not sent.",
            WebhookAdminError::Rotation(RotationError::NotOver(_)) => {
                "No secret was changed. If the newest secret is lost, end the old one with --expire-old, and then rotate again: until the receiver has the next one, it can verify nothing."
            }
            WebhookAdminError::Rotation(RotationError::NoNext) => {
                "Create one with `marketctl webhooks rotate-secret ID`."
            }
            WebhookAdminError::Rotation(RotationError::NoOld) => "No secret was changed: only the active one is valid.",
            WebhookAdminError::Rotation(RotationError::Stored) => "Remove the endpoint and add it again.",
            WebhookAdminError::KeysNeeded(_) => "`marketctl webhooks rotate-keyring` names these endpoints.",
            WebhookAdminError::Changed => {
                "`marketctl webhooks list --user UUID` and `marketctl webhooks show DELIVERY_ID` show the current state."
            }
            WebhookAdminError::NoRandomness => "Nothing was created. Try again, on another machine if necessary.",
            WebhookAdminError::Late(..) => {
                "You need not do anything. `marketctl webhooks show DELIVERY_ID` shows the result."
            }
        };
        let failure = match &error {
            WebhookAdminError::Invalid { field, reason } => Self::invalid(field, &shortened(reason), hint),
            error => Self::new(shortened(&error.to_string()), hint),
        };
        match error {
            // The delivery is stored, and a sweep calls its drain.
            WebhookAdminError::Late(id, _) => failure.with_member("delivery_id", id),
            error => failure.with_code(error.code()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(details: usize) -> CommandFailure {
        let details: Vec<_> = (1..=details).map(|line| format!("line {line}: away")).collect();
        CommandFailure::new("lines refused", "Correct them.").with_member("refused", &details).with_details(details)
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

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(shortened(&"é".repeat(200_000)).chars().count(), MAX_QUOTED_CHARS + 1);
        assert_eq!(shortened("short"), "short");
    }
}
