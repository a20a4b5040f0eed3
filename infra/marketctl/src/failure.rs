//! Why a command failed, in whole or in part, and what to do next. The only place that knows exit codes.

use std::io;
use std::process::ExitCode;

use admin::keys::AdminError;
use admin::webhooks::WebhookAdminError;
use serde_json::{Value, json};
use thiserror::Error;
use types::rotation::RotationError;
use types::scope::Tier;

use crate::check::CheckReport;
use crate::feed::SendReport;
use crate::import::ImportReport;
use crate::input::Stopped;
use crate::output::{printable, shortened};
use crate::webhooks::KeyringReport;

/// The most details shown as text. The JSON output has all of them.
const SHOWN: usize = 20;

/// Why a command failed, in whole or in part.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("no AWS region is set")]
    NoRegion,
    #[error("no AWS credentials were found: {}", shortened(.0))]
    NoCredentials(String),
    #[error("the tier {} is coming soon", .0.as_str())]
    ComingSoon(Tier),
    #[error("{}", shortened(&.0.to_string()))]
    Keys(#[from] AdminError),
    #[error("{}", shortened(&.0.to_string()))]
    Webhooks(#[from] WebhookAdminError),
    #[error("nothing was done: {0}")]
    NoQueue(String),
    #[error("{} endpoints have a secret that the keyring cannot open", .0.failed.len())]
    Unsealed(KeyringReport),
    #[error("{name} cannot be opened: {cause}")]
    Unopened { name: String, cause: io::Error },
    #[error("{} of {} lines refused", .0.refused.len(), .0.lines())]
    Refused(ImportReport),
    #[error("{stopped}")]
    Stopped { report: ImportReport, stopped: Stopped },
    #[error("{} of {} lines not sent", .0.refused.len(), .0.lines())]
    Unsent(SendReport),
    #[error("{stopped}")]
    SendingStopped { report: SendReport, stopped: Stopped },
    #[error("{} of {} checks failed", .0.failed().count(), .0.checks.len())]
    Unhealthy(CheckReport),
    #[error("the command ran, but its result could not be printed: {0}")]
    Unshown(io::Error),
}

impl From<Failure> for ExitCode {
    fn from(_: Failure) -> Self {
        // The other exit code, 2 for wrong usage, comes from parsing the arguments.
        Self::from(1)
    }
}

impl Failure {
    /// The failure as text for people: what went wrong, the details, and what to do next.
    pub(crate) fn text(&self) -> String {
        let details = self.details();
        let more = details.len().saturating_sub(SHOWN);
        let mut lines = vec![format!("error: {self}")];
        lines.extend(details.into_iter().take(SHOWN).map(|detail| format!("  {detail}")));
        if more > 0 {
            lines.push(format!("  … and {more} more; --json lists all of them"));
        }
        lines.push(self.hint().to_owned());
        lines.iter().map(|line| printable(line)).collect::<Vec<_>>().join("\n")
    }

    /// The failure as JSON for programs, with all details.
    pub(crate) fn document(&self) -> Value {
        let mut document = json!({ "error": self.to_string(), "hint": self.hint() });
        match self {
            Self::Refused(report) | Self::Stopped { report, .. } => document["refused"] = json!(report.refused),
            Self::Unsent(report) | Self::SendingStopped { report, .. } => document["refused"] = json!(report.refused),
            Self::Unsealed(report) => document["failed"] = json!(report.failed),
            Self::Webhooks(WebhookAdminError::Late(id, _)) => document["delivery_id"] = json!(id),
            Self::Unhealthy(report) => document["checks"] = json!(report.failed().collect::<Vec<_>>()),
            _ => {}
        }
        document
    }

    fn details(&self) -> Vec<String> {
        match self {
            Self::Refused(report) | Self::Stopped { report, .. } => {
                report.refused.iter().map(ToString::to_string).collect()
            }
            Self::Unsent(report) | Self::SendingStopped { report, .. } => {
                report.refused.iter().map(ToString::to_string).collect()
            }
            Self::Unsealed(report) => report.failed.iter().map(|id| format!("endpoint {id}")).collect(),
            Self::Unhealthy(report) => report.failed().filter_map(|check| check.error.clone()).collect(),
            _ => Vec::new(),
        }
    }

    fn hint(&self) -> &'static str {
        match self {
            Self::NoRegion => "Set AWS_REGION, or set AWS_PROFILE to a profile that has a region.",
            Self::NoCredentials(_) => {
                "Log in (`aws sso login`), set AWS_PROFILE to a profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            }
            Self::ComingSoon(_) => "Add --preview to create such a key anyway, or choose --tier free.",
            Self::Keys(AdminError::Store(_)) => "Run `marketctl check` to find what is wrong, then try again.",
            Self::Keys(AdminError::Unknown(_)) => "`marketctl keys list --user UUID` shows the ids of a user's keys.",
            Self::Keys(AdminError::NotActive(_)) => "Create a new key with `marketctl keys create`.",
            Self::Keys(AdminError::Changed) => {
                "Nothing was done. `marketctl keys list --user UUID` shows the keys as they are now."
            }
            Self::Keys(AdminError::Invalid { .. }) => "Nothing was created. Correct the value and try again.",
            Self::Webhooks(error) => webhook_hint(error),
            Self::NoQueue(_) => "Run `marketctl check`: it names every table, queue and secret that cannot be used.",
            Self::Unsealed(_) => {
                "Deliveries to them cannot be signed. Restore a keyring that has their key, or remove them and add them again."
            }
            Self::Unopened { .. } => "Give a file that can be read, or `-` for standard input.",
            Self::Refused(_) => {
                "All other lines are stored. Correct these and import the file again; lines that are already stored change nothing."
            }
            Self::Stopped { .. } => {
                "Fix the cause (`marketctl check` helps) and import the file again; lines that are already stored change nothing."
            }
            Self::Unsent(_) => "All other lines are in the feed queue. Correct these and send them again.",
            Self::SendingStopped { .. } => {
                "Fix the cause (`marketctl check` helps) and send the file again; a message that arrives twice is applied once."
            }
            Self::Unhealthy(_) => "Fix these, then run `marketctl check` again.",
            Self::Unshown(_) => {
                "`marketctl keys list` and `marketctl webhooks list` show what exists now. If a new key was not shown, revoke it; if a new secret was not shown, rotate it."
            }
        }
    }
}

fn webhook_hint(error: &WebhookAdminError) -> &'static str {
    match error {
        WebhookAdminError::Store(_) | WebhookAdminError::Keyring(_) => {
            "Run `marketctl check` to find what is wrong, then try again."
        }
        WebhookAdminError::Invalid { .. } => "Nothing was created. Correct the value and try again.",
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
        WebhookAdminError::Busy(_) => "`marketctl webhooks show DELIVERY_ID` shows the result within two minutes.",
        WebhookAdminError::Rotation(RotationError::NotOver(_)) => "No secret was changed.",
        WebhookAdminError::Rotation(RotationError::NoNext) => "Create one with `marketctl webhooks rotate-secret ID`.",
        WebhookAdminError::Rotation(RotationError::Stored) => "Remove the endpoint and add it again.",
        WebhookAdminError::KeysNeeded(_) => "`marketctl webhooks rotate-keyring` names these endpoints.",
        WebhookAdminError::Changed => {
            "`marketctl webhooks list --user UUID` and `marketctl webhooks show DELIVERY_ID` show the current state."
        }
        WebhookAdminError::NoRandomness => "Nothing was created. Try again, on another machine if necessary.",
        WebhookAdminError::Late(..) => {
            "You need not do anything. `marketctl webhooks show DELIVERY_ID` shows the result."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(count: u64) -> Failure {
        let mut report = ImportReport::default();
        report.abandon(&(1..=count).collect::<Vec<_>>(), "away");
        Failure::Refused(report)
    }

    #[test]
    fn people_see_the_first_refusals_and_how_many_more_there_are() {
        let text = refused(25).text();
        assert!(text.starts_with("error: 25 of 25 lines refused\n  line 1: "));
        assert!(text.contains("\n  line 20: ") && !text.contains("line 21: "));
        assert!(text.contains("… and 5 more"));
        assert!(!refused(20).text().contains("more;"));
    }

    #[test]
    fn programs_see_all_of_them() {
        let document = refused(25).document();
        assert_eq!(document["error"], "25 of 25 lines refused");
        assert_eq!(document["refused"].as_array().map(Vec::len), Some(25));
    }
}
