//! Why a command did not do all of what was asked, and what to do next. The one place that knows exit codes.

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

/// So many details are shown to people; JSON holds all of them.
const SHOWN: usize = 20;

/// What was refused, or failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    #[error("no AWS region is set")]
    NoRegion,
    #[error("no AWS credentials are found: {}", shortened(.0))]
    NoCredentials(String),
    #[error("the tier {} is coming soon", .0.as_str())]
    ComingSoon(Tier),
    #[error("{}", shortened(&.0.to_string()))]
    Keys(#[from] AdminError),
    #[error("{}", shortened(&.0.to_string()))]
    Webhooks(#[from] WebhookAdminError),
    #[error("nothing was done: {0}")]
    NoQueue(String),
    #[error("{} endpoints have a secret that does not open", .0.failed.len())]
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
    #[error("it is done, but its result cannot be shown: {0}")]
    Unshown(io::Error),
}

impl From<Failure> for ExitCode {
    fn from(_: Failure) -> Self {
        // Wrong usage, the other code, is found while the arguments are parsed.
        Self::from(1)
    }
}

impl Failure {
    /// For people: what and why, then what to do next.
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

    /// For programs: the same, with every detail.
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
            Self::NoRegion => "Set AWS_REGION, or name a profile that has a region in AWS_PROFILE.",
            Self::NoCredentials(_) => {
                "Log in (`aws sso login`), name a profile in AWS_PROFILE, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
            }
            Self::ComingSoon(_) => "Add --preview to make such a key all the same, or choose --tier free.",
            Self::Keys(AdminError::Store(_)) => "`marketctl check` tells what is missing; then try again.",
            Self::Keys(AdminError::Unknown(_)) => "`marketctl keys list --user UUID` shows the ids of a user's keys.",
            Self::Keys(AdminError::NotActive(_)) => "`marketctl keys create` makes a new key.",
            Self::Keys(AdminError::Changed) => "`marketctl keys list --user UUID` shows how the keys stand now.",
            Self::Keys(AdminError::Invalid { .. }) => "Nothing was made; correct it and try again.",
            Self::Webhooks(error) => webhook_hint(error),
            Self::NoQueue(_) => "`marketctl check` looks at everything that the stack is made of.",
            Self::Unsealed(_) => {
                "No delivery to them can be signed: put back a keyring that has their key, or remove them and add them again."
            }
            Self::Unopened { .. } => "Name a readable file, or `-` for standard input.",
            Self::Refused(_) => {
                "All other lines are stored. Correct these and import the file again: what is stored already does not change."
            }
            Self::Stopped { .. } => {
                "Put that right (`marketctl check` helps) and import the file again: what is stored already does not change."
            }
            Self::Unsent(_) => "All other lines are in the feed. Correct these and send them again.",
            Self::SendingStopped { .. } => {
                "Put that right (`marketctl check` helps) and send the file again: what arrived already changes nothing twice."
            }
            Self::Unhealthy(_) => "Put these right and check again.",
            Self::Unshown(_) => {
                "`marketctl keys list` and `marketctl webhooks list` show what is there; a key that nobody saw is best revoked, a secret rotated."
            }
        }
    }
}

fn webhook_hint(error: &WebhookAdminError) -> &'static str {
    match error {
        WebhookAdminError::Store(_) | WebhookAdminError::Keyring(_) => {
            "`marketctl check` tells what is missing; then try again."
        }
        WebhookAdminError::Invalid { .. } => "Nothing was made; correct it and try again.",
        WebhookAdminError::TooMany => "`marketctl webhooks remove ID` makes room for another one.",
        WebhookAdminError::UnknownEndpoint(_) => {
            "`marketctl webhooks list --user UUID` shows the ids of a user's endpoints."
        }
        WebhookAdminError::UnknownDelivery(_) => {
            "`marketctl webhooks deliveries ID` shows the ids of an endpoint's deliveries."
        }
        WebhookAdminError::Disabled(_) => "`marketctl webhooks enable ID` switches it on; then try again.",
        WebhookAdminError::Removed(_) => "`marketctl webhooks add` makes a new one; it gets what happens from then on.",
        WebhookAdminError::Busy(_) => "`marketctl webhooks show DELIVERY_ID` shows its result within two minutes.",
        WebhookAdminError::Rotation(RotationError::NotOver(_)) => "Nothing was changed: all secrets stay as they are.",
        WebhookAdminError::Rotation(RotationError::NoNext) => "`marketctl webhooks rotate-secret ID` makes one.",
        WebhookAdminError::Rotation(RotationError::Stored) => "Remove the endpoint and add it again.",
        WebhookAdminError::KeysNeeded(_) => "`marketctl webhooks rotate-keyring` names these endpoints.",
        WebhookAdminError::Changed => {
            "`marketctl webhooks list --user UUID` and `marketctl webhooks show DELIVERY_ID` show how things stand now."
        }
        WebhookAdminError::NoRandomness => "Nothing was made; try again, on another machine if need be.",
        WebhookAdminError::Late(..) => "Nothing need be done; `marketctl webhooks show DELIVERY_ID` shows its result.",
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
