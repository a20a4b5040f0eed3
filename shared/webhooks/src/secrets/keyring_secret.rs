//! Reads and replaces the keyring in Secrets Manager.

use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::ProvideErrorMetadata;

use super::access_error::KeyringAccessError;
use super::keyring::Keyring;
use common::preflight::Problem;
use common::store::explain;

const CURRENT: &str = "AWSCURRENT";
const PENDING: &str = "AWSPENDING";

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
