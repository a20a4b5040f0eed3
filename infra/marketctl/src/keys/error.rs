//! What to do about the errors of the `keys` commands.

use admin::ErrorCode;
use admin::keys::AdminError;
use auth::KeyRecord;
use platform::store::StoreError;
use serde_json::json;
use thiserror::Error;
use types::ids::KeyId;
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

/// It is not known whether a key was replaced.
#[derive(Debug, Error)]
#[error("it is not known whether key {old} was replaced: {cause}")]
pub(super) struct RotationInDoubt {
    pub(super) old: KeyId,
    /// The key that was to take its place.
    pub(super) new: KeyRecord,
    pub(super) cause: StoreError,
}

impl From<RotationInDoubt> for CommandFailure {
    fn from(error: RotationInDoubt) -> Self {
        let RotationInDoubt { old, new: KeyRecord { key_id, user_id, last4, .. }, .. } = &error;
        let details = [
            format!("To find out: marketctl keys list --user {user_id}"),
            format!("If it lists key {key_id}, with the last 4 characters {last4}: the new key replaced key {old}. Use the printed text."),
            "If it does not list that key after a minute: nothing was changed, and the printed text is worthless. Rotate the key again.".to_owned(),
        ];
        let in_doubt = json!({ "user_id": user_id, "old_key_id": old, "new_key_id": key_id, "new_last4": last4 });
        Self::new(shortened(&error.to_string()), "Keep the printed text until you know.")
            .with_details(details)
            .with_member("in_doubt", in_doubt)
    }
}

impl From<AdminError> for CommandFailure {
    fn from(error: AdminError) -> Self {
        let hint = match &error {
            AdminError::Store(_) => "Run `marketctl check` to find what is wrong, then try again.",
            AdminError::Unknown(_) => "`marketctl keys list --user UUID` shows the ids of a user's keys.",
            AdminError::NotActive(_) => "Create a new key with `marketctl keys create`.",
            AdminError::Replaced { .. } => {
                "Nothing was changed. Rotate the key that replaced it, or revoke this one to end it now."
            }
            AdminError::Changed => {
                "Nothing was done. `marketctl keys list --user UUID` shows the keys as they are now."
            }
            AdminError::Invalid { .. } => "Nothing was changed. Correct the value and try again.",
        };
        Self::new(shortened(&error.to_string()), hint).with_code(error.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use auth::KeyStatus;
    use types::scope::Scope;
    use types::timestamp::Timestamp;

    const OLD: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";
    const NEW: &str = "6f9619ff-8b86-d011-b42d-00c04fc96400";

    #[test]
    fn a_rotation_in_doubt_says_where_to_look() {
        let new = KeyRecord {
            key_id: NEW.parse().unwrap(),
            user_id: OLD.parse().unwrap(),
            name: None,
            tier: Tier::Free,
            scopes: [Scope::CatalogRead].into(),
            limit: Tier::Free.limit(),
            limit_override: None,
            status: KeyStatus::Active,
            created_at: Timestamp::from_millis(0),
            expires_at: None,
            last_used_at: None,
            last4: "k8Ez".to_owned(),
        };
        let cause = StoreError::Unavailable("no answer".to_owned());
        let failure = CommandFailure::from(RotationInDoubt { old: OLD.parse().unwrap(), new, cause });
        let text = failure.text();
        for expected in [format!("keys list --user {OLD}"), format!("key {NEW}"), "k8Ez".to_owned()] {
            assert!(text.contains(&expected), "{text}");
        }
        let in_doubt = json!({ "user_id": OLD, "old_key_id": OLD, "new_key_id": NEW, "new_last4": "k8Ez" });
        assert_eq!(failure.document()["in_doubt"], in_doubt);
    }
}
