//! Ends the deliveries of an endpoint that was removed.

use super::WebhookStore;
use crate::delivery::{Status, end_for_removed_endpoint};
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
    /// Whether there are more, because there was no time for all, or because attempts of some are under way.
    pub is_unfinished: bool,
}

impl WebhookStore {
    /// Ends the deliveries of an endpoint for as long as there is time, except those of which an attempt is being made.
    /// Such a delivery ends with that attempt or, if there is a retry, with that. One that has ended is no longer found,
    /// so whoever comes later goes on with the rest.
    pub async fn end_deliveries(
        &self,
        id: EndpointId,
        now: Timestamp,
        has_time: impl Fn() -> bool,
    ) -> Result<Removal, StoreError> {
        let mut removal = Removal::default();
        for status in [Status::Pending, Status::Held] {
            let mut from = None;
            loop {
                let page = self.deliveries_with(id, status, None, from).await?;
                for delivery in &page.deliveries {
                    if !has_time() {
                        removal.is_unfinished = true;
                        return Ok(removal);
                    }
                    if let Some(step) = end_for_removed_endpoint(&delivery.progress, now) {
                        let is_ended = self.settle(delivery.id, id, &step).await?;
                        removal.ended += u64::from(is_ended);
                        removal.is_unfinished |= !is_ended;
                    }
                }
                removal.unreadable.extend(page.unreadable);
                from = page.next;
                if from.is_none() {
                    break;
                }
            }
        }
        Ok(removal)
    }
}
