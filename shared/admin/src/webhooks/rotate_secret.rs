//! Rotates an endpoint's secret (specification 6.13.4 to 6.13.6).

use super::register::fresh_secret;
use super::{WebhookAdmin, WebhookAdminError};
use common::ids::EndpointId;
use common::rotation::Secrets;
use webhooks::endpoint::WebhookEndpoint;
use webhooks::secrets::EndpointSecret;

impl WebhookAdmin {
    /// Adds the next secret. This is the only time that it is returned. From now on `webhook-signature` has a
    /// signature under it as well.
    pub async fn rotate_secret(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let secret = fresh_secret()?;
        let sealed = self.keyring.seal(id, &secret).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.add_next(sealed, self.clock.now())?;
        Ok((self.replace_secrets(endpoint, &secrets).await?, secret))
    }

    /// Makes the next secret sign `X-Service-Signature` at once, instead of 24 h after it was added.
    pub async fn activate_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.activate(self.clock.now())?;
        self.replace_secrets(endpoint, &secrets).await
    }

    /// Ends the old secret at once, instead of 24 h after the activation. Also activates the next one, if it is not active
    /// yet. From now on only the newest secret signs.
    pub async fn expire_old_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.expire_old(self.clock.now())?;
        self.replace_secrets(endpoint, &secrets).await
    }

    /// Replaces the secrets of an endpoint, if they are still those that were read.
    async fn replace_secrets(
        &self,
        endpoint: WebhookEndpoint,
        secrets: &Secrets<String>,
    ) -> Result<WebhookEndpoint, WebhookAdminError> {
        let put = self.store.put_secrets(endpoint.account_id, endpoint.id, secrets, endpoint.secret_version);
        if put.await? { Ok(endpoint) } else { Err(WebhookAdminError::Changed) }
    }
}
