//! Finds the deliveries of an endpoint, newest first or oldest first.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;
use aws_sdk_dynamodb::types::AttributeValue;

use super::delivery_row::from_row;
use super::table::{CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID, LISTED, STATUSES_INDEX};
use super::{WebhookStore, table};
use crate::delivery::{Delivery, Status};
use platform::batch_get::get_rows;
use platform::rows::{Rows, Unreadable};
use platform::store::{Row, StoreError, n, s};
use types::ids::{DeliveryId, EndpointId};
use types::timestamp::Timestamp;

/// The most rows of a page, because this is the largest number of keys in a `BatchGetItem` (DynamoDB's limit).
pub const MAX_PAGE_ROWS: i32 = 100;

/// A page of an endpoint's deliveries.
#[derive(Clone, Debug, Default)]
pub struct DeliveryPage {
    /// In the order that was asked for.
    pub deliveries: Vec<Delivery>,
    pub unreadable: Vec<Unreadable>,
    pub next: Option<StartKey>,
}

/// Where a page begins.
pub type StartKey = HashMap<String, AttributeValue>;

/// A span of time, both ends included. If the last moment lies before the first, nothing lies within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub first: Timestamp,
    pub last: Timestamp,
}

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
        let query = self.listed(endpoint).key_condition_expression("#endpoint = :endpoint").scan_index_forward(false);
        let mut page = self.page(query.limit(limit).set_exclusive_start_key(from)).await?;
        page.deliveries.sort_by_key(|delivery| std::cmp::Reverse((delivery.created_at, delivery.id)));
        Ok(page)
    }

    /// Returns a page of the deliveries of an endpoint that were created within a span, oldest first. It is read as
    /// [`Self::deliveries_of`] reads it.
    pub async fn deliveries_within(
        &self,
        endpoint: EndpointId,
        span: Span,
        from: Option<StartKey>,
    ) -> Result<DeliveryPage, StoreError> {
        // DynamoDB takes such a condition as invalid.
        if span.last < span.first {
            return Ok(DeliveryPage::default());
        }
        let query = self
            .listed(endpoint)
            .key_condition_expression("#endpoint = :endpoint AND #created BETWEEN :first AND :last")
            .expression_attribute_names("#created", CREATED_AT)
            .expression_attribute_values(":first", n(span.first.millis()))
            .expression_attribute_values(":last", n(span.last.millis()))
            .scan_index_forward(true);
        let mut page = self.page(query.set_exclusive_start_key(from)).await?;
        page.deliveries.sort_by_key(|delivery| (delivery.created_at, delivery.id));
        Ok(page)
    }

    /// Returns which of at most 100 different deliveries are pending.
    pub async fn pending_among(&self, ids: &[DeliveryId]) -> Result<BTreeSet<DeliveryId>, StoreError> {
        let found = self.deliveries_at(ids.iter().map(|id| table::delivery(*id)).collect()).await?;
        let pending = found.readable.iter().filter(|delivery| delivery.progress.status == Status::Pending);
        Ok(pending.map(|delivery| delivery.id).collect())
    }

    /// Returns a page of the deliveries of an endpoint that have one status, oldest first, of a span if there is one.
    /// Delivered ones are not found. An index finds them, so some may just have got another status: they are left out.
    pub async fn deliveries_with(
        &self,
        endpoint: EndpointId,
        status: Status,
        span: Option<Span>,
        from: Option<StartKey>,
    ) -> Result<DeliveryPage, StoreError> {
        let Some(partition) = table::listed(endpoint, status) else { return Ok(DeliveryPage::default()) };
        if span.is_some_and(|span| span.last < span.first) {
            return Ok(DeliveryPage::default());
        }
        let mut query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(STATUSES_INDEX)
            .key_condition_expression("#listed = :listed")
            .expression_attribute_names("#listed", LISTED)
            .expression_attribute_values(":listed", s(partition))
            .limit(MAX_PAGE_ROWS);
        if let Some(span) = span {
            query = query
                .key_condition_expression("#listed = :listed AND #created BETWEEN :first AND :last")
                .expression_attribute_names("#created", CREATED_AT)
                .expression_attribute_values(":first", n(span.first.millis()))
                .expression_attribute_values(":last", n(span.last.millis()));
        }
        let mut page = self.page(query.set_exclusive_start_key(from)).await?;
        page.deliveries.retain(|delivery| delivery.progress.status == status);
        page.deliveries.sort_by_key(|delivery| (delivery.created_at, delivery.id));
        Ok(page)
    }

    /// Returns the query of an endpoint's deliveries. It still lacks its condition.
    fn listed(&self, endpoint: EndpointId) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .index_name(DELIVERIES_INDEX)
            .expression_attribute_names("#endpoint", ENDPOINT_ID)
            .expression_attribute_values(":endpoint", s(endpoint.to_string()))
            .limit(MAX_PAGE_ROWS)
    }

    /// Reads a page. Its deliveries come in no particular order.
    async fn page(&self, query: QueryFluentBuilder) -> Result<DeliveryPage, StoreError> {
        let found = query.send().await?;
        let keys: Vec<Row> = found.items.unwrap_or_default().iter().map(table::key_of).collect();
        let Rows { readable: deliveries, mut unreadable } = self.deliveries_at(keys).await?;
        unreadable.sort();
        Ok(DeliveryPage { deliveries, unreadable, next: found.last_evaluated_key })
    }

    /// Returns the deliveries of at most 100 keys, in no particular order. Keys without a row are left out.
    async fn deliveries_at(&self, keys: Vec<Row>) -> Result<Rows<Delivery>, StoreError> {
        let rows = get_rows(&self.client, &self.table, keys).await?;
        Ok(rows.iter().map(|row| from_row(row).map_err(|error| Unreadable::new(row, error))).collect())
    }
}
