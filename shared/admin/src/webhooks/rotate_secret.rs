//! Rotates an endpoint's secret (specification 6.13.4 and 6.13.5).

use super::register::fresh_secret;
use super::{WebhookAdmin, WebhookAdminError};
use secrets::EndpointSecret;
use types::ids::EndpointId;
use webhooks::endpoint::WebhookEndpoint;

impl WebhookAdmin {
    /// Adds the next secret. This is the only time that it is returned. From now on `webhook-signature` has a
    /// signature under it as well.
    pub async fn rotate_secret(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let secret = fresh_secret()?;
        let sealed = self.keyring.seal(id, &secret).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.add_next(sealed, self.clock.now())?;
        let put = self.store.put_secrets(endpoint.account_id, id, &secrets, endpoint.secret_version).await?;
        if put { Ok((endpoint, secret)) } else { Err(WebhookAdminError::Changed) }
    }

    /// Makes the next secret sign `X-Service-Signature` at once, instead of 24 h after it was added.
    pub async fn activate_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        let mut secrets = endpoint.secrets.clone();
        secrets.activate(self.clock.now())?;
        let put = self.store.put_secrets(endpoint.account_id, id, &secrets, endpoint.secret_version).await?;
        if put { Ok(endpoint) } else { Err(WebhookAdminError::Changed) }
    }
}
