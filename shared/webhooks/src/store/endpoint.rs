//! Changes an endpoint. Each change is one conditional write of its account's row.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;

use super::WebhookStore;
use super::account_change::AccountChange;
use super::endpoint_row::{DISABLED, ENABLED};
use super::table::{
    DISABLED_AT, DISABLED_BY, EPOCH, EVENTS, NOTICE_ID, PROMPT, REASON, SECRET_VERSION, SECRETS, STATUS, TRIAL_MINUTE,
    TRIALS, URL,
};
use crate::endpoint::{DisabledReason, MAX_TRIALS_A_MINUTE, WebhookEndpoint};
use platform::store::{StoreError, n, s};
use types::event::EventKind;
use types::ids::{EndpointId, UserId};
use types::rotation::Secrets;
use types::timestamp::Timestamp;

impl WebhookStore {
    /// Switches an endpoint on, which begins a new epoch. Returns whether it was off.
    pub async fn enable(&self, account: UserId, id: EndpointId) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(id)
            .update("SET #e.#status = :on, #e.#epoch = #e.#epoch + :one REMOVE #e.#reason, #e.#at, #e.#by, #e.#notice")
            .when("#e.#status = :off")
            .named("#status", STATUS)
            .named("#epoch", EPOCH)
            .named("#reason", REASON)
            .named("#at", DISABLED_AT)
            .named("#by", DISABLED_BY)
            .named("#notice", NOTICE_ID)
            .valued(":on", s(ENABLED))
            .valued(":off", s(DISABLED))
            .valued(":one", n(1));
        self.change_account(account, change).await
    }

    /// Switches an endpoint off at its owner's request. Returns whether it was on.
    pub async fn disable(&self, account: UserId, id: EndpointId) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(id)
            .update("SET #e.#status = :off, #e.#reason = :reason")
            .when("#e.#status = :on")
            .named("#status", STATUS)
            .named("#reason", REASON)
            .valued(":on", s(ENABLED))
            .valued(":off", s(DISABLED))
            .valued(":reason", s(DisabledReason::Owner.as_str()));
        self.change_account(account, change).await
    }

    /// Changes the URL of an endpoint, the events that are delivered to it, or both. Secrets and switch stay. Another URL
    /// begins a new epoch, and nothing is known of its speed. Returns whether the endpoint is there and its URL still the
    /// one that was `seen`.
    pub async fn update_endpoint(
        &self,
        seen: &WebhookEndpoint,
        url: Option<&str>,
        events: Option<&BTreeSet<EventKind>>,
    ) -> Result<bool, StoreError> {
        let mut change = AccountChange::for_endpoint(seen.id);
        let (mut set, mut remove) = (Vec::new(), "");
        if let Some(url) = url.filter(|url| *url != seen.url) {
            set.push("#e.#url = :url, #e.#epoch = :next");
            remove = " REMOVE #e.#prompt";
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            change = change
                .when("#e.#epoch = :epoch AND #e.#url = :seen OR #e.#epoch = :next AND #e.#url = :url")
                .named("#url", URL)
                .named("#epoch", EPOCH)
                .named("#prompt", PROMPT)
                .valued(":epoch", n(seen.epoch))
                .valued(":next", n(seen.epoch + 1))
                .valued(":seen", s(&seen.url))
                .valued(":url", s(url));
        }
        if let Some(events) = events {
            let names = events.iter().map(|event| event.as_str().to_owned()).collect();
            set.push("#e.#events = :events");
            change = change.named("#events", EVENTS).valued(":events", AttributeValue::Ss(names));
        }
        if set.is_empty() {
            return Ok(true);
        }
        self.change_account(seen.account_id, change.update(format!("SET {}{remove}", set.join(", ")))).await
    }

    /// Moves an endpoint on to a later epoch if its epoch is still `seen`. Returns whether it was.
    pub(super) async fn renew_epoch(
        &self,
        account: UserId,
        id: EndpointId,
        seen: u64,
        next: u64,
    ) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(id)
            .update("SET #e.#epoch = :next")
            .when("#e.#epoch = :seen")
            .named("#epoch", EPOCH)
            .valued(":seen", n(seen))
            .valued(":next", n(next));
        self.change_account(account, change).await
    }

    /// Replaces an endpoint's secrets if their version is still `seen`. Returns whether it was.
    pub async fn put_secrets(
        &self,
        account: UserId,
        id: EndpointId,
        secrets: &Secrets<String>,
        seen: u64,
    ) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(id)
            .update("SET #e.#secrets = :secrets, #e.#version = :next")
            // Its own outcome is allowed as well, because the answer to an earlier try may have been lost.
            .when("#e.#version = :seen OR (#e.#version = :next AND #e.#secrets = :secrets)")
            .named("#secrets", SECRETS)
            .named("#version", SECRET_VERSION)
            .valued(":secrets", s(serde_json::to_string(secrets)?))
            .valued(":seen", n(seen))
            .valued(":next", n(seen + 1));
        self.change_account(account, change).await
    }

    /// Counts a test or another URL of an endpoint. Returns whether there may be one more in this minute. There may not if
    /// the endpoint was removed.
    pub async fn count_trial(&self, account: UserId, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let change = || {
            AccountChange::for_endpoint(id)
                .named("#minute", TRIAL_MINUTE)
                .named("#trials", TRIALS)
                .valued(":minute", n(now.seconds().div_euclid(60)))
                .valued(":one", n(1))
        };
        let first = change()
            .update("SET #e.#minute = :minute, #e.#trials = :one")
            .when("attribute_not_exists(#e.#minute) OR #e.#minute < :minute");
        if self.change_account(account, first).await? {
            return Ok(true);
        }
        // A host whose clock is ahead may have begun the next minute already.
        let more = change()
            .update("SET #e.#trials = #e.#trials + :one")
            .when("#e.#minute >= :minute AND #e.#trials < :most")
            .valued(":most", n(MAX_TRIALS_A_MINUTE));
        self.change_account(account, more).await
    }

    /// Notes that an endpoint responds promptly, or that it does not. The note is about the URL that was `seen`. Returns
    /// whether anything changed.
    pub async fn mark_prompt(&self, seen: &WebhookEndpoint, is_prompt: bool) -> Result<bool, StoreError> {
        let change = AccountChange::for_endpoint(seen.id)
            .named("#prompt", PROMPT)
            .named("#epoch", EPOCH)
            .valued(":epoch", n(seen.epoch))
            .when("#e.#epoch = :epoch");
        let change = if is_prompt {
            let change = change.update("SET #e.#prompt = :true").valued(":true", AttributeValue::Bool(true));
            change.when("attribute_not_exists(#e.#prompt)")
        } else {
            change.update("REMOVE #e.#prompt").when("attribute_exists(#e.#prompt)")
        };
        self.change_account(seen.account_id, change).await
    }
}
