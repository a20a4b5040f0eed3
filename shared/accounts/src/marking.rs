//! Stores the marks of busy months. They change in the transaction that inserts an order, so they are as exact as the
//! summary.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};

use super::marks::{Cut, Marks};
use super::place::Place;
use super::summary::Summary;
use super::{Accounts, table};
use common::ids::UserId;
use common::store::{Attributes, StoreError, get_row, s};

impl Accounts {
    /// Reads the marks of a month. There are none if it has few orders.
    pub(super) async fn marks(&self, user: UserId, month: &str) -> Result<Option<Marks>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::marks(user, month)).await? else { return Ok(None) };
        Marks::from_row(&row).map(Some)
    }

    /// Returns the writes that add new orders to the marks. `seen` is the summary before these orders, and the
    /// transaction must be cancelled if that has changed.
    pub(super) async fn mark(
        &self,
        user: UserId,
        seen: &Summary,
        inserted: &[Place],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut months = BTreeMap::<String, Vec<Place>>::new();
        for place in inserted {
            months.entry(place.at.month()).or_default().push(*place);
        }
        let mut writes = Vec::new();
        for (month, places) in months {
            if seen.orders_in(&month) >= self.block_orders {
                let marks = self.marks_with(user, seen, &month, &places).await?;
                writes.push(self.put_marks(user, &month, &marks)?);
            }
        }
        Ok(writes)
    }

    async fn marks_with(
        &self,
        user: UserId,
        seen: &Summary,
        month: &str,
        inserted: &[Place],
    ) -> Result<Marks, StoreError> {
        let mut marks = Marks::as_of(self.marks(user, month).await?, seen, month);
        let cut = inserted.first().and_then(|place| marks.too_large(month, *place, self.block_orders));
        if let Some(cut) = cut {
            let newest = self.newest_orders(user, seen, &cut).await?;
            marks.cut(&cut, &newest, inserted);
        }
        for place in inserted {
            marks.insert(*place);
        }
        Ok(marks)
    }

    /// Reads the newest orders of a block, without their data. Returns none if the read may have missed one that the
    /// summary counts. Then the block is cut at a later insert.
    pub(super) async fn newest_orders(
        &self,
        user: UserId,
        seen: &Summary,
        cut: &Cut,
    ) -> Result<Vec<Place>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(i32::try_from(cut.read).unwrap_or(i32::MAX))
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :below")
            .projection_expression("#sk, #ordinal")
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_names("#sk", table::SK)
            .expression_attribute_names("#ordinal", table::ORDINAL)
            .expression_attribute_values(":pk", s(table::orders_partition(user)))
            .expression_attribute_values(":from", s(&cut.from))
            .expression_attribute_values(":below", s(&cut.below));
        let page = query.send().await?;
        let mut positions = Vec::new();
        for row in page.items() {
            let position: String = Attributes(row).parsed(table::SK)?;
            let ordinal: u64 = Attributes(row).required_number(table::ORDINAL)?;
            if ordinal <= seen.total && position < cut.below {
                positions.push(position);
            }
        }
        let is_whole = page.last_evaluated_key().is_none();
        let oldest = if is_whole { Some(&cut.from) } else { positions.last() };
        let was_read = |position: &&String| oldest.is_some_and(|oldest| *position >= oldest) && **position < cut.below;
        if !seen.recent.iter().filter(was_read).all(|position| positions.contains(position)) {
            return Ok(Vec::new());
        }
        let places: Option<Vec<Place>> = positions.iter().map(|position| Place::parse(position)).collect();
        places.ok_or_else(|| StoreError::corrupt(table::SK))
    }

    pub(super) fn put_marks(&self, user: UserId, month: &str, marks: &Marks) -> Result<TransactWriteItem, StoreError> {
        let row = marks.to_row(table::marks(user, month))?;
        let put = Put::builder().table_name(&self.table).set_item(Some(row)).build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }
}
