//! Endpoints: the writes that change one, and its attribute in its account's row.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;

use super::table::{
    CREATED_AT, DISABLED_AT, DISABLED_BY, EPOCH, EVENTS, HOST_CHANGED_AT, NOTICE_ID, PK, PROMPT, REASON,
    SECRET_VERSION, SECRETS, STATUS, URL, WARNED_AT, WARNING,
};
use super::{WebhookStore, table};
use crate::endpoint::{
    DisabledReason, Endpoints, MAX_TRIALS_A_MINUTE, MAX_TRIALS_OF_ACCOUNT, Switch, UnreadableEndpoint, Warning,
    WebhookEndpoint,
};
use crate::guard::is_same_host;
use crate::notice::{About, DisabledNotice};
use crate::promptness::SLOW_FOR_SECONDS;
use common::change::Change;
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use common::rotation::Secrets;
use common::rows::Unreadable;
use common::store::{Attributes, Row, StoreError, n, s};
use common::timestamp::Timestamp;

impl WebhookStore {
    /// Switches an endpoint on, which begins a new epoch. Returns whether it was off.
    pub async fn enable(&self, account: UserId, id: EndpointId) -> Result<bool, StoreError> {
        let forgotten = "#e.#reason, #e.#disabled_at, #e.#disabled_by, #e.#notice_id";
        let change = table::endpoint_change(account, id)
            .update(format!("SET #e.#status = :on, #e.#epoch = #e.#epoch + :one REMOVE {forgotten}"))
            .when("#e.#status = :off")
            .value(":on", s(ENABLED))
            .value(":off", s(DISABLED))
            .value(":one", n(1));
        self.change(&change).await
    }

    /// Switches an endpoint off at somebody's request. Returns whether it was on.
    pub async fn disable(&self, account: UserId, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let change = table::endpoint_change(account, id)
            .update("SET #e.#status = :off, #e.#reason = :reason, #e.#disabled_at = :at")
            .when("#e.#status = :on")
            .value(":on", s(ENABLED))
            .value(":off", s(DISABLED))
            .value(":reason", s(DisabledReason::Owner.as_str()))
            .value(":at", n(now.millis()));
        self.change(&change).await
    }

    /// Changes the URL of an endpoint, the events that are delivered to it, or both. Secrets and switch stay. Another URL
    /// begins a new epoch, and nothing is known of its speed. Another host has yet to be proved. Returns whether the
    /// endpoint is there and its URL still the one that was `seen`.
    pub async fn update_endpoint(
        &self,
        seen: &WebhookEndpoint,
        url: Option<&str>,
        events: Option<&BTreeSet<EventKind>>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut change = table::endpoint_change(seen.account_id, seen.id);
        let (mut set, mut remove) = (Vec::new(), "");
        if let Some(url) = url.filter(|url| *url != seen.url) {
            set.push("#e.#url = :url, #e.#epoch = :next");
            remove = " REMOVE #e.#prompt";
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            change = change
                .when("#e.#epoch = :epoch AND #e.#url = :seen OR #e.#epoch = :next AND #e.#url = :url")
                .value(":epoch", n(seen.epoch))
                .value(":next", n(seen.epoch + 1))
                .value(":seen", s(&seen.url))
                .value(":url", s(url));
            if !is_same_host(url, &seen.url) {
                set.push("#e.#host_changed_at = :now");
                change = change.value(":now", n(now.millis()));
            }
        }
        if let Some(events) = events {
            let names = events.iter().map(|event| event.as_str().to_owned()).collect();
            set.push("#e.#events = :events");
            change = change.value(":events", AttributeValue::Ss(names));
        }
        if set.is_empty() {
            return Ok(true);
        }
        self.change(&change.update(format!("SET {}{remove}", set.join(", ")))).await
    }

    /// Notes that a test has reached the host of the URL that was `seen`, unless the URL is another one by now. Returns
    /// whether it is not.
    pub async fn prove_host(&self, seen: &WebhookEndpoint) -> Result<bool, StoreError> {
        let change = table::endpoint_change(seen.account_id, seen.id).update("REMOVE #e.#host_changed_at");
        self.change(&change.when("#e.#url = :url").value(":url", s(&seen.url))).await
    }

    /// Moves an endpoint on to a later epoch if its epoch is still `seen`. Returns whether it was.
    pub(super) async fn renew_epoch(
        &self,
        account: UserId,
        id: EndpointId,
        seen: u64,
        next: u64,
    ) -> Result<bool, StoreError> {
        let change = table::endpoint_change(account, id).update("SET #e.#epoch = :next").when("#e.#epoch = :seen");
        self.change(&change.value(":seen", n(seen)).value(":next", n(next))).await
    }

    /// Replaces an endpoint's secrets if their version is still `seen`. Returns whether it was.
    pub async fn put_secrets(
        &self,
        account: UserId,
        id: EndpointId,
        secrets: &Secrets<String>,
        seen: u64,
    ) -> Result<bool, StoreError> {
        let change = table::endpoint_change(account, id)
            .update("SET #e.#secrets = :secrets, #e.#secret_version = :next")
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("#e.#secret_version = :seen OR (#e.#secret_version = :next AND #e.#secrets = :secrets)")
            .value(":secrets", s(serde_json::to_string(secrets)?))
            .value(":seen", n(seen))
            .value(":next", n(seen + 1));
        self.change(&change).await
    }

