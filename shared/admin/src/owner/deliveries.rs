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
        let delivery = self.webhooks.delivery(id).await?;
        if delivery.account_id == self.user { Ok(delivery) } else { Err(WebhookAdminError::UnknownDelivery(id)) }
    }

    /// Begins a new round of attempts.
    pub async fn resend_delivery(&self, id: DeliveryId) -> Result<DeliveryId, WebhookAdminError> {
        self.show_delivery(id).await?;
        self.webhooks.resend(id).await
    }
}
