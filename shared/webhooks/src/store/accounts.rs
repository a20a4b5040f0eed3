//! The rows of accounts, which hold their endpoints: reads them, adds and removes endpoints, and changes them.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};

use super::drains::removed_in_drain;
use super::endpoints::{endpoints, to_value};
use super::table::{ACCOUNT_ID, ACCOUNT_PARTITION, PK};
use super::{CONFLICT_ATTEMPTS, StartKey, WebhookStore, table};
use crate::delivery::KEPT_FOR_MILLIS;
use crate::endpoint::{Endpoints, MAX_ENDPOINTS, UnreadableEndpoint, WebhookEndpoint};
use common::change::Change;
use common::ids::{EndpointId, UserId};
use common::rows::get_rows;
use common::store::{Attributes, Row, StoreError, get_row, n, retry_conflicts, s};
use common::timestamp::Timestamp;

/// A page of all endpoints.
#[derive(Clone, Debug)]
pub struct EndpointPage {
    /// In no particular order, except that those of one account come together.
    pub endpoints: Vec<WebhookEndpoint>,
    pub unreadable: Vec<UnreadableEndpoint>,
    pub next: Option<StartKey>,
}

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

    /// Returns a page of all endpoints. It scans the whole table, deliveries included, so it is only for rare work of
    /// an operator.
    pub async fn all_endpoints(&self, from: Option<StartKey>) -> Result<EndpointPage, StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .filter_expression("begins_with(#pk, :account)")
            .expression_attribute_names("#pk", PK)
            .expression_attribute_values(":account", s(ACCOUNT_PARTITION))
            .set_exclusive_start_key(from);
        let found = scan.send().await?;
        let mut page = EndpointPage { endpoints: Vec::new(), unreadable: Vec::new(), next: found.last_evaluated_key };
        for row in found.items.unwrap_or_default() {
            let Endpoints { readable, unreadable } = endpoints(&row);
            page.endpoints.extend(readable);
            page.unreadable.extend(unreadable);
        }
        Ok(page)
    }

    /// Adds an endpoint if its account has room for it.
    pub async fn add_endpoint(&self, endpoint: &WebhookEndpoint) -> Result<Added, StoreError> {
        let add = table::change(table::account(endpoint.account_id))
            .update("SET #e = :endpoint, #count = if_not_exists(#count, :zero) + :one")
            .when("attribute_not_exists(#e)")
            .when("attribute_not_exists(#count) OR #count < :most")
            .name("#e", table::endpoint_attribute(endpoint.id))
            .value(":endpoint", to_value(endpoint)?)
            .value(":zero", n(0))
            .value(":one", n(1))
            .value(":most", n(MAX_ENDPOINTS));
        let finder = self.new_finder(endpoint.id, endpoint.account_id)?;
        // All tries share one token. Without it, the repetition of a write whose answer was lost would fail, and the
        // failure would be taken for a full account.
        let added = self.transact(vec![add.part(&self.table)?, finder], Some(&endpoint.id.to_string())).await?;
        Ok(if added.is_ok() { Added::Done } else { Added::TooMany })
    }

    /// Removes an endpoint. Returns whether it was there. A note of its account stays, and the drain of the account ends
    /// its deliveries. The drain must have been woken before, and must be woken afterwards: then a crash in between
    /// leaves nothing undone.
    pub async fn remove_endpoint(&self, account: UserId, id: EndpointId, now: Timestamp) -> Result<bool, StoreError> {
        let remove =
            table::endpoint_change(account, id).update("REMOVE #e SET #count = #count - :one").value(":one", n(1));
        let writes = [remove, removed_finder(id, now), removed_in_drain(account, id, now)];
        Ok(self.transact(self.parts(&writes)?, None).await?.is_ok())
    }

    /// Returns the write of the row that names the account of an endpoint.
    pub(super) fn new_finder(&self, id: EndpointId, account: UserId) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(table::finder(id)))
            .item(ACCOUNT_ID, s(account.to_string()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", PK);
        Ok(TransactWriteItem::builder().put(put.build()?).build())
    }

    /// Makes a change. Returns whether its conditions held.
    pub(super) async fn change(&self, change: &Change) -> Result<bool, StoreError> {
        retry_conflicts(CONFLICT_ATTEMPTS, || change.send(&self.client, &self.table)).await
    }
}

/// Returns the write that notes the removal of an endpoint.
pub(super) fn removed_finder(id: EndpointId, now: Timestamp) -> Change {
    table::change(table::finder(id))
        .update("SET #removed_at = :now, #ttl = :ttl")
        .value(":now", n(now.millis()))
        .value(":ttl", n(now.plus_millis(KEPT_FOR_MILLIS).seconds()))
}
