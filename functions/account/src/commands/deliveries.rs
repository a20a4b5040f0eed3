//! Commands about deliveries.

use admin::audit::Subject;
use admin::owner::Owner;
use admin::webhooks::WebhookAdminError;
use admin::webhooks::document::{DeliveryDocument, DeliveryRow, SentDelivery};
use types::ids::{DeliveryId, EndpointId};
use webhooks::store::{DeliveryCursor, DeliveryCursorError, DeliveryPage, MAX_PAGE_ROWS};

use crate::answer::Done;
use crate::document::{DeliveryList, ids};
use crate::error::CommandError;
use crate::parameters::{ListDeliveries, OneDelivery};

/// Reads one page. With a status, the page may have fewer deliveries than were read, or none.
pub(super) async fn list(owner: Owner<'_>, parameters: ListDeliveries) -> Result<Done, CommandError> {
    let ListDeliveries { endpoint_id, status, cursor, limit } = parameters;
    if !(1..=MAX_PAGE_ROWS).contains(&limit) {
        return Err(CommandError::invalid("limit", format!("must be 1 to {MAX_PAGE_ROWS}")));
    }
    let from = cursor.map(|text| text.parse()).transpose();
    let from = from.map_err(|error: DeliveryCursorError| CommandError::invalid("cursor", error.to_string()))?;
    let DeliveryPage { deliveries, unreadable, next } = owner.list_deliveries(endpoint_id, from, limit).await?;
    let rows = deliveries.iter().map(DeliveryRow::from);
    Done::new(&DeliveryList {
        deliveries: rows.filter(|row| status.is_none_or(|status| row.status == status)).collect(),
        unreadable: ids(&unreadable),
        cursor: next.as_ref().and_then(DeliveryCursor::from_start_key).map(|cursor| cursor.to_string()),
    })
}

pub(super) async fn show(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    let delivery = owner.show_delivery(parameters.delivery_id).await?;
    Done::new(&DeliveryDocument::from(&delivery))
}

pub(super) async fn resend(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    sent(owner.resend_delivery(parameters.delivery_id).await, None)
}

/// Answers with a delivery that is on its way. If the queue did not take it, it is stored all the same, and a sweep
/// sends it within minutes.
pub(super) fn sent(
    outcome: Result<DeliveryId, WebhookAdminError>,
    endpoint_id: Option<EndpointId>,
) -> Result<Done, CommandError> {
    let delivery_id = match outcome {
        Ok(id) | Err(WebhookAdminError::Late(id, _)) => id,
        Err(error) => return Err(error.into()),
    };
    let subject = Subject { endpoint_id, ..delivery_id.into() };
    Ok(Done::new(&SentDelivery { delivery_id })?.about(subject))
}
