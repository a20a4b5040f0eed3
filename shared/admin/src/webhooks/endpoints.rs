//! Lists endpoints, switches them on and off, and removes them.

use std::time::Duration;

use super::{WebhookAdmin, WebhookAdminError};
use common::ids::{EndpointId, UserId};
use tokio::time::Instant;
use webhooks::endpoint::{Endpoints, WebhookEndpoint};
use webhooks::store::Removal;

/// How long a removal ends deliveries by itself.
const REMOVE_FOR: Duration = Duration::from_secs(10);

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

    /// Removes an endpoint and ends its deliveries (specification 6.11.5), as far as there is time. The drain of the
    /// account ends the rest. The endpoint itself need not be readable.
    pub async fn remove(&self, id: EndpointId) -> Result<Removal, WebhookAdminError> {
        let owner = self.store.owner_of(id).await?.ok_or(WebhookAdminError::UnknownEndpoint(id))?;
        let now = self.clock.now();
        self.store.call_drain_by(owner, now, now).await?;
        self.store.remove_endpoint(owner, id, now).await?;
        let begun = Instant::now();
        let removal = self.store.end_deliveries(id, now, || begun.elapsed() < REMOVE_FOR).await?;
        self.drains.call(owner, now).await?;
        Ok(removal)
    }
}
