//! Rotating the keyring: a new current key, under which every secret is then sealed anew.
//!
//! Deliveries go on meanwhile: older keys stay in the keyring for what they have sealed, and a running
//! function, which remembers the keyring for up to five minutes, reads it again as soon as it meets the id
//! of a key that it does not know. A rotation that was cut short, wherever, is made good by the next one.

use std::time::Duration;

use super::{WebhookAdmin, WebhookAdminError};
use secrets::StoredKeyring;
use secrets::{Keyring, SealError};
use types::ids::EndpointId;
use types::rotation::Secrets;
use webhooks::endpoint::Endpoint;

/// So often an endpoint is looked at that others change at the same moment.
const ATTEMPTS: usize = 5;
/// Whoever seals a secret has read the keyring less than two seconds before. After this, what was sealed
/// under a key that was current before is stored.
const SETTLED: Duration = Duration::from_secs(10);

/// How far sealing anew has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// Endpoints whose secrets an older key had sealed.
    pub resealed: u64,
    /// Endpoints whose secrets the current key had sealed.
    pub unchanged: u64,
    /// Endpoints that have a secret which does not open. No delivery to them can be signed.
    pub failed: Vec<EndpointId>,
}

/// What became of an endpoint's secrets.
enum Outcome {
    Resealed,
    Unchanged,
    Failed,
    /// The endpoint was removed.
    Gone,
}

impl WebhookAdmin {
    /// Gives the keyring a new current key, and returns that key's id. Nothing is sealed under it yet but
    /// what is sealed from now on.
    pub async fn rotate_keyring(&self) -> Result<String, WebhookAdminError> {
        let seen = self.keyring.secret().read().await?;
        let next = seen.keyring.clone().rotate().map_err(|_| WebhookAdminError::NoRandomness)?;
        self.replace(&seen, &next).await?;
        Ok(next.current_id().to_owned())
    }

    /// Seals every endpoint's secrets under the current key unless they are, telling how far it has come.
    pub async fn reseal(&self, tell: impl Fn(&Resealed)) -> Result<Resealed, WebhookAdminError> {
        let keyring = self.keyring.secret().read().await?.keyring;
        let (mut done, mut from) = (Resealed::default(), None);
        loop {
            let page = self.store.all_endpoints(from).await?;
            for endpoint in page.endpoints {
                let id = endpoint.id;
                match self.reseal_endpoint(&keyring, endpoint).await? {
                    Outcome::Resealed => done.resealed += 1,
                    Outcome::Unchanged => done.unchanged += 1,
                    Outcome::Failed => done.failed.push(id),
                    Outcome::Gone => {}
                }
            }
            tell(&done);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        // What does not open may have been sealed under a key that somebody has added since.
        if !done.failed.is_empty() && self.keyring.secret().read().await?.keyring != keyring {
            return Err(WebhookAdminError::Changed);
        }
        Ok(done)
    }

    /// Takes the older keys out of the keyring, unless some secret is not sealed under the current one; says
    /// how many. Secrets Manager keeps the keyring from before as its previous version.
    pub async fn remove_older_keys(&self) -> Result<usize, WebhookAdminError> {
        let seen = self.keyring.secret().read().await?;
        if seen.keyring.older() == 0 {
            return Ok(0);
        }
        tokio::time::sleep(SETTLED).await;
        let done = self.reseal(|_| {}).await?;
        if !done.failed.is_empty() {
            return Err(WebhookAdminError::KeysNeeded(done.failed.len()));
        }
        self.replace(&seen, &seen.keyring.clone().without_older()).await?;
        Ok(seen.keyring.older())
    }

    async fn replace(&self, seen: &StoredKeyring, next: &Keyring) -> Result<(), WebhookAdminError> {
        let replaced = self.keyring.secret().replace(seen, next).await?;
        if replaced { Ok(()) } else { Err(WebhookAdminError::Changed) }
    }

    async fn reseal_endpoint(&self, keyring: &Keyring, seen: Endpoint) -> Result<Outcome, WebhookAdminError> {
        let mut endpoint = seen;
        for _ in 0..ATTEMPTS {
            let secrets = match renewed(keyring, &endpoint) {
                Ok(Some(secrets)) => secrets,
                Ok(None) => return Ok(Outcome::Unchanged),
                Err(_) => return Ok(Outcome::Failed),
            };
            let Endpoint { account_id, id, secret_version, .. } = endpoint;
            if self.store.put_secrets(account_id, id, &secrets, secret_version).await? {
                return Ok(Outcome::Resealed);
            }
            let endpoints = self.store.endpoints(account_id).await?;
            let Some(found) = endpoints.into_iter().find(|endpoint| endpoint.id == id) else {
                return Ok(Outcome::Gone);
            };
            endpoint = found;
        }
        Err(WebhookAdminError::Changed)
    }
}

/// The endpoint's secrets under the current key; `None` if they are.
fn renewed(keyring: &Keyring, endpoint: &Endpoint) -> Result<Option<Secrets<String>>, SealError> {
    let renew = |sealed: &String| Ok(keyring.reseal(endpoint.id, sealed)?.unwrap_or_else(|| sealed.clone()));
    let secrets = endpoint.secrets.try_map(renew)?;
    Ok((secrets != endpoint.secrets).then_some(secrets))
}
