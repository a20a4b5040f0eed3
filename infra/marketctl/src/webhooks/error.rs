//! What to do about the errors of the `webhooks` commands.

use admin::webhooks::WebhookAdminError;
use serde_json::json;
use types::rotation::RotationError;

use crate::failure::CommandFailure;
use crate::text::shortened;

impl From<WebhookAdminError> for CommandFailure {
    fn from(error: WebhookAdminError) -> Self {
        let failure = Self::new(shortened(&error.to_string()), hint(&error));
        match error {
            // The delivery is stored, and a sweep calls its drain.
            WebhookAdminError::Late(id, _) => failure.with_member("delivery_id", json!(id)),
            error => failure.with_code(error.code()),
        }
    }
}

fn hint(error: &WebhookAdminError) -> &'static str {
    match error {
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
        WebhookAdminError::Rotation(RotationError::NotOver(_)) => "No secret was changed.",
        WebhookAdminError::Rotation(RotationError::NoNext) => "Create one with `marketctl webhooks rotate-secret ID`.",
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
    }
}
