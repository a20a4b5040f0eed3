//! Finds the deliveries of an endpoint, newest first.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::delivery_row::from_row;
use super::table::{DELIVERIES_INDEX, ENDPOINT_ID};
use super::{WebhookStore, table};
use crate::delivery::Delivery;
use platform::batch_get::get_rows;
use platform::rows::{Rows, Unreadable};
use platform::store::{Row, StoreError, s};
use types::ids::EndpointId;

/// The most rows of a page, because this is the largest number of keys in a `BatchGetItem` (DynamoDB's limit).
pub const MAX_PAGE_ROWS: i32 = 100;

/// A page of an endpoint's deliveries.
#[derive(Clone, Debug)]
pub struct DeliveryPage {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    pub unreadable: Vec<Unreadable>,
    pub next: Option<StartKey>,
}

/// Where a page begins.
pub type StartKey = HashMap<String, AttributeValue>;

impl WebhookStore {
    /// Returns a page of an endpoint's deliveries, newest first. The index that finds them may lag a little, but the
    /// deliveries themselves are read strongly consistently.
    pub async fn deliveries_of(
        &self,
        endpoint: EndpointId,
        from: Option<StartKey>,
    ) -> Result<DeliveryPage, StoreError> {
        self.deliveries_page(endpoint, from, MAX_PAGE_ROWS).await
    }

    /// Returns a page that reads at most `limit` deliveries: 1 to [`MAX_PAGE_ROWS`].
    pub async fn deliveries_page(
        &self,
        endpoint: EndpointId,
        from: Option<StartKey>,
        limit: i32,
    ) -> Result<DeliveryPage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(DELIVERIES_INDEX)
            .key_condition_expression("#endpoint = :endpoint")
            .expression_attribute_names("#endpoint", ENDPOINT_ID)
            .expression_attribute_values(":endpoint", s(endpoint.to_string()))
            .scan_index_forward(false)
            .limit(limit)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let keys: Vec<Row> = found.items.unwrap_or_default().iter().map(table::key_of).collect();
        let Rows { readable: mut deliveries, mut unreadable } = self.deliveries_at(keys).await?;
        deliveries.sort_by_key(|delivery| std::cmp::Reverse((delivery.created_at, delivery.id)));
        unreadable.sort();
        Ok(DeliveryPage { deliveries, unreadable, next: found.last_evaluated_key })
    }

    /// Returns the deliveries of at most 100 keys, in no particular order. Keys without a row are left out.
    async fn deliveries_at(&self, keys: Vec<Row>) -> Result<Rows<Delivery>, StoreError> {
        let rows = get_rows(&self.client, &self.table, keys).await?;
        Ok(rows.iter().map(|row| from_row(row).map_err(|error| Unreadable::new(row, error))).collect())
    }
}
