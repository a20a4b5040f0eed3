//! Writes an endpoint as an attribute of its account's row, and reads it back.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

use super::table;
use super::table::{
    CREATED_AT, DISABLED_AT, DISABLED_BY, EPOCH, EVENTS, FULL_SINCE, FULL_TOLD_AT, IS_OVER, NOTICE_ID, NUMBER, PK,
    PROMPT, REASON, SECRET_VERSION, SECRETS, STATUS, URL, WARNED_AT, WARNING,
};
use crate::endpoint::{DisabledReason, Endpoints, Notice, Switch, UnreadableEndpoint, Warning, WebhookEndpoint};
use platform::rows::Unreadable;
use platform::store::{Attributes, Row, StoreError, n, s};
use types::event::EventKind;
use types::ids::EndpointId;
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
    value.extend(endpoint.is_prompt.then(|| (PROMPT.to_owned(), AttributeValue::Bool(true))));
    for (name, at) in [(FULL_SINCE, endpoint.full_since), (FULL_TOLD_AT, endpoint.full_told_at)] {
        value.extend(at.map(|at| (name.to_owned(), n(at.millis()))));
    }
    value.extend(endpoint.warning.map(|warning| (WARNING.to_owned(), warning_value(warning))));
    Ok(AttributeValue::M(value))
}

pub(super) fn warning_value(warning: Warning) -> AttributeValue {
    let mut value =
        HashMap::from([(EPOCH.to_owned(), n(warning.epoch)), (WARNED_AT.to_owned(), n(warning.at.millis()))]);
    value.extend((warning.number > 0).then(|| (NUMBER.to_owned(), n(warning.number))));
    value.extend(warning.is_over.then(|| (IS_OVER.to_owned(), AttributeValue::Bool(true))));
    AttributeValue::M(value)
}

/// Returns the endpoints in an account's row. One that cannot be read hides none of the others.
pub(super) fn endpoints(row: &Row) -> Endpoints {
    let found = row.iter().filter_map(|(name, value)| Some((table::endpoint_of_attribute(name)?, value)));
    let read = found.map(|(id, value)| endpoint(row, id, value).map_err(|error| unreadable(row, id, value, error)));
    let mut endpoints: Endpoints = read.collect();
    endpoints.readable.sort_by_key(|endpoint| (endpoint.created_at, endpoint.id));
    endpoints.unreadable.sort_by_key(|endpoint| endpoint.id);
    endpoints
}

fn endpoint(account: &Row, id: EndpointId, value: &AttributeValue) -> Result<WebhookEndpoint, StoreError> {
    let account_id = Attributes(account).text(PK).and_then(table::account_of);
    table::ACCOUNT_FORMAT.of_row(account)?;
    let row = value.as_m().map_err(|_| StoreError::corrupt("not a map"))?;
    table::ENDPOINT_FORMAT.of_row(row)?;
    let read = Attributes(row);
    let secrets = read.text(SECRETS).and_then(|text| serde_json::from_str(text).ok());
    Ok(WebhookEndpoint {
        id,
        account_id: account_id.ok_or_else(|| StoreError::corrupt(PK))?,
        url: read.text(URL).ok_or_else(|| StoreError::corrupt(URL))?.to_owned(),
        events: words(row)?.iter().filter_map(|event| event.parse().ok()).collect(),
        switch: match read.text(STATUS) {
            Some(ENABLED) => Switch::On,
            Some(DISABLED) => Switch::Off(read.parsed(REASON)?),
            _ => return Err(StoreError::corrupt(STATUS)),
        },
        epoch: read.required_number(EPOCH)?,
        created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
        secrets: secrets.ok_or_else(|| StoreError::corrupt(SECRETS))?,
        secret_version: read.required_number(SECRET_VERSION)?,
        is_prompt: row.contains_key(PROMPT),
        warning: row.get(WARNING).and_then(warning),
        full_since: read.number(FULL_SINCE).map(Timestamp::from_millis),
        full_told_at: read.number(FULL_TOLD_AT).map(Timestamp::from_millis),
    })
}

/// Reads a warning. One that cannot be read counts as none, because deliveries do not depend on it.
fn warning(value: &AttributeValue) -> Option<Warning> {
    let row = value.as_m().ok()?;
    let read = Attributes(row);
    Some(Warning {
        epoch: read.number(EPOCH)?,
        number: read.number(NUMBER).unwrap_or_default(),
        at: Timestamp::from_millis(read.number(WARNED_AT)?),
        is_over: row.contains_key(IS_OVER),
    })
}

/// Returns the notice that an endpoint was switched off because a delivery failed, if it was and if its attribute tells
/// so. Releases before this one do not write what this needs.
pub(super) fn notice_of(value: &AttributeValue, endpoint: &WebhookEndpoint) -> Option<Notice> {
    if endpoint.switch != Switch::Off(DisabledReason::DeliveriesFailed) {
        return None;
    }
    let read = Attributes(value.as_m().ok()?);
    Some(Notice {
        notice_id: read.parsed(NOTICE_ID).ok()?,
        endpoint_id: endpoint.id,
        account_id: endpoint.account_id,
        url: endpoint.url.clone(),
        delivery_id: read.parsed(DISABLED_BY).ok()?,
        disabled_at: Timestamp::from_millis(read.number(DISABLED_AT)?),
    })
}

fn words(row: &Row) -> Result<&[String], StoreError> {
    let words = row.get(EVENTS).and_then(|value| value.as_ss().ok());
    words.map(Vec::as_slice).ok_or_else(|| StoreError::corrupt(EVENTS))
}

/// Describes an endpoint that cannot be read. Its events count as known only if every word is an event of this release.
fn unreadable(account: &Row, id: EndpointId, value: &AttributeValue, error: StoreError) -> UnreadableEndpoint {
    let events = value.as_m().ok().and_then(|row| words(row).ok());
    let events: Option<BTreeSet<EventKind>> =
        events.and_then(|words| words.iter().map(|word| word.parse().ok()).collect());
    let unreadable = Unreadable::new(account, error);
    let what = format!("{}.{}", table::endpoint_attribute(id), unreadable.what);
    UnreadableEndpoint { id, events, unreadable: Unreadable { what, ..unreadable } }
}