    /// Counts a trial of an account, and of the endpoint that it is about. Returns whether there may be one more in this
    /// minute. There may not if the endpoint was removed.
    pub async fn count_trial(
        &self,
        account: UserId,
        endpoint: Option<EndpointId>,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        if let Some(id) = endpoint
            && !self.count_in(&table::endpoint_change(account, id), "#e.", MAX_TRIALS_A_MINUTE, now).await?
        {
            return Ok(false);
        }
        self.count_in(&table::change(table::account(account)), "", MAX_TRIALS_OF_ACCOUNT, now).await
    }

    /// Counts a trial in the attributes that lie below `place`. Returns whether there may be one more in this minute.
    async fn count_in(&self, row: &Change, place: &str, most: u32, now: Timestamp) -> Result<bool, StoreError> {
        let [minute, trials] = [format!("{place}#trial_minute"), format!("{place}#trials")];
        let change = row.clone().value(":minute", n(now.seconds().div_euclid(60))).value(":one", n(1));
        let first = change
            .clone()
            .update(format!("SET {minute} = :minute, {trials} = :one"))
            .when(&format!("attribute_not_exists({minute}) OR {minute} < :minute"));
        if self.change(&first).await? {
            return Ok(true);
        }
        // A host whose clock is ahead may have begun the next minute already.
        let more = change
            .update(format!("SET {trials} = {trials} + :one"))
            .when(&format!("{minute} >= :minute AND {trials} < :most"))
            .value(":most", n(most));
        self.change(&more).await
    }

    /// Notes that an endpoint responds promptly, or that it does not. The note is about the URL that was `seen`. For
    /// [`SLOW_FOR_SECONDS`] after it was slow, nothing is noted of prompt responses. Returns whether anything changed.
    pub async fn mark_prompt(
        &self,
        seen: &WebhookEndpoint,
        is_prompt: bool,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let change =
            table::endpoint_change(seen.account_id, seen.id).when("#e.#epoch = :epoch").value(":epoch", n(seen.epoch));
        let change = if is_prompt {
            change
                .update("SET #e.#prompt = :true")
                .when("attribute_not_exists(#e.#prompt)")
                .when("attribute_not_exists(#e.#slow_at) OR #e.#slow_at <= :ago")
                .value(":true", AttributeValue::Bool(true))
                .value(":ago", n(now.plus_millis(-1_000 * SLOW_FOR_SECONDS).millis()))
        } else {
            let change = change.update("REMOVE #e.#prompt SET #e.#slow_at = :now");
            change.when("attribute_exists(#e.#prompt)").value(":now", n(now.millis()))
        };
        self.change(&change).await
    }
}

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
    let times = [(DISABLED_AT, endpoint.disabled_at), (HOST_CHANGED_AT, endpoint.host_changed_at)];
    for (name, at) in times {
        value.extend(at.map(|at| (name.to_owned(), n(at.millis()))));
    }
    value.extend(endpoint.warning.map(|warning| (WARNING.to_owned(), warning_value(warning))));
    Ok(AttributeValue::M(value))
}

pub(super) fn warning_value(warning: Warning) -> AttributeValue {
    let value = [(EPOCH, n(warning.epoch)), (WARNED_AT, n(warning.at.millis()))];
    AttributeValue::M(value.map(|(name, value)| (name.to_owned(), value)).into())
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
        disabled_at: read.number(DISABLED_AT).map(Timestamp::from_millis),
        epoch: read.required_number(EPOCH)?,
        created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
        secrets: secrets.ok_or_else(|| StoreError::corrupt(SECRETS))?,
        secret_version: read.required_number(SECRET_VERSION)?,
        is_prompt: row.contains_key(PROMPT),
        warning: row.get(WARNING).and_then(warning),
        host_changed_at: read.number(HOST_CHANGED_AT).map(Timestamp::from_millis),
    })
}

/// Reads a warning. One that cannot be read counts as none, because deliveries do not depend on it.
fn warning(value: &AttributeValue) -> Option<Warning> {
    let read = Attributes(value.as_m().ok()?);
    Some(Warning { epoch: read.number(EPOCH)?, at: Timestamp::from_millis(read.number(WARNED_AT)?) })
}

/// Returns the notice that an endpoint was switched off because a delivery failed, if it was and if its attribute tells
/// so.
pub(super) fn notice_of(value: &AttributeValue, endpoint: &WebhookEndpoint) -> Option<DisabledNotice> {
    if endpoint.switch != Switch::Off(DisabledReason::DeliveriesFailed) {
        return None;
    }
    let read = Attributes(value.as_m().ok()?);
    Some(DisabledNotice {
        about: About::new(read.parsed(NOTICE_ID).ok()?, endpoint),
        delivery_id: read.parsed(DISABLED_BY).ok()?,
        event: None,
        last_status: None,
        last_error: None,
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
