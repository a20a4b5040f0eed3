//! Rotates the keyring: it gets a new current key, and then every secret is sealed anew under it.
//!
//! Deliveries go on in the meantime. Older keys stay in the keyring, so the secrets that they sealed still open. A
//! running function remembers the keyring for up to five minutes, but reads it again if it meets the id of a key that it
//! does not know. It does that at most every two seconds. So a key is neither added nor removed while functions may use
//! the keyring from before the last rotation. If a rotation is cut short at any point, the next one completes it.

use std::time::Duration;

use tokio::time::Instant;

use super::{WebhookAdmin, WebhookAdminError};
use common::ids::EndpointId;
use common::rotation::Secrets;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::secrets::StoredKeyring;
use webhooks::secrets::{Keyring, SealError};

/// How often an endpoint is tried if somebody else keeps changing its secrets at the same moment.
const RESEAL_ATTEMPTS: usize = 5;
/// How often a wait looks at the clock.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How many endpoints have been sealed anew so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resealed {
    /// The number of endpoints with a secret that an older key had sealed.
    pub resealed: u64,
    /// The number of endpoints whose secrets were all sealed under the current key already.
    pub unchanged: u64,
    /// Endpoints that cannot be read, or have a secret that does not open. No delivery to them can be signed.
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
    /// Adds a new current key to the keyring, and returns its id. It seals secrets from now on. Existing ones are
    /// sealed anew by [`Self::reseal`]. First waits until the last rotation has settled. Meanwhile calls `report` with
    /// the time that is left, about every second.
    pub async fn rotate_keyring(&self, report: impl Fn(Duration)) -> Result<String, WebhookAdminError> {
        let seen = self.settled(report).await?;
        let next = seen.keyring.clone().rotate(self.clock.now()).map_err(|_| WebhookAdminError::NoRandomness)?;
        self.replace(&seen, &next).await?;
        Ok(next.current_id().to_owned())
    }

    /// Seals the secrets of all endpoints under the current key, except those that are sealed under it already. Calls
    /// `report` after each page with the numbers so far.
    pub async fn reseal(&self, report: impl Fn(&Resealed)) -> Result<Resealed, WebhookAdminError> {
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
            done.failed.extend(page.unreadable.iter().map(|endpoint| endpoint.id));
            report(&done);
            from = page.next;
            if from.is_none() {
                break;
            }
        }
        // A secret that does not open may have been sealed under a key that somebody has added in the meantime.
        if !done.failed.is_empty() && self.keyring.secret().read().await?.keyring != keyring {
            return Err(WebhookAdminError::Changed);
        }
        Ok(done)
    }

    /// Removes the older keys from the keyring and returns how many there were. First waits until the last rotation has
    /// settled, as [`Self::rotate_keyring`] does. By then every secret that was sealed under a formerly current key has been
    /// stored, and is sealed under the current key. If that fails for any of them, the older keys stay. Secrets Manager
    /// keeps the former keyring as the previous version.
    pub async fn remove_older_keys(&self, report: impl Fn(Duration)) -> Result<usize, WebhookAdminError> {
        let seen = self.settled(report).await?;
        if seen.keyring.older() == 0 {
            return Ok(0);
        }
        let done = self.reseal(|_| {}).await?;
        if !done.failed.is_empty() {
            return Err(WebhookAdminError::KeysNeeded(done.failed.len()));
        }
        self.replace(&seen, &seen.keyring.clone().without_older()).await?;
        Ok(seen.keyring.older())
    }

    /// Waits until no function can use the keyring from before the last rotation. Returns the keyring.
    async fn settled(&self, report: impl Fn(Duration)) -> Result<StoredKeyring, WebhookAdminError> {
        let mut until = None;
        loop {
            let seen = self.keyring.secret().read().await?;
            let left = seen.keyring.unsettled_for(self.clock.now());
            // The clock of whoever rotated may have been ahead by far.
            if left.is_zero() || Instant::now() >= *until.get_or_insert(Instant::now() + left) {
                return Ok(seen);
            }
            report(left);
            tokio::time::sleep(left.min(LOOK_EVERY)).await;
        }
    }

    async fn replace(&self, seen: &StoredKeyring, next: &Keyring) -> Result<(), WebhookAdminError> {
        let replaced = self.keyring.secret().replace(seen, next).await?;
        if replaced { Ok(()) } else { Err(WebhookAdminError::Changed) }
    }

    async fn reseal_endpoint(&self, keyring: &Keyring, seen: WebhookEndpoint) -> Result<Outcome, WebhookAdminError> {
        let mut endpoint = seen;
        for _ in 0..RESEAL_ATTEMPTS {
            let secrets = match renewed(keyring, &endpoint) {
                Ok(Some(secrets)) => secrets,
                Ok(None) => return Ok(Outcome::Unchanged),
                Err(_) => return Ok(Outcome::Failed),
            };
            let WebhookEndpoint { account_id, id, secret_version, .. } = endpoint;
            if self.store.put_secrets(account_id, id, &secrets, secret_version).await? {
                return Ok(Outcome::Resealed);
            }
            let Some(found) = self.store.endpoint(account_id, id).await? else { return Ok(Outcome::Gone) };
            endpoint = found;
        }
        Err(WebhookAdminError::Changed)
    }
}

/// Seals an endpoint's secrets under the current key. Returns `None` if all of them are sealed under it already.
fn renewed(keyring: &Keyring, endpoint: &WebhookEndpoint) -> Result<Option<Secrets<String>>, SealError> {
    let renew = |sealed: &String| Ok(keyring.reseal(endpoint.id, sealed)?.unwrap_or_else(|| sealed.clone()));
    let secrets = endpoint.secrets.try_map(renew)?;
    Ok((secrets != endpoint.secrets).then_some(secrets))
}
