//! Rotating an endpoint's secret.

use super::register::fresh_secret;
use super::{WebhookAdmin, WebhookAdminError};
use secrets::EndpointSecret;
use types::ids::EndpointId;
use webhooks::endpoint::Endpoint;

impl WebhookAdmin {
    /// Adds the next secret, and returns it this once. Deliveries carry a signature under it from now on,
    /// beside those that they carried before.
    pub async fn rotate_secret(&self, id: EndpointId) -> Result<(Endpoint, EndpointSecret), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let secret = fresh_secret()?;
        let sealed = self.keyring.seal(id, &secret).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.add_next(sealed, self.clock.now())?;
        let put = self.store.put_secrets(endpoint.account_id, id, &secrets, endpoint.secret_version).await?;
        if put { Ok((endpoint, secret)) } else { Err(WebhookAdminError::Changed) }
    }

    /// Makes the next secret the one that signs `X-Service-Signature`, without waiting for 24 h.
    pub async fn activate_secret(&self, id: EndpointId) -> Result<Endpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.activate(self.clock.now())?;
        let put = self.store.put_secrets(endpoint.account_id, id, &secrets, endpoint.secret_version).await?;
        if put { Ok(endpoint) } else { Err(WebhookAdminError::Changed) }
    }
}
