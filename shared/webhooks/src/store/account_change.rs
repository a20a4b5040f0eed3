//! Conditional updates of an account's row. Each is about one endpoint, and is refused if the endpoint was removed.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use platform::store::{StoreError, retry_conflicts, updated};
use types::ids::{EndpointId, UserId};

/// A conditional update of an account's row.
#[derive(Default)]
pub(super) struct AccountChange {
    update: String,
    conditions: Vec<String>,
    names: HashMap<String, String>,
    values: HashMap<String, AttributeValue>,
}

impl AccountChange {
    /// Begins a change that is refused if the endpoint, `#e`, was removed. So it never makes a row.
    pub(super) fn for_endpoint(id: EndpointId) -> Self {
        Self::default().named("#e", table::endpoint_attribute(id)).when("attribute_exists(#e)")
    }

    pub(super) fn named(mut self, name: &str, attribute: impl Into<String>) -> Self {
        self.names.insert(name.to_owned(), attribute.into());
        self
    }

    pub(super) fn valued(mut self, name: &str, value: AttributeValue) -> Self {
        self.values.insert(name.to_owned(), value);
        self
    }

    /// Adds a condition. All of them have to hold.
    pub(super) fn when(mut self, condition: impl Into<String>) -> Self {
        self.conditions.push(condition.into());
        self
    }

    pub(super) fn update(self, update: impl Into<String>) -> Self {
        Self { update: update.into(), ..self }
    }
}

impl WebhookStore {
    /// Makes a change. Returns whether its conditions held.
    pub(super) async fn change_account(&self, account: UserId, change: AccountChange) -> Result<bool, StoreError> {
        let conditions: Vec<String> = change.conditions.iter().map(|condition| format!("({condition})")).collect();
        retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self
                .client
                .update_item()
                .table_name(&self.table)
                .set_key(Some(table::account(account)))
                .update_expression(&change.update)
                .condition_expression(conditions.join(" AND "))
                .set_expression_attribute_names(Some(change.names.clone()))
                .set_expression_attribute_values(Some(change.values.clone()));
            updated(request.send().await)
        })
        .await
    }
}
