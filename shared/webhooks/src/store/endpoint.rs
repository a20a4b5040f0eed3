//! Changes an endpoint. Each change is one conditional write of its account's row.

use std::collections::HashMap;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::AttributeValue;

use super::endpoint_row::{DISABLED, ENABLED};
use super::table::{
    DISABLED_AT, DISABLED_BY, EPOCH, NOTICE_ID, PROMPT, REASON, SECRET_VERSION, SECRETS, SLOW_UNTIL, STATUS,
};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::endpoint::DisabledReason;
use platform::store::{StoreError, n, retry_conflicts, s};
use types::ids::{EndpointId, UserId};
use types::rotation::Secrets;
use types::timestamp::Timestamp;

impl WebhookStore {
    /// Switches an endpoint on, which begins a new epoch. Returns whether it was off.
    pub async fn enable(&self, account: UserId, id: EndpointId) -> Result<bool, StoreError> {
        self.change(
            account,
            id,
            "SET #e.#status = :on, #e.#epoch = #e.#epoch + :one REMOVE #e.#reason, #e.#at, #e.#by, #e.#notice",
            "#e.#status = :off",
            &[
                ("#status", STATUS),
                ("#epoch", EPOCH),
                ("#reason", REASON),
                ("#at", DISABLED_AT),
                ("#by", DISABLED_BY),
                ("#notice", NOTICE_ID),
            ],
            [(":on", s(ENABLED)), (":off", s(DISABLED)), (":one", n(1))],
        )
        .await
    }

    /// Switches an endpoint off at its owner's request. Returns whether it was on.
    pub async fn disable(&self, account: UserId, id: EndpointId) -> Result<bool, StoreError> {
        self.change(
            account,
            id,
            "SET #e.#status = :off, #e.#reason = :reason",
            "#e.#status = :on",
            &[("#status", STATUS), ("#reason", REASON)],
            [(":on", s(ENABLED)), (":off", s(DISABLED)), (":reason", s(DisabledReason::Owner.as_str()))],
        )
        .await
    }

    /// Moves an endpoint on to a later epoch if its epoch is still `seen`. Returns whether it was.
    pub(super) async fn renew_epoch(
        &self,
        account: UserId,
        id: EndpointId,
        seen: u64,
        next: u64,
    ) -> Result<bool, StoreError> {
        let (names, values) = ([("#epoch", EPOCH)], [(":seen", n(seen)), (":next", n(next))]);
        self.change(account, id, "SET #e.#epoch = :next", "#e.#epoch = :seen", &names, values).await
    }

    /// Replaces an endpoint's secrets if their version is still `seen`. Returns whether it was.
    pub async fn put_secrets(
        &self,
        account: UserId,
        id: EndpointId,
        secrets: &Secrets<String>,
        seen: u64,
    ) -> Result<bool, StoreError> {
        self.change(
            account,
            id,
            "SET #e.#secrets = :secrets, #e.#version = :next",
            "#e.#version = :seen",
            &[("#secrets", SECRETS), ("#version", SECRET_VERSION)],
            [(":secrets", s(serde_json::to_string(secrets)?)), (":seen", n(seen)), (":next", n(seen + 1))],
        )
        .await
    }

    /// Makes an endpoint's deliveries use the slow lane until `until`. An earlier mark is never shortened. Returns
    /// whether anything changed.
    pub async fn mark_slow(&self, account: UserId, id: EndpointId, until: Timestamp) -> Result<bool, StoreError> {
        self.change(
            account,
            id,
            "SET #e.#slow = :until REMOVE #e.#prompt",
            "attribute_not_exists(#e.#slow) OR #e.#slow < :until",
            &[("#slow", SLOW_UNTIL), ("#prompt", PROMPT)],
            [(":until", n(until.millis()))],
        )
        .await
    }

    /// Updates an endpoint, which is `#e` in the expressions. Returns whether it exists and the condition held.
    async fn change<const N: usize>(
        &self,
        account: UserId,
        id: EndpointId,
        update: &str,
        condition: &str,
        names: &[(&str, &str)],
        values: [(&str, AttributeValue); N],
    ) -> Result<bool, StoreError> {
        let names = names.iter().map(|(name, attribute)| ((*name).to_owned(), (*attribute).to_owned()));
        let names: HashMap<_, _> = names.chain([("#e".to_owned(), table::endpoint_attribute(id))]).collect();
        let values: HashMap<_, _> = values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::account(account)))
                .update_expression(update)
                .condition_expression(format!("attribute_exists(#e) AND ({condition})"))
                .set_expression_attribute_names(Some(names.clone()))
                .set_expression_attribute_values(Some(values.clone()));
            match request.send().await {
                Ok(_) => Ok(true),
                Err(error) if error.code() == Some("ConditionalCheckFailedException") => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
        .await
    }
}
