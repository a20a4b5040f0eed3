//! Finds deliveries: by endpoint, newest first, and by their wake-ups.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;

use super::delivery_row::from_row;
use super::table::{DELIVERIES_INDEX, ENDPOINT_ID, PK, SK, WAKE_AT, WAKE_INDEX, WAKE_SHARD, Wake};
use super::{WebhookStore, table};
use crate::delivery::Delivery;
use platform::batch_get::get_rows;
use platform::rows::{Rows, Unreadable};
use platform::store::{Attributes, Row, StoreError, n, s};
use types::ids::{EndpointId, NoticeId};
use types::timestamp::Timestamp;

/// The largest number of keys in a `BatchGetItem` (DynamoDB's limit).
const MAX_PAGE_ROWS: i32 = 100;

/// A page of an endpoint's deliveries.
#[derive(Clone, Debug)]
pub struct DeliveryPage {
    /// Newest first.
    pub deliveries: Vec<Delivery>,
    pub unreadable: Vec<Unreadable>,
    pub next: Option<StartKey>,
}

/// A page of what a sweep must look at.
#[derive(Clone, Debug)]
pub struct DuePage {
    /// In no particular order. The index may be out of date, so some of them may not be due any more.
    pub deliveries: Vec<Delivery>,
    /// Notices that may not have been sent.
    pub notices: Vec<NoticeId>,
    /// Rows that this release cannot read. Their wake-ups stay as they are, so the next sweep finds them again.
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
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(DELIVERIES_INDEX)
            .key_condition_expression("#endpoint = :endpoint")
            .expression_attribute_names("#endpoint", ENDPOINT_ID)
            .expression_attribute_values(":endpoint", s(endpoint.to_string()))
            .scan_index_forward(false)
            .limit(MAX_PAGE_ROWS)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let keys: Vec<Row> = found.items.unwrap_or_default().iter().map(key_of).collect();
        let Rows { readable: mut deliveries, mut unreadable } = self.deliveries_at(keys).await?;
        deliveries.sort_by_key(|delivery| std::cmp::Reverse((delivery.created_at, delivery.id)));
        unreadable.sort();
        Ok(DeliveryPage { deliveries, unreadable, next: found.last_evaluated_key })
    }

    /// Returns a page of one shard's entries whose wake-up has come. The earliest come in the first page.
    pub async fn due(&self, shard: u32, now: Timestamp, from: Option<StartKey>) -> Result<DuePage, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name(WAKE_INDEX)
            .key_condition_expression("#shard = :shard AND #wake_at <= :now")
            .expression_attribute_names("#shard", WAKE_SHARD)
            .expression_attribute_names("#wake_at", WAKE_AT)
            .expression_attribute_values(":shard", s(table::wake_partition(shard)))
            .expression_attribute_values(":now", n(now.millis()))
            .limit(MAX_PAGE_ROWS)
            .set_exclusive_start_key(from);
        let found = query.send().await?;
        let (mut keys, mut notices, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for row in found.items.unwrap_or_default() {
            match Attributes(&row).text(PK).and_then(table::wake) {
                Some(Wake::Delivery) => keys.push(key_of(&row)),
                Some(Wake::Notice(id)) => notices.push(id),
                None => unknown.push(Unreadable::new(&row, StoreError::corrupt(PK))),
            }
        }
        let Rows { readable: deliveries, mut unreadable } = self.deliveries_at(keys).await?;
        unreadable.append(&mut unknown);
        Ok(DuePage { deliveries, notices, unreadable, next: found.last_evaluated_key })
    }

    /// Returns the deliveries of at most 100 keys, in no particular order. Keys without a row are left out.
    async fn deliveries_at(&self, keys: Vec<Row>) -> Result<Rows<Delivery>, StoreError> {
        let rows = get_rows(&self.client, &self.table, keys).await?;
        Ok(rows.iter().map(|row| from_row(row).map_err(|error| Unreadable::new(row, error))).collect())
    }
}

fn key_of(row: &Row) -> Row {
    let part = |name: &str| row.get(name).map(|value| (name.to_owned(), value.clone()));
    [PK, SK].into_iter().filter_map(part).collect()
}
