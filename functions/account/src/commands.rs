//! Runs a command, and makes the document that it is answered with. What is shown of one key, endpoint or delivery
//! stands in `admin`; the lists that an owner is shown stand here.

use std::str::FromStr;
use std::time::Duration;

use admin::audit::Subject;
use admin::keys::document::{KeyWithText, KeyWithUsage, RevokedKey, RotatedKey};
use admin::owner::Owner;
use admin::webhooks::document::{
    DeliveryDocument, DeliveryRow, EndpointDocument, EndpointWithHealth, EndpointWithSecret, RemovedEndpoint,
    SentDeliveries, SentDelivery,
};
use admin::webhooks::{EndpointUpdate, Recoverable, Selection, WantedDeliveries, WebhookAdminError};
use api::auth::KeyRecord;
use common::ids::{DeliveryId, EndpointId, KeyId};
use common::rows::{Rows, Unreadable};
use serde::Serialize;
use serde_json::Value;
use webhooks::endpoint::Endpoints;
use webhooks::store::{DeliveryCursorError, MAX_PAGE_ROWS};

use crate::answer::{CommandError, Done};
use crate::request::{
    AddEndpoint, CommandName, CreateKey, ListDeliveries, NoParameters, OneDelivery, OneEndpoint, OneKey, RenameKey,
    ResendDeliveries, RotateKey, RotateSecret, TestEndpoint, UpdateEndpoint, read,
};

pub(crate) async fn run(owner: Owner<'_>, command: CommandName, parameters: Value) -> Result<Done, CommandError> {
    match command {
        CommandName::KeysCreate => create_key(owner, read(parameters)?).await,
        CommandName::KeysList => list_keys(owner, read(parameters)?).await,
        CommandName::KeysShow => show_key(owner, read(parameters)?).await,
        CommandName::KeysRename => rename_key(owner, read(parameters)?).await,
        CommandName::KeysRotate => rotate_key(owner, read(parameters)?).await,
        CommandName::KeysRevoke => revoke_key(owner, read(parameters)?).await,
        CommandName::EndpointsAdd => add_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsList => list_endpoints(owner, read(parameters)?).await,
        CommandName::EndpointsShow => show_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsUpdate => update_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsEnable => enable_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsDisable => disable_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsRemove => remove_endpoint(owner, read(parameters)?).await,
        CommandName::EndpointsRotateSecret => rotate_secret(owner, read(parameters)?).await,
        CommandName::EndpointsTest => test_endpoint(owner, read(parameters)?).await,
        CommandName::DeliveriesList => list_deliveries(owner, read(parameters)?).await,
        CommandName::DeliveriesShow => show_delivery(owner, read(parameters)?).await,
        CommandName::DeliveriesResend => resend_delivery(owner, read(parameters)?).await,
        CommandName::DeliveriesResendAll => resend_deliveries(owner, read(parameters)?).await,
    }
}

async fn create_key(owner: Owner<'_>, parameters: CreateKey) -> Result<Done, CommandError> {
    let CreateKey { name, scopes, expires_at } = parameters;
    let (text, record) = owner.create_key(name, scopes, expires_at).await?;
    Ok(Done::new(&KeyWithText::new(&text, &record))?.about(record.key_id))
}

async fn list_keys(owner: Owner<'_>, NoParameters {}: NoParameters) -> Result<Done, CommandError> {
    let Rows { readable, unreadable } = owner.list_keys().await?;
    Done::new(&KeyList { keys: readable, unreadable: ids(&unreadable) })
}

async fn show_key(owner: Owner<'_>, OneKey { key_id }: OneKey) -> Result<Done, CommandError> {
    let (record, usage) = owner.show_key(key_id).await?;
    Done::new(&KeyWithUsage { key: &record, usage: &usage })
}

async fn rename_key(owner: Owner<'_>, parameters: RenameKey) -> Result<Done, CommandError> {
    let RenameKey { key_id, name } = parameters;
    Done::new(&owner.rename_key(key_id, name).await?)
}

async fn rotate_key(owner: Owner<'_>, parameters: RotateKey) -> Result<Done, CommandError> {
    let RotateKey { key_id, overlap_seconds } = parameters;
    let rotated = owner.rotate_key(key_id, Duration::from_secs(overlap_seconds)).await?;
    let done = Done::new(&RotatedKey::new(key_id, &rotated))?;
    let subject = Subject { new_key_id: Some(rotated.record.key_id), ..key_id.into() };
    Ok(Done { in_doubt: rotated.doubt.is_some(), ..done.about(subject) })
}

async fn revoke_key(owner: Owner<'_>, OneKey { key_id }: OneKey) -> Result<Done, CommandError> {
    match owner.revoke_key(key_id).await? {
        Some(record) => Done::new(&record),
        None => Done::new(&RevokedKey::new(key_id)),
    }
}

async fn add_endpoint(owner: Owner<'_>, AddEndpoint { url, events }: AddEndpoint) -> Result<Done, CommandError> {
    let (endpoint, secret) = owner.add_endpoint(url, events).await?;
    Ok(Done::new(&EndpointWithSecret::new(&endpoint, &secret, owner.now()))?.about(endpoint.id))
}

