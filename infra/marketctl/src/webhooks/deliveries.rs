//! `webhooks deliveries`: lists an endpoint's deliveries, once or again and again.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use admin::webhooks::document::DeliveryRow;
use admin::webhooks::{WantedDeliveries, WebhookAdmin};
use common::ids::{DeliveryId, EndpointId};
use common::rows::Rows;
use terminal::Output;
use tokio::time::sleep;
use uuid::Uuid;
use webhooks::delivery::{Delivery, Status};
use webhooks::delivery_id;

use super::show;
use crate::cli::ListDeliveries;
use crate::failure::{CommandFailure, none_left_out};

/// How many deliveries are read at a time.
const PAGE: usize = 1_000;
/// How many people see at a time.
const SHOWN: usize = 100;
/// How often a list that goes on is read.
const PAUSE: Duration = Duration::from_secs(2);

/// The deliveries of a list, and whether there are more.
struct Listed {
    rows: Rows<DeliveryRow>,
    is_cut: bool,
}

pub(super) async fn list(admin: &WebhookAdmin, list: &ListDeliveries, output: Output) -> Result<(), CommandFailure> {
    let most = if output == Output::Json { usize::MAX } else { SHOWN };
    let Listed { rows, is_cut } = read(admin, list, most).await?;
    output.print(&rows.readable, |rows| show::deliveries(list, rows, is_cut))?;
    none_left_out(&rows.unreadable)
}

/// Lists each delivery when it is new or has changed, oldest first, until the command is interrupted.
pub(super) async fn watch(admin: &WebhookAdmin, list: &ListDeliveries, output: Output) -> Result<(), CommandFailure> {
    let mut seen: HashMap<DeliveryId, (Status, usize)> = HashMap::new();
    loop {
        let mut rows = read(admin, list, SHOWN).await?.rows.readable;
        let listed: HashSet<DeliveryId> = rows.iter().map(|row| row.id).collect();
        rows.reverse();
        rows.retain(|row| seen.insert(row.id, (row.status, row.attempts)) != Some((row.status, row.attempts)));
        for row in &rows {
            output.print(row, show::delivery_line)?;
        }
        seen.retain(|id, _| listed.contains(id));
        sleep(PAUSE).await;
    }
}

/// Reads an endpoint's deliveries, newest first, page by page until there are enough: `most` if
/// the command does not say how many. Of those that cannot be read, all
/// that were met on the way are returned.
async fn read(admin: &WebhookAdmin, list: &ListDeliveries, most: usize) -> Result<Listed, CommandFailure> {
    let ListDeliveries { id, status, event, since, until, about, limit, .. } = *list;
    let wanted = WantedDeliveries { status, event, since, until };
    let (mut rows, mut from, limit) = (Rows::default(), None, limit.map_or(most, |limit| limit as usize));
    loop {
        // Of those about one thing there may be few in each page.
        let size = if about.is_some() { PAGE } else { (limit - rows.readable.len()).min(PAGE) };
        let page = admin.deliveries(id, &wanted, from, size).await?;
        let (now, room) = (admin.clock.now(), limit - rows.readable.len());
        let found = page.deliveries.iter().filter(|delivery| about.is_none_or(|thing| is_about(delivery, id, thing)));
        let mut found = found.map(|delivery| DeliveryRow::new(delivery, now));
        rows.readable.extend(found.by_ref().take(room));
        let is_more = found.next().is_some();
        rows.unreadable.extend(page.unreadable);
        from = page.next;
        if from.is_none() || rows.readable.len() >= limit {
            return Ok(Listed { rows, is_cut: is_more || from.is_some() });
        }
    }
}

/// Returns whether a delivery is that of an event of the marketplace, or names a thing in its body.
fn is_about(delivery: &Delivery, endpoint: EndpointId, thing: Uuid) -> bool {
    delivery.id == delivery_id(thing.into(), endpoint) || delivery.body.to_lowercase().contains(&thing.to_string())
}
