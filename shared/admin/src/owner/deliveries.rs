//! The deliveries to a user's endpoints.

use super::Owner;
use crate::webhooks::WebhookAdminError;
use types::ids::{DeliveryId, EndpointId};
use webhooks::delivery::Delivery;
use webhooks::store::{DeliveryCursor, DeliveryPage};

impl Owner<'_> {
    /// Returns a page that reads at most `limit` deliveries of an endpoint, newest first: 1 to
    /// [`webhooks::store::MAX_PAGE_ROWS`]. It also has those that cannot be read. The endpoint may have been removed.
    pub async fn list_deliveries(
        &self,
        id: EndpointId,
        from: Option<DeliveryCursor>,
        limit: i32,
    ) -> Result<DeliveryPage, WebhookAdminError> {
        self.check_endpoint(id).await?;
        let from = from.map(|cursor| cursor.start_key(id));
        Ok(self.webhooks.store.deliveries_page(id, from, limit).await?)
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

    /// Checks that the delivery is the user's. That of another user does not exist, even if its row cannot be read.
    async fn check_delivery(&self, id: DeliveryId) -> Result<(), WebhookAdminError> {
        let owner = self.webhooks.store.account_of(id).await?;
        if owner == Some(self.user) { Ok(()) } else { Err(WebhookAdminError::UnknownDelivery(id)) }
    }
}
