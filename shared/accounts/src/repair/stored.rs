//! Reads what is stored of a user's orders.

use std::collections::BTreeMap;

use super::rows::{OrderAuthority, StoredRecord};
use crate::marks::Marks;
use crate::summary::Summary;
use crate::{Accounts, table};
use platform::batch_get::get_rows;
use platform::layout::LAYOUT;
use platform::store::{Attributes, Row, StoreError, get_row, s};
use types::ids::{OrderId, UserId};

/// The most rows of a batch read.
pub(super) const ROWS_PER_READ: usize = 100;

/// Everything that is stored of a user's orders, except their data.
pub(super) struct StoredOrders {
    pub(super) user: UserId,
    /// Oldest first.
    pub(super) records: Vec<StoredRecord>,
    pub(super) authorities: BTreeMap<OrderId, OrderAuthority>,
    /// Whether there is a summary, even one that cannot be read.
    pub(super) has_summary: bool,
    /// The summary's total, even if the rest of it cannot be read.
    pub(super) total: Option<u64>,
    /// The summary's era, even if the rest of it cannot be read.
    pub(super) era: u64,
    /// The summary, if it can be read.
    pub(super) summary: Option<Summary>,
    /// The marks by month; `None` if they cannot be read.
    pub(super) marks: BTreeMap<String, Option<Marks>>,
}

impl Accounts {
    pub(super) async fn stored_orders(&self, user: UserId) -> Result<StoredOrders, StoreError> {
        let summary = get_row(&self.client, &self.table, table::summary(user)).await?;
        if let Some(row) = &summary {
            // A summary of a newer release must stay as it is.
            table::SUMMARY_FORMAT.of_row(row)?;
        }
        let mut marks = BTreeMap::new();
        for row in self.rows_of(table::marks_partition(user)).await? {
            marks.insert(Attributes(&row).parsed(table::SK)?, Marks::from_row(&row).ok());
        }
        let records = self.rows_of(table::orders_partition(user)).await?;
        let records = records.iter().map(StoredRecord::from_row).collect::<Result<Vec<_>, _>>()?;
        Ok(StoredOrders {
            user,
            authorities: self.authorities(&records).await?,
            records,
            has_summary: summary.is_some(),
            total: summary.as_ref().and_then(|row| Attributes(row).number(table::TOTAL)),
            era: summary.as_ref().and_then(|row| Attributes(row).number(table::ERA)).unwrap_or_default(),
            summary: summary.as_ref().and_then(|row| Summary::from_row(row).ok()),
            marks,
        })
    }

    /// Reads the authorities of orders.
    async fn authorities(&self, records: &[StoredRecord]) -> Result<BTreeMap<OrderId, OrderAuthority>, StoreError> {
        let mut authorities = BTreeMap::new();
        for records in records.chunks(ROWS_PER_READ) {
            let by_id: BTreeMap<OrderId, Row> =
                records.iter().map(|record| (record.id, table::authority(record.id))).collect();
            for row in get_rows(&self.client, &self.table, by_id.into_values().collect()).await? {
                let partition: String = Attributes(&row).parsed(table::PK)?;
                let id = table::authority_of(&partition).ok_or_else(|| StoreError::corrupt(table::PK))?;
                authorities.insert(id, OrderAuthority::from_row(id, &row)?);
            }
        }
        Ok(authorities)
    }

    /// Reads the rows of a partition, without the data of orders.
    async fn rows_of(&self, partition: String) -> Result<Vec<Row>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#pk = :pk")
            .projection_expression("#sk, #ordinal, #version, #marks, #layout")
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_names("#sk", table::SK)
            .expression_attribute_names("#ordinal", table::ORDINAL)
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_names("#marks", table::MARKS)
            .expression_attribute_names("#layout", LAYOUT)
            .expression_attribute_values(":pk", s(partition));
        let mut pages = query.into_paginator().send();
        let mut rows = Vec::new();
        while let Some(page) = pages.next().await {
            rows.append(&mut page?.items.unwrap_or_default());
        }
        Ok(rows)
    }
}
