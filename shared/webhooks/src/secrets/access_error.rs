//! The errors of using the keyring, and how preflight reports them.

use common::preflight::Problem;
use thiserror::Error;

use super::keyring::KeyringError;
use super::sealing::SealError;

/// Why a secret cannot be sealed or opened now, or why the keyring cannot be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyringAccessError {
    /// Secrets Manager does not answer, or refuses to.
    #[error("the keyring {0}")]
    Unread(Problem),
    /// Secrets Manager does not accept the change, or its answer was lost.
    #[error("the keyring cannot be written: {0}")]
    Unwritten(String),
    /// Secrets Manager returned something that is not a keyring.
    #[error(transparent)]
    Invalid(#[from] KeyringError),
    /// A secret cannot be sealed, or does not open under any of the keys.
    #[error(transparent)]
    Sealed(#[from] SealError),
}

impl From<KeyringAccessError> for Problem {
    fn from(error: KeyringAccessError) -> Self {
        match error {
            KeyringAccessError::Unread(problem) => problem,
            KeyringAccessError::Invalid(error) => error.into(),
            KeyringAccessError::Unwritten(_) | KeyringAccessError::Sealed(_) => Self::Refused(error.to_string()),
        }
    }
}

impl From<KeyringError> for Problem {
    fn from(error: KeyringError) -> Self {
        Self::Content(format!("no keyring ({error})"))
    }
}
