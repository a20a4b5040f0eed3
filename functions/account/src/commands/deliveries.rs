//! Commands about deliveries.

use std::time::Duration;

use admin::audit::Subject;
use admin::owner::Owner;
use admin::webhooks::document::{DeliveryDocument, DeliveryRow, SentDeliveries, SentDelivery};
use admin::webhooks::{Recoverable, Selection, WantedDeliveries, WebhookAdminError};
use common::ids::{DeliveryId, EndpointId};
use webhooks::store::{DeliveryCursorError, MAX_PAGE_ROWS};

use crate::answer::Done;
use crate::document::{DeliveryList, SentList, ids};
use crate::error::CommandError;
use crate::parameters::{ListDeliveries, OneDelivery, ResendDeliveries};

/// How long deliveries are sent again. The command's own limit leaves five seconds more.
const RESEND_FOR: Duration = Duration::from_secs(20);

/// Reads one page.
pub(super) async fn list(owner: Owner<'_>, parameters: ListDeliveries) -> Result<Done, CommandError> {
    let ListDeliveries { endpoint_id, status, event, since, until, cursor, limit } = parameters;
    let limit = usize::try_from(limit).ok().filter(|_| (1..=MAX_PAGE_ROWS).contains(&limit));
    let limit = limit.ok_or_else(|| CommandError::invalid("limit", format!("must be 1 to {MAX_PAGE_ROWS}")))?;
    let from = cursor.map(|text| text.parse()).transpose();
    let from = from.map_err(|error: DeliveryCursorError| CommandError::invalid("cursor", error.to_string()))?;
    let wanted = WantedDeliveries { status, event, since, until };
    let found = owner.list_deliveries(endpoint_id, &wanted, from, limit).await?;
    let now = owner.now();
    Done::new(&DeliveryList {
        deliveries: found.deliveries.iter().map(|delivery| DeliveryRow::new(delivery, now)).collect(),
        unreadable: ids(&found.unreadable),
        cursor: found.next.map(|cursor| cursor.to_string()),
    })
}

pub(super) async fn show(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    let delivery = owner.show_delivery(parameters.delivery_id).await?;
    Done::new(&DeliveryDocument::new(&delivery, owner.now()))
}

pub(super) async fn resend(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    sent(owner.resend_delivery(parameters.delivery_id).await, None)
}

/// Sends deliveries again. The command is repeated as long as some are left.
pub(super) async fn resend_all(owner: Owner<'_>, parameters: ResendDeliveries) -> Result<Done, CommandError> {
    let ResendDeliveries { endpoint_id, statuses, since, until } = parameters;
    let statuses = statuses.unwrap_or_else(|| Recoverable::ALL.into());
    if statuses.is_empty() {
        return Err(CommandError::invalid("statuses", "at least one is needed"));
    }
    let selection = Selection { statuses, since, until };
    let recovery = owner.resend_deliveries(endpoint_id, &selection, RESEND_FOR).await?;
    Done::new(&SentList { sent: SentDeliveries::new(&recovery), unreadable: ids(&recovery.found.unreadable) })
}

/// Answers with a delivery that is on its way. If the queue did not take it, it is stored all the same, and a sweep
/// sees to it within minutes.
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
