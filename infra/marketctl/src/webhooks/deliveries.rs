//! `webhooks deliveries`: lists the deliveries of an endpoint or of several, once or again and again.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use admin::webhooks::document::{DeliveryOfUser, DeliveryRow};
use admin::webhooks::{WantedDeliveries, WebhookAdmin};
use common::ids::{DeliveryId, EndpointId};
use common::rows::Rows;
use futures_util::{StreamExt, TryStreamExt, stream};
use terminal::Output;
use tokio::time::sleep;
use uuid::Uuid;
use webhooks::delivery::{Delivery, Status};
use webhooks::delivery_id;

use super::show;
use crate::cli::ListDeliveries;
use crate::failure::{CommandFailure, none_left_out};
use crate::progress::Progress;

/// How many deliveries are read at a time.
const PAGE: usize = 1_000;
/// How many people see at a time.
const SHOWN: usize = 100;
/// How often a list that goes on is read.
const PAUSE: Duration = Duration::from_secs(2);

/// How many endpoints' deliveries are read at the same time.
const ENDPOINTS_AT_A_TIME: usize = 16;

/// The deliveries of a list, and whether there are more.
#[derive(Default)]
struct Listed {
    rows: Rows<DeliveryOfUser<DeliveryRow>>,
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
        let listed: HashSet<DeliveryId> = rows.iter().map(|row| row.delivery_id).collect();
        rows.reverse();
        rows.retain(|DeliveryOfUser { delivery, .. }| {
            let state = (delivery.status, delivery.attempts);
            seen.insert(delivery.id, state) != Some(state)
        });
        for row in &rows {
            output.print(row, |row| show::delivery_line(list, &row.delivery))?;
        }
        seen.retain(|id, _| listed.contains(id));
        sleep(PAUSE).await;
    }
}

/// Reads the deliveries of the endpoints that the command names, newest first: `most`, if it does not say how many.
async fn read(admin: &WebhookAdmin, list: &ListDeliveries, most: usize) -> Result<Listed, CommandFailure> {
    let limit = list.limit.map_or(most, |limit| limit as usize);
    if let Some(id) = list.id {
        return read_endpoint(admin, list, id, limit).await;
    }
    let endpoints = if let Some(user) = list.user {
        admin.list(user).await?
    } else {
        let progress = Progress::start();
        admin.list_all(|found| progress.show_rows(found as u64, None, "webhook endpoints")).await?
    };
    let parts = endpoints.readable.iter().map(|endpoint| read_endpoint(admin, list, endpoint.id, limit));
    let mut parts = stream::iter(parts).buffer_unordered(ENDPOINTS_AT_A_TIME);
    let mut all = Listed::default();
    all.rows.unreadable.extend(endpoints.unreadable.into_iter().map(|endpoint| endpoint.unreadable));
    while let Some(Listed { rows, is_cut }) = parts.try_next().await? {
        all.rows.readable.extend(rows.readable);
        all.rows.unreadable.extend(rows.unreadable);
        all.rows.readable.sort_by_key(|row| Reverse((row.delivery.created_at, row.delivery_id)));
        all.is_cut |= is_cut || all.rows.readable.len() > limit;
        all.rows.readable.truncate(limit);
    }
    Ok(all)
}

/// Reads an endpoint's deliveries, newest first, page by page until there are `limit`. Of those that cannot be read, all
/// that were met on the way are returned.
async fn read_endpoint(
    admin: &WebhookAdmin,
    list: &ListDeliveries,
    id: EndpointId,
    limit: usize,
) -> Result<Listed, CommandFailure> {
    let ListDeliveries { status, event, since, until, about, .. } = *list;
    let wanted = WantedDeliveries { status, event, since, until };
    let (mut rows, mut from) = (Rows::default(), None);
    loop {
        // Of those about one thing there may be few in each page.
        let size = if about.is_some() { PAGE } else { (limit - rows.readable.len()).min(PAGE) };
        let page = admin.deliveries(id, &wanted, from, size).await?;
        let (now, room) = (admin.clock.now(), limit - rows.readable.len());
        let found = page.deliveries.iter().filter(|delivery| about.is_none_or(|thing| is_about(delivery, id, thing)));
        let mut found = found.map(|delivery| DeliveryOfUser::new(delivery, DeliveryRow::new(delivery, now)));
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
