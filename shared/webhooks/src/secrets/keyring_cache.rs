//! Remembers the keyring in a running function, so that not every delivery reads it.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_secretsmanager::Client;
use tokio::sync::Mutex;

use super::access_error::KeyringAccessError;
use super::keyring::Keyring;
use super::sealing::SealError;
use super::secret::EndpointSecret;
use crate::secrets::KeyringSecret;
use common::aws::{Missing, Patience};
use common::clock::{Clock, Moment};
use common::ids::EndpointId;
use common::preflight::{Problem, ResourceKind};
use common::resources::KEYRING_VARIABLE;
use common::rotation::Secrets;
use common::runtime::Service;
use futures_util::FutureExt;

/// How old a remembered keyring may be before it is read again.
const MAX_AGE: Duration = Duration::from_mins(5);
/// The same limit if a key is missing from it, or if a secret is to be sealed. It keeps a key that is lost for good
/// from causing a read for every delivery.
const MAX_AGE_AFTER_MISS: Duration = Duration::from_secs(2);

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
