//! Lists endpoints, switches them on and off, and removes them.

use super::{WebhookAdmin, WebhookAdminError};
use types::ids::{EndpointId, UserId};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};
use webhooks::store::Removal;

impl WebhookAdmin {
    /// Returns an account's endpoints, oldest first, and those that cannot be read.
    pub async fn list(&self, user: UserId) -> Result<Endpoints, WebhookAdminError> {
        Ok(self.store.endpoints(user).await?)
    }

    /// Switches an endpoint on. Events are sent from now on. Deliveries that are held stay held until somebody resends
    /// them: one with [`Self::resend`], or all with [`Self::recover`].
    pub async fn enable(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.store.enable(endpoint.account_id, id).await?;
        self.find(id).await
    }

    /// Switches an endpoint off. From now on its events are held.
    pub async fn disable(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        let endpoint = self.find(id).await?;
        self.store.disable(endpoint.account_id, id).await?;
        self.find(id).await
    }

    /// Removes an endpoint and ends its deliveries (specification 6.11.5). The endpoint itself need not be readable. If
    /// a removal was cut short, removing the endpoint again ends the deliveries that are left.
    pub async fn remove(&self, id: EndpointId) -> Result<Removal, WebhookAdminError> {
        let owner = self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        self.store.remove_endpoint(owner, id, self.clock.now()).await?;
        Ok(self.store.end_deliveries(id, self.clock.now()).await?)
    }
}
