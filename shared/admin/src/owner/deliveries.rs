//! The deliveries to a user's endpoints.

use std::time::Duration;

use super::Owner;
use crate::webhooks::{Recovery, Selection, WantedDeliveries, WebhookAdminError};
use common::ids::{DeliveryId, EndpointId};
use webhooks::delivery::Delivery;
use webhooks::store::{DeliveryCursor, DeliveryList};

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
        self.webhooks.resend(id).await
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
