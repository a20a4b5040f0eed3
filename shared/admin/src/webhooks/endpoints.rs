//! Lists endpoints, switches them on and off, and removes them.

use super::{WebhookAdmin, WebhookAdminError};
use platform::rows::Unreadable;
use types::ids::{EndpointId, UserId};
use webhooks::delivery::{Delivery, end_for_removed_endpoint};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};

/// What became of the deliveries of a removed endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// How many deliveries were ended.
    pub ended: u64,
    /// Deliveries that cannot be read, and were left as they are.
    pub unreadable: Vec<Unreadable>,
}

impl WebhookAdmin {
    /// Returns an account's endpoints, oldest first, and those that cannot be read.
    pub async fn list(&self, user: UserId) -> Result<Endpoints, WebhookAdminError> {
        Ok(self.store.endpoints(user).await?)
    }

    /// Switches an endpoint on. Events are sent from now on. Deliveries that are held stay held until somebody
    /// resends them, one by one.
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
        let (mut removal, mut from) = (Removal::default(), None);
        loop {
            let page = self.store.deliveries_of(id, from).await?;
            for delivery in &page.deliveries {
                removal.ended += u64::from(self.end(delivery).await?);
            }
            removal.unreadable.extend(page.unreadable);
            from = page.next;
            if from.is_none() {
                return Ok(removal);
            }
        }
    }

    /// Ends a delivery. Returns `false` if it has already ended, or if an attempt of it is being made. In the second
    /// case the delivery ends with that attempt or, if there is a retry, when the retry's message is received.
    async fn end(&self, delivery: &Delivery) -> Result<bool, WebhookAdminError> {
        let Some(step) = end_for_removed_endpoint(&delivery.progress, self.clock.now()) else { return Ok(false) };
        Ok(self.store.settle(delivery.id, &step).await?)
    }
}
