//! The codes of errors, for programs: what they may do about an error.

use crate::keys::AdminError;
use crate::webhooks::WebhookAdminError;
use common::closed_enum;
use common::rotation::RotationError;
use common::store::StoreError;
use webhooks::secrets::KeyringAccessError;

closed_enum! {
    /// What kind of error it is. The message says more, for people.
    pub enum ErrorCode {
        /// The user has no such key, endpoint or delivery. Repeating does not help.
        NotFound = "not_found",
        /// The command cannot be read, or a value breaks a rule. Repeating does not help; `field` names the value.
        Invalid = "invalid",
        /// The present state does not allow the command, or somebody else changed it at the same moment. Repeating helps
        /// once the state is another one.
        Conflict = "conflict",
        /// There may be no more of them. Repeating helps once there are fewer keys or endpoints; a delivery has had its rounds.
        LimitReached = "limit_reached",
        /// It was done too often in this minute or on this day. Repeating helps after `retry_after` seconds.
        RateLimited = "rate_limited",
        /// A store, a queue or the keyring did not answer, or the command took too long. Whether a change was made is not
        /// known: look, then repeat.
        Unavailable = "unavailable",
        /// A row cannot be read, or the service has a defect. Repeating does not help until an operator has acted.
        Internal = "internal",
    }
}

impl ErrorCode {
    /// Returns whether nothing was changed for certain.
    pub const fn is_refusal(self) -> bool {
        matches!(self, Self::NotFound | Self::Invalid | Self::Conflict | Self::LimitReached | Self::RateLimited)
    }
}

impl AdminError {
    /// Returns what kind of error it is.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => store_code(error),
            Self::Unknown(_) => ErrorCode::NotFound,
            Self::Invalid { .. } => ErrorCode::Invalid,
            Self::TooMany { .. } => ErrorCode::LimitReached,
            Self::TooManyToday { .. } => ErrorCode::RateLimited,
            _ => ErrorCode::Conflict,
        }
    }
}

impl WebhookAdminError {
    /// Returns what kind of error it is.
    pub const fn code(&self) -> ErrorCode {
        match self {
            Self::Store(error) => store_code(error),
            Self::Keyring(KeyringAccessError::Unread(_) | KeyringAccessError::Unwritten(_)) | Self::Late(..) => {
                ErrorCode::Unavailable
            }
            Self::Keyring(_) | Self::NoRandomness | Self::Rotation(RotationError::Stored) => ErrorCode::Internal,
            Self::UnknownEndpoint(_) | Self::UnknownDelivery(_) => ErrorCode::NotFound,
            Self::Invalid { .. } => ErrorCode::Invalid,
            Self::TooManyTrials { .. } | Self::TooManyRoundsToday { .. } => ErrorCode::RateLimited,
            Self::TooMany | Self::TooManyRounds(_) => ErrorCode::LimitReached,
            _ => ErrorCode::Conflict,
        }
    }
}

const fn store_code(error: &StoreError) -> ErrorCode {
    match error {
        StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_) => ErrorCode::Unavailable,
        StoreError::InvalidRequest(_) | StoreError::Defect(_) | StoreError::Corrupt { .. } => ErrorCode::Internal,
    }
}
