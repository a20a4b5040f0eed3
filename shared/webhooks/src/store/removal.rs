//! Ends the deliveries of an endpoint that was removed.

use super::WebhookStore;
use crate::delivery::end_for_removed_endpoint;
use platform::rows::Unreadable;
use platform::store::StoreError;
use types::ids::EndpointId;
use types::timestamp::Timestamp;

/// What became of the deliveries of a removed endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// How many deliveries were ended.
    pub ended: u64,
    /// Deliveries that cannot be read, and were left as they are.
    pub unreadable: Vec<Unreadable>,
}

impl WebhookStore {
    /// Ends all deliveries of an endpoint, except those of which an attempt is being made. Such a delivery ends with
    /// that attempt or, if there is a retry, when the retry's message is received.
    pub async fn end_deliveries(&self, id: EndpointId, now: Timestamp) -> Result<Removal, StoreError> {
        let (mut removal, mut from) = (Removal::default(), None);
        loop {
            let page = self.deliveries_of(id, from).await?;
            for delivery in &page.deliveries {
                if let Some(step) = end_for_removed_endpoint(&delivery.progress, now) {
                    removal.ended += u64::from(self.settle(delivery.id, &step).await?);
                }
            }
            removal.unreadable.extend(page.unreadable);
            from = page.next;
            if from.is_none() {
                return Ok(removal);
            }
        }
    }
}