async fn list_endpoints(owner: Owner<'_>, NoParameters {}: NoParameters) -> Result<Done, CommandError> {
    let (Endpoints { readable, unreadable }, states) = owner.list_endpoints().await?;
    let (shown, now) = (readable.iter().zip(states), owner.now());
    let endpoints =
        shown.map(|(endpoint, health)| EndpointWithHealth { endpoint: EndpointDocument::new(endpoint, now), health });
    let endpoints = endpoints.collect();
    Done::new(&EndpointList { endpoints, unreadable: unreadable.iter().map(|endpoint| endpoint.id).collect() })
}

async fn show_endpoint(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let (endpoint, health) = owner.show_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointWithHealth { endpoint: EndpointDocument::new(&endpoint, owner.now()), health: Some(health) })
}

async fn update_endpoint(owner: Owner<'_>, parameters: UpdateEndpoint) -> Result<Done, CommandError> {
    let UpdateEndpoint { endpoint_id, url, events } = parameters;
    let endpoint = owner.update_endpoint(endpoint_id, EndpointUpdate { url, events }).await?;
    Done::new(&EndpointDocument::new(&endpoint, owner.now()))
}

async fn enable_endpoint(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let endpoint = owner.enable_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointDocument::new(&endpoint, owner.now()))
}

async fn disable_endpoint(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let endpoint = owner.disable_endpoint(parameters.endpoint_id).await?;
    Done::new(&EndpointDocument::new(&endpoint, owner.now()))
}

async fn remove_endpoint(owner: Owner<'_>, parameters: OneEndpoint) -> Result<Done, CommandError> {
    let id = parameters.endpoint_id;
    let removal = owner.remove_endpoint(id).await?;
    Done::new(&RemovedEndpoint::new(id, &removal))
}

async fn rotate_secret(owner: Owner<'_>, parameters: RotateSecret) -> Result<Done, CommandError> {
    let RotateSecret { endpoint_id, activate, expire_old } = parameters;
    if activate || expire_old {
        let endpoint = if expire_old {
            owner.expire_old_secret(endpoint_id).await?
        } else {
            owner.activate_secret(endpoint_id).await?
        };
        return Done::new(&EndpointDocument::new(&endpoint, owner.now()));
    }
    let (endpoint, secret, _) = owner.rotate_secret(endpoint_id).await?;
    Done::new(&EndpointWithSecret::new(&endpoint, &secret, owner.now()))
}

async fn test_endpoint(owner: Owner<'_>, parameters: TestEndpoint) -> Result<Done, CommandError> {
    let TestEndpoint { endpoint_id, event } = parameters;
    sent(owner.test_endpoint(endpoint_id, event).await, Some(endpoint_id))
}

/// How long deliveries are sent again. The command's own limit leaves five seconds more.
const RESEND_FOR: Duration = Duration::from_secs(20);

/// Reads one page.
async fn list_deliveries(owner: Owner<'_>, parameters: ListDeliveries) -> Result<Done, CommandError> {
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

async fn show_delivery(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    let delivery = owner.show_delivery(parameters.delivery_id).await?;
    Done::new(&DeliveryDocument::new(&delivery, owner.now()))
}

async fn resend_delivery(owner: Owner<'_>, parameters: OneDelivery) -> Result<Done, CommandError> {
    sent(owner.resend_delivery(parameters.delivery_id).await, None)
}

/// Sends deliveries again. The command is repeated as long as some are left.
async fn resend_deliveries(owner: Owner<'_>, parameters: ResendDeliveries) -> Result<Done, CommandError> {
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
fn sent(outcome: Result<DeliveryId, WebhookAdminError>, endpoint_id: Option<EndpointId>) -> Result<Done, CommandError> {
    let delivery_id = match outcome {
        Ok(id) | Err(WebhookAdminError::Late(id, _)) => id,
        Err(error) => return Err(error.into()),
    };
    let subject = Subject { endpoint_id, ..delivery_id.into() };
    Ok(Done::new(&SentDelivery { delivery_id })?.about(subject))
}

/// A user's keys, and the ids of those that cannot be read.
#[derive(Serialize)]
struct KeyList {
    keys: Vec<KeyRecord>,
    unreadable: Vec<KeyId>,
}

#[derive(Serialize)]
struct EndpointList<'a> {
    endpoints: Vec<EndpointWithHealth<'a>>,
    unreadable: Vec<EndpointId>,
}

#[derive(Serialize)]
struct DeliveryList {
    deliveries: Vec<DeliveryRow>,
    unreadable: Vec<DeliveryId>,
    /// Where the next page begins, or `null` if this is the last one.
    cursor: Option<String>,
}

/// What became of deliveries that are to be sent again.
#[derive(Serialize)]
struct SentList {
    #[serde(flatten)]
    sent: SentDeliveries,
    unreadable: Vec<DeliveryId>,
}

fn ids<T: FromStr>(unreadable: &[Unreadable]) -> Vec<T> {
    unreadable.iter().filter_map(Unreadable::last_id).collect()
}
