//! Reads, adds and removes the endpoints of an account.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::builders::UpdateBuilder;
use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};

use super::endpoint_row::{endpoints, to_value};
use super::table::{ACCOUNT_ID, COUNT, PK, REMOVED_AT, TTL};
use super::{CONFLICT_ATTEMPTS, WebhookStore, table};
use crate::delivery::KEPT_FOR_MILLIS;
use crate::endpoint::{Endpoints, MAX_ENDPOINTS, WebhookEndpoint};
use platform::batch_get::get_rows;
use platform::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s};
use platform::transaction;
use types::ids::{EndpointId, UserId};
use types::timestamp::Timestamp;

/// What became of a new endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    Done,
    /// The account has [`MAX_ENDPOINTS`] already.
    TooMany,
}

impl WebhookStore {
    /// Returns the endpoints of each account. Accounts without endpoints are left out. Reads at most 100 accounts, in one
    /// call.
    pub async fn accounts(&self, accounts: &BTreeSet<UserId>) -> Result<HashMap<UserId, Endpoints>, StoreError> {
        let keys = accounts.iter().map(|id| table::account(*id)).collect();
        let rows = get_rows(&self.client, &self.table, keys).await?;
        // Every row has one of the keys asked for, so its partition names an account.
        let owner = |row: &Row| Attributes(row).text(PK).and_then(table::account_of);
        Ok(rows.iter().filter_map(|row| Some((owner(row)?, endpoints(row)))).collect())
    }

    /// Returns an account's endpoints.
    pub async fn endpoints(&self, account: UserId) -> Result<Endpoints, StoreError> {
        let row = get_row(&self.client, &self.table, table::account(account)).await?;
        Ok(row.as_ref().map(endpoints).unwrap_or_default())
    }

    /// Returns one of an account's endpoints, or `None` if it is not there. If it cannot be read, that is an error.
    pub async fn endpoint(&self, account: UserId, id: EndpointId) -> Result<Option<WebhookEndpoint>, StoreError> {
        let Endpoints { readable, unreadable } = self.endpoints(account).await?;
        match unreadable.into_iter().find(|endpoint| endpoint.id == id) {
            Some(found) => Err(found.unreadable.into()),
            None => Ok(readable.into_iter().find(|endpoint| endpoint.id == id)),
        }
    }

    /// Returns the account that has or had this endpoint, or `None` if no endpoint has had this id. The account of a
    /// removed endpoint is known for 37 days.
    pub async fn owner_of(&self, id: EndpointId) -> Result<Option<UserId>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::finder(id)).await? else { return Ok(None) };
        table::FINDER_FORMAT.of_row(&row)?;
        Attributes(&row).parsed(ACCOUNT_ID).map(Some)
    }

    /// Adds an endpoint if its account has room for it.
    pub async fn add_endpoint(&self, endpoint: &WebhookEndpoint) -> Result<Added, StoreError> {
        let attribute = table::endpoint_attribute(endpoint.id);
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(endpoint.account_id)))
            .update_expression("SET #endpoint = :endpoint, #count = if_not_exists(#count, :zero) + :one")
            .condition_expression(
                "attribute_not_exists(#endpoint) AND (attribute_not_exists(#count) OR #count < :most)",
            )
            .expression_attribute_names("#endpoint", attribute)
            .expression_attribute_names("#count", COUNT)
            .expression_attribute_values(":endpoint", to_value(endpoint)?)
            .expression_attribute_values(":zero", n(0))
            .expression_attribute_values(":one", n(1))
            .expression_attribute_values(":most", n(MAX_ENDPOINTS))
            .build()?;
        let finder = self.new_finder(endpoint.id, endpoint.account_id)?;
        let writes =
            [TransactWriteItem::builder().update(update).build(), TransactWriteItem::builder().put(finder).build()];
        // All tries share one token. Without it, the repetition of a write whose answer was lost would fail, and the
        // failure would be taken for a full account.
        let token = endpoint.id.to_string();
        let added = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.to_vec()));
            transaction::send(request.client_request_token(&token)).await
        });
        Ok(if added.await?.is_ok() { Added::Done } else { Added::TooMany })
    }

    /// Removes an endpoint. Returns whether it was there. A note of its account stays, and the drain of the account ends
    /// its deliveries. The drain must have been called before, and must be called afterwards: then a crash in between
    /// leaves nothing undone.
    pub async fn remove_endpoint(&self, account: UserId, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::account(account)))
            .update_expression("REMOVE #endpoint SET #count = #count - :one")
            .condition_expression("attribute_exists(#endpoint)")
            .expression_attribute_names("#endpoint", table::endpoint_attribute(id))
            .expression_attribute_names("#count", COUNT)
            .expression_attribute_values(":one", n(1))
            .build()?;
        let finder = self.removed_finder(id, now).build()?;
        let drain = self.removed_in_drain(account, id, now)?;
        let writes = [update, finder, drain].map(|update| TransactWriteItem::builder().update(update).build());
        let removed = retry_conflicts(CONFLICT_ATTEMPTS, || async {
            let request = self.client.transact_write_items().set_transact_items(Some(writes.to_vec()));
            transaction::send(request).await
        });
        Ok(removed.await?.is_ok())
    }

    /// Returns the write of the row that names the account of an endpoint.
    pub(super) fn new_finder(&self, id: EndpointId, account: UserId) -> Result<Put, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(table::finder(id)))
            .item(ACCOUNT_ID, s(account.to_string()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK);
        Ok(put.build()?)
    }

    /// Returns the update that notes the removal of an endpoint.
    pub(super) fn removed_finder(&self, id: EndpointId, now: Timestamp) -> UpdateBuilder {
        Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::finder(id)))
            .update_expression("SET #removed = :now, #ttl = :ttl")
            .expression_attribute_names("#removed", REMOVED_AT)
            .expression_attribute_names("#ttl", TTL)
            .expression_attribute_values(":now", n(now.millis()))
            .expression_attribute_values(":ttl", n(now.plus_millis(KEPT_FOR_MILLIS).seconds()))
    }
}
