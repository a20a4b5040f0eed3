//! The keyring in Secrets Manager: how it is read and replaced, and what an instance remembers of it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata;
use futures_util::FutureExt;
use thiserror::Error;
use tokio::sync::Mutex;

use super::keyring::{Keyring, KeyringError};
use super::sealing::SealError;
use super::secret::EndpointSecret;
use common::aws::{Missing, Patience};
use common::clock::{Clock, Moment};
use common::ids::EndpointId;
use common::preflight::{Problem, ResourceKind};
use common::resources::KEYRING_VARIABLE;
use common::rotation::Secrets;
use common::runtime::Service;
use common::store::explain;

const CURRENT: &str = "AWSCURRENT";
const PENDING: &str = "AWSPENDING";
/// How old a remembered keyring may be before it is read again.
const MAX_AGE: Duration = Duration::from_mins(5);
/// The same limit if a key is missing from it, or if a secret is to be sealed. It keeps a key that is lost for good
/// from causing a read for every delivery.
const MAX_AGE_AFTER_MISS: Duration = Duration::from_secs(2);

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

/// The secret in Secrets Manager that holds the keyring.
#[derive(Clone)]
pub struct KeyringSecret {
    client: Client,
    name: String,
}

/// The keyring as it was read, and which version of the secret held it.
pub struct StoredKeyring {
    pub keyring: Keyring,
    version: String,
}

impl KeyringSecret {
    pub fn new(client: Client, name: String) -> Self {
        Self { client, name }
    }

    pub async fn read(&self) -> Result<StoredKeyring, KeyringAccessError> {
        let found = self.client.get_secret_value().secret_id(&self.name).send().await;
        let found = found.map_err(|error| KeyringAccessError::Unread(Problem::from(error)))?;
        let keyring = Keyring::parse(found.secret_string().unwrap_or_default())?;
        Ok(StoredKeyring { keyring, version: found.version_id.unwrap_or_default() })
    }

    /// Replaces the keyring if it is still the one that was read, and returns whether it was. If it was not, nothing
    /// changes, so that no key is lost that somebody else has added in the meantime.
    pub async fn replace(&self, seen: &StoredKeyring, keyring: &Keyring) -> Result<bool, KeyringAccessError> {
        let put = self.client.put_secret_value().secret_id(&self.name).secret_string(keyring.reveal());
        let put = put.version_stages(PENDING).send().await;
        let version = put.map_err(|error| KeyringAccessError::Unwritten(explain(&error)))?.version_id;
        let moved = self
            .client
            .update_secret_version_stage()
            .secret_id(&self.name)
            .version_stage(CURRENT)
            .remove_from_version_id(&seen.version)
            .set_move_to_version_id(version.clone())
            .send();
        match moved.await {
            Ok(_) => Ok(true),
            // Another version is current. It is our own if an earlier try succeeded and its answer was lost.
            Err(error) if error.code() == Some("InvalidParameterException") => {
                Ok(Some(self.read().await?.version) == version)
            }
            Err(error) => Err(KeyringAccessError::Unwritten(explain(&error))),
        }
    }
}

/// The keyring, and the moment at which the request for it was sent.
type RememberedKeyring = (Arc<Keyring>, Moment);

/// Remembers the keyring, and reads it again when it is too old. Clones share what was read.
#[derive(Clone)]
pub struct KeyringCache {
    secret: KeyringSecret,
    clock: Arc<dyn Clock>,
    read: Arc<Mutex<Option<RememberedKeyring>>>,
}

impl KeyringCache {
    /// Makes a cache for the keyring that Secrets Manager holds under this name or ARN.
    pub fn new(client: Client, name: String, clock: Arc<dyn Clock>) -> Self {
        Self { secret: KeyringSecret::new(client, name), clock, read: Arc::default() }
    }

    /// Makes a cache for the keyring that the environment names. Preflight checks the keyring by reading it.
    pub fn from_service(service: &Service<'_>) -> Result<Self, Missing> {
        let [name] = service.variables([KEYRING_VARIABLE])?;
        let client = super::client(service.environment(), Patience::Request);
        let keyring = Self::new(client, name.clone(), Arc::clone(&service.clock));
        let read = keyring.clone();
        service.check(ResourceKind::Secret, &name, move || {
            let read = read.clone();
            async move { read.warm_up().await }.boxed()
        });
        Ok(keyring)
    }

    /// Opens an endpoint's secrets. If one was sealed under a key that is newer than the remembered keyring, the
    /// keyring is read again.
    pub async fn open(
        &self,
        endpoint: EndpointId,
        sealed: &Secrets<String>,
    ) -> Result<Secrets<EndpointSecret>, KeyringAccessError> {
        let open = |keyring: &Keyring| sealed.try_map(|sealed| keyring.open(endpoint, sealed));
        match open(self.keyring(MAX_AGE).await?.as_ref()) {
            Err(SealError::UnknownKey) => Ok(open(self.keyring(MAX_AGE_AFTER_MISS).await?.as_ref())?),
            opened => Ok(opened?),
        }
    }

    /// Seals a secret for an endpoint under the current key of a keyring that was read less than two seconds ago.
    pub async fn seal(&self, endpoint: EndpointId, secret: &EndpointSecret) -> Result<String, KeyringAccessError> {
        Ok(self.keyring(MAX_AGE_AFTER_MISS).await?.seal(endpoint, secret)?)
    }

    /// Reads the keyring before it is needed.
    pub async fn warm_up(&self) -> Result<(), Problem> {
        Ok(self.keyring(MAX_AGE).await.map(drop)?)
    }

    /// Returns the secret that holds the keyring, for code that changes it.
    pub const fn secret(&self) -> &KeyringSecret {
        &self.secret
    }

    /// Returns the keyring as read less than `age` ago.
    async fn keyring(&self, age: Duration) -> Result<Arc<Keyring>, KeyringAccessError> {
        // The lock is held during the read, so that other callers wait for its result instead of sending reads of
        // their own.
        let mut read = self.read.lock().await;
        if let Some((keyring, at)) = read.as_ref()
            && at.is_within(age, self.clock.as_ref())
        {
            return Ok(Arc::clone(keyring));
        }
        let at = Moment::now(self.clock.as_ref());
        let keyring = Arc::new(self.secret.read().await?.keyring);
        *read = Some((Arc::clone(&keyring), at));
        Ok(keyring)
    }
}
