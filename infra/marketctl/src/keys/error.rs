//! What to do about the errors of the `keys` commands.

use admin::ErrorCode;
use admin::keys::AdminError;
use thiserror::Error;
use types::scope::Tier;

use crate::failure::CommandFailure;
use crate::text::shortened;

/// This tier was asked for without `--preview`.
#[derive(Debug, Error)]
#[error("the tier {} is coming soon", .0.as_str())]
pub(super) struct ComingSoon(pub(super) Tier);

impl From<ComingSoon> for CommandFailure {
    fn from(error: ComingSoon) -> Self {
        Self::new(error.to_string(), "Add --preview to give the key this tier anyway, or choose --tier free.")
            .with_code(ErrorCode::Invalid)
    }
}

impl From<AdminError> for CommandFailure {
    fn from(error: AdminError) -> Self {
        let hint = match &error {
            AdminError::Store(_) => "Run `marketctl check` to find what is wrong, then try again.",
            AdminError::Unknown(_) => "`marketctl keys list --user UUID` shows the ids of a user's keys.",
            AdminError::NotActive(_) => "Create a new key with `marketctl keys create`.",
            AdminError::Changed => {
                "Nothing was done. `marketctl keys list --user UUID` shows the keys as they are now."
            }
            AdminError::Invalid { .. } => "Nothing was changed. Correct the value and try again.",
        };
        Self::new(shortened(&error.to_string()), hint).with_code(error.code())
    }
}
