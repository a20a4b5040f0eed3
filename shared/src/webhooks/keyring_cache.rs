//! The keyring as a running function knows it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use thiserror::Error;
use tokio::sync::Mutex;

use super::endpoint::Endpoint;
use super::keyring::{Keyring, KeyringError};
use super::keyring_secret::KeyringSecret;
use super::rotation::Secrets;
use super::sealing::SealError;
use super::secret::EndpointSecret;
use crate::clock::{Clock, Moment};
use crate::ids::EndpointId;
use crate::look::Problem;

/// A keyring is read again after this.
const KEPT: Duration = Duration::from_mins(5);
/// A key that is missing makes it be read again, but not more often than this.
const LEAST: Duration = Duration::from_secs(2);

/// Why a secret cannot be sealed or opened now, or the keyring not be changed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KeyringUnavailable {
    /// Secrets Manager does not answer, or refuses.
    #[error("the keyring {0}")]
    Unread(Problem),
    /// Secrets Manager does not take it, or does not say so.
    #[error("the keyring cannot be written: {0}")]
    Unwritten(String),
    /// What it answers is no keyring.
    #[error(transparent)]
    Invalid(#[from] KeyringError),
    /// The secret does not open under any of its keys.
    #[error(transparent)]
    Sealed(#[from] SealError),
}

/// The keyring, and when that was asked for.
type Read = (Arc<Keyring>, Moment);

impl From<Problem> for KeyringUnavailable {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::NoKeyring(error) => Self::Invalid(error),
            problem => Self::Unread(problem),
        }
    }
}

/// The keyring of a secret, read once in a while; clones share it.
#[derive(Clone)]
pub struct KeyringCache {
    secret: KeyringSecret,
    clock: Arc<dyn Clock>,
    read: Arc<Mutex<Option<Read>>>,
}

impl KeyringCache {
    /// The keyring that Secrets Manager holds under this name or ARN.
    pub fn new(client: Client, name: String, clock: Arc<dyn Clock>) -> Self {
        Self { secret: KeyringSecret::new(client, name), clock, read: Arc::default() }
    }

    /// Opens an endpoint's secrets. One that was sealed under a key newer than what is remembered is found, too.
    pub async fn open(&self, endpoint: &Endpoint) -> Result<Secrets<EndpointSecret>, KeyringUnavailable> {
        let open = |keyring: &Keyring| endpoint.secrets.try_map(|sealed| keyring.open(endpoint.id, sealed));
        match open(self.keyring(KEPT).await?.as_ref()) {
            Err(SealError::UnknownKey) => Ok(open(self.keyring(LEAST).await?.as_ref())?),
            opened => Ok(opened?),
        }
    }

    /// Seals a secret for an endpoint under the key that is current now.
    pub async fn seal(&self, endpoint: EndpointId, secret: &EndpointSecret) -> Result<String, KeyringUnavailable> {
        Ok(self.keyring(LEAST).await?.seal(endpoint, secret)?)
    }

    /// Reads the keyring before it is needed.
    pub async fn warm_up(&self) -> Result<(), Problem> {
        self.keyring(KEPT).await.map(drop)
    }

    /// The secret behind it, for who changes the keyring.
    pub(super) const fn secret(&self) -> &KeyringSecret {
        &self.secret
    }

    /// The keyring, read less than `age` ago.
    async fn keyring(&self, age: Duration) -> Result<Arc<Keyring>, Problem> {
        // Held while it is read, so that callers who come meanwhile wait for it instead of asking, too.
        let mut read = self.read.lock().await;
        if let Some((keyring, at)) = read.as_ref()
            && at.is_within(age, self.clock.as_ref())
        {
            return Ok(Arc::clone(keyring));
        }
        let at = Moment::of(self.clock.as_ref());
        let keyring = Arc::new(self.secret.read().await?.keyring);
        *read = Some((Arc::clone(&keyring), at));
        Ok(keyring)
    }
}
