//! A user's endpoints.

use std::collections::BTreeSet;

use super::Owner;
use crate::webhooks::{EndpointHealth, EndpointUpdate, NewEndpoint, Removal, WebhookAdminError};
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId};
use webhooks::endpoint::{Endpoints, WebhookEndpoint};
use webhooks::secrets::EndpointSecret;

impl Owner<'_> {
    /// Adds an endpoint. This is the only time that its secret is returned.
    pub async fn add_endpoint(
        &self,
        url: String,
        events: BTreeSet<EventKind>,
    ) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        self.webhooks.add(NewEndpoint { user_id: self.user, url, events }).await
    }

    /// Returns the endpoints, oldest first, and those that cannot be read.
    pub async fn list_endpoints(&self) -> Result<Endpoints, WebhookAdminError> {
        self.webhooks.list(self.user).await
    }

    /// Returns an endpoint and its state.
    pub async fn show_endpoint(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointHealth), WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.endpoint(id).await
    }

    pub async fn update_endpoint(
        &self,
        id: EndpointId,
        update: EndpointUpdate,
    ) -> Result<WebhookEndpoint, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.update(id, update).await
    }

    pub async fn enable_endpoint(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.enable(id).await
    }

    pub async fn disable_endpoint(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.disable(id).await
    }

    /// Removes an endpoint and ends its deliveries, as far as there is time. The rest ends by itself.
    pub async fn remove_endpoint(&self, id: EndpointId) -> Result<Removal, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.remove(id).await
    }

    /// Adds the next secret. This is the only time that it is returned.
    pub async fn rotate_secret(&self, id: EndpointId) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.rotate_secret(id).await
    }

    /// Makes the next secret the active one.
    pub async fn activate_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.activate_secret(id).await
    }

    /// Ends the old secret at once, and activates the next one before if that is not done.
    pub async fn expire_old_secret(&self, id: EndpointId) -> Result<WebhookEndpoint, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.expire_old_secret(id).await
    }

    /// Sends sample data of an event to an endpoint.
    pub async fn test_endpoint(
        &self,
        id: EndpointId,
        event: Option<EventKind>,
    ) -> Result<DeliveryId, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.test(id, event).await
    }

    /// Checks that the endpoint is the user's, or was until it was removed. This takes one read, whoever the owner is.
    pub(super) async fn check_endpoint(&self, id: EndpointId) -> Result<(), WebhookAdminError> {
        let owner = self.webhooks.store.owner_of(id).await?;
        if owner == Some(self.user) { Ok(()) } else { Err(WebhookAdminError::UnknownEndpoint(id)) }
    }
}
