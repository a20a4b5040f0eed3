//! Writes an endpoint as an attribute of its account's row, and reads it back.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::table;
use super::table::{CREATED_AT, EPOCH, EVENTS, REASON, SECRET_VERSION, SECRETS, SLOW_UNTIL, STATUS, URL};
use crate::endpoint::{Switch, WebhookEndpoint};
use platform::store::{Attributes, Row, StoreError, n, s};
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;

pub(super) const ENABLED: &str = "enabled";
pub(super) const DISABLED: &str = "disabled";

pub(super) fn to_value(endpoint: &WebhookEndpoint) -> Result<AttributeValue, StoreError> {
    let events = endpoint.events.iter().map(|event| event.as_str().to_owned()).collect();
    let (status, reason) = match endpoint.switch {
        Switch::On => (ENABLED, None),
        Switch::Off(reason) => (DISABLED, Some(s(reason.as_str()))),
    };
    let mut value = HashMap::from(
        [
            (URL, s(&endpoint.url)),
            (EVENTS, AttributeValue::Ss(events)),
            (STATUS, s(status)),
            (EPOCH, n(endpoint.epoch)),
            (CREATED_AT, n(endpoint.created_at.millis())),
            (SECRETS, s(serde_json::to_string(&endpoint.secrets)?)),
            (SECRET_VERSION, n(endpoint.secret_version)),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    value.extend(reason.map(|reason| (REASON.to_owned(), reason)));
    value.extend(endpoint.slow_until.map(|at| (SLOW_UNTIL.to_owned(), n(at.millis()))));
    Ok(AttributeValue::M(value))
}

/// Returns the endpoints in an account's row, oldest first.
pub(super) fn endpoints(account: UserId, row: &Row) -> Result<Vec<WebhookEndpoint>, StoreError> {
    let found = row.iter().filter_map(|(name, value)| Some((table::endpoint_of_attribute(name)?, value)));
    let mut endpoints = found.map(|(id, value)| endpoint(account, id, value)).collect::<Result<Vec<_>, _>>()?;
    endpoints.sort_by_key(|endpoint| (endpoint.created_at, endpoint.id));
    Ok(endpoints)
}

fn endpoint(account_id: UserId, id: EndpointId, value: &AttributeValue) -> Result<WebhookEndpoint, StoreError> {
    let corrupt = |name: &str| StoreError::corrupt(format!("{name} of endpoint {id}"));
    let row = value.as_m().map_err(|_| corrupt("attribute"))?;
    let read = Attributes(row);
    let events = row.get(EVENTS).and_then(|value| value.as_ss().ok()).ok_or_else(|| corrupt(EVENTS))?;
    let secrets = read.text(SECRETS).and_then(|text| serde_json::from_str(text).ok());
    Ok(WebhookEndpoint {
        id,
        account_id,
        url: read.text(URL).ok_or_else(|| corrupt(URL))?.to_owned(),
        events: events.iter().filter_map(|event| event.parse().ok()).collect(),
        switch: if read.text(STATUS) == Some(ENABLED) { Switch::On } else { Switch::Off(read.parsed(REASON)?) },
        epoch: read.required_number(EPOCH)?,
        created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
        secrets: secrets.ok_or_else(|| corrupt(SECRETS))?,
        secret_version: read.required_number(SECRET_VERSION)?,
        slow_until: read.number(SLOW_UNTIL).map(Timestamp::from_millis),
    })
}
