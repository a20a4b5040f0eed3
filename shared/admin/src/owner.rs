//! The keys, endpoints and deliveries of one user: what owners do in their account's settings. Nothing of another user
//! can be reached.
//!
//! Each command that names a key, an endpoint or a delivery first reads to whom it belongs. If it belongs to somebody
//! else, the answer is the same as if it did not exist, after the same calls. An owner never changes, so nothing can
//! happen between this check and the command.

use std::collections::BTreeSet;
use std::time::Duration;

use api::auth::{KeyRecord, KeyText, Usage};
use common::event::EventKind;
use common::ids::{DeliveryId, EndpointId, KeyId, UserId};
use common::rows::Rows;
use common::scope::{Scopes, Tier};
use common::timestamp::Timestamp;
use webhooks::delivery::Delivery;
use webhooks::endpoint::{Endpoints, WebhookEndpoint};
use webhooks::secrets::EndpointSecret;
use webhooks::store::{DeliveryCursor, DeliveryList};

use crate::keys::{AdminError, KeyAdmin, KeyUpdate, NewKey, Rotated};
use crate::webhooks::{
    EndpointHealth, EndpointUpdate, NewEndpoint, Recovery, Removal, ResentBy, Selection, WantedDeliveries,
    WebhookAdmin, WebhookAdminError,
};

/// What belongs to one user.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    user: UserId,
    keys: &'a KeyAdmin,
    webhooks: &'a WebhookAdmin,
}

impl<'a> Owner<'a> {
    pub const fn new(user: UserId, keys: &'a KeyAdmin, webhooks: &'a WebhookAdmin) -> Self {
        Self { user, keys, webhooks }
    }

    /// Returns the time at which something is shown.
    pub fn now(&self) -> Timestamp {
        self.webhooks.clock.now()
    }
}

impl Owner<'_> {
    /// Creates a key of the free tier. Other tiers and limits are for operators to give.
    pub async fn create_key(
        &self,
        name: Option<String>,
        scopes: Scopes,
        expires_at: Option<Timestamp>,
    ) -> Result<(KeyText, KeyRecord), AdminError> {
        let (user_id, tier) = (self.user, Tier::Free);
        self.keys.create(NewKey { user_id, name, tier, limit_override: None, scopes, expires_at }).await
    }

    /// Returns the keys, oldest first, and those that cannot be read.
    pub async fn list_keys(&self) -> Result<Rows<KeyRecord>, AdminError> {
        self.keys.list(self.user).await
    }

    /// Returns a key, and how it was used.
    pub async fn show_key(&self, id: KeyId) -> Result<(KeyRecord, Usage), AdminError> {
        self.check_key(id).await?;
        self.keys.show(id).await
    }

    pub async fn rename_key(&self, id: KeyId, name: String) -> Result<KeyRecord, AdminError> {
        self.check_key(id).await?;
        self.keys.update(id, KeyUpdate { name: Some(name), ..KeyUpdate::default() }).await
    }

    /// Replaces a key by a new one. The old one is accepted for as long as `overlap` says.
    pub async fn rotate_key(&self, id: KeyId, overlap: Duration) -> Result<Rotated, AdminError> {
        self.check_key(id).await?;
        self.keys.rotate(id, overlap).await
    }

    /// Revokes a key. Returns it, or `None` if its row cannot be read.
    pub async fn revoke_key(&self, id: KeyId) -> Result<Option<KeyRecord>, AdminError> {
        self.check_key(id).await?;
        self.keys.revoke(id).await
    }

    async fn check_key(&self, id: KeyId) -> Result<(), AdminError> {
        if self.keys.is_owned_by(id, self.user).await? { Ok(()) } else { Err(AdminError::Unknown(id)) }
    }
}

impl Owner<'_> {
    /// Adds an endpoint. This is the only time that its secret is returned.
    pub async fn add_endpoint(
        &self,
        url: String,
        events: BTreeSet<EventKind>,
    ) -> Result<(WebhookEndpoint, EndpointSecret), WebhookAdminError> {
        self.webhooks.add(NewEndpoint { user_id: self.user, url, events }).await
    }

    /// Returns the endpoints, oldest first, and those that cannot be read. The states are those of the readable ones.
    pub async fn list_endpoints(&self) -> Result<(Endpoints, Vec<Option<EndpointHealth>>), WebhookAdminError> {
        let endpoints = self.webhooks.list(self.user).await?;
        let states = self.webhooks.health_of(&endpoints.readable).await;
        Ok((endpoints, states))
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
    pub async fn rotate_secret(
        &self,
        id: EndpointId,
    ) -> Result<(WebhookEndpoint, EndpointSecret, bool), WebhookAdminError> {
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
    async fn check_endpoint(&self, id: EndpointId) -> Result<(), WebhookAdminError> {
        let owner = self.webhooks.store.owner_of(id).await?;
        if owner == Some(self.user) { Ok(()) } else { Err(WebhookAdminError::UnknownEndpoint(id)) }
    }
}

impl Owner<'_> {
    /// Returns a page of an endpoint's deliveries, newest first, and those that cannot be read. The page has at most
    /// `limit` deliveries. The endpoint may have been removed.
    pub async fn list_deliveries(
        &self,
        id: EndpointId,
        wanted: &WantedDeliveries,
        from: Option<DeliveryCursor>,
        limit: usize,
    ) -> Result<DeliveryList, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.list_deliveries(id, wanted, from, limit).await
    }

    /// Returns a delivery with its attempts.
    pub async fn show_delivery(&self, id: DeliveryId) -> Result<Delivery, WebhookAdminError> {
        self.check_delivery(id).await?;
        self.webhooks.delivery(id).await
    }

    /// Begins a new round of attempts.
    pub async fn resend_delivery(&self, id: DeliveryId) -> Result<DeliveryId, WebhookAdminError> {
        self.check_delivery(id).await?;
        self.webhooks.resend_by(id, ResentBy::Owner).await
    }

    /// Begins a new round of each of an endpoint's deliveries that are selected, for as long as `limit` says.
    pub async fn resend_deliveries(
        &self,
        id: EndpointId,
        selection: &Selection,
        limit: Duration,
    ) -> Result<Recovery, WebhookAdminError> {
        self.check_endpoint(id).await?;
        self.webhooks.recover_for(id, selection, limit).await
    }

    /// Checks that the delivery is the user's. That of another user does not exist, even if its row cannot be read.
    async fn check_delivery(&self, id: DeliveryId) -> Result<(), WebhookAdminError> {
        let owner = self.webhooks.store.account_of(id).await?;
        if owner == Some(self.user) { Ok(()) } else { Err(WebhookAdminError::UnknownDelivery(id)) }
    }
}
