//! Reads what is stored of orders, without the orders' data: all of one user, or the whole table page by page.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

use crate::{Accounts, table};
use common::ids::{OrderId, UserId};
use common::layout::LAYOUT;
use common::rows::get_rows;
use common::store::{Attributes, Row, StoreError, get_row, s};
use common::timestamp::Timestamp;

/// The most rows of a batch read.
const ROWS_PER_READ: usize = 100;

/// Everything that is stored of a user's orders, except their data.
pub(super) struct StoredOrders {
    pub(super) user: UserId,
    /// Oldest first.
    pub(super) records: Vec<StoredRecord>,
    pub(super) authorities: BTreeMap<OrderId, OrderAuthority>,
    /// The summary's total, if it has one.
    pub(super) total: Option<u64>,
    /// The summary's era.
    pub(super) era: u64,
    /// The months that have hours.
    pub(super) months: BTreeSet<String>,
}

impl Accounts {
    pub(super) async fn stored_orders(&self, user: UserId) -> Result<StoredOrders, StoreError> {
        let summary = get_row(&self.client, &self.table, table::summary(user)).await?;
        if let Some(row) = &summary {
            // A summary of a newer release must stay as it is.
            table::SUMMARY_FORMAT.of_row(row)?;
        }
        let hours = rows_of(self.partition(table::hours_partition(user))).await?;
        let records = rows_of(without_data(self.partition(table::orders_partition(user)))).await?;
        let records = records.iter().map(StoredRecord::from_row).collect::<Result<Vec<_>, _>>()?;
        Ok(StoredOrders {
            user,
            authorities: self.authorities(&records).await?,
            records,
            total: summary.as_ref().and_then(|row| Attributes(row).number(table::TOTAL)),
            era: summary.as_ref().and_then(|row| Attributes(row).number(table::ERA)).unwrap_or_default(),
            months: hours.iter().map(|row| Attributes(row).parsed(table::SK)).collect::<Result<_, _>>()?,
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

    fn partition(&self, partition: String) -> QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#pk = :pk")
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_values(":pk", s(partition))
    }
}

/// Lets a query of orders return what [`StoredRecord`] needs.
fn without_data(orders: QueryFluentBuilder) -> QueryFluentBuilder {
    orders
        .projection_expression("#sk, #ordinal, #version, #layout")
        .expression_attribute_names("#sk", table::SK)
        .expression_attribute_names("#ordinal", table::ORDINAL)
        .expression_attribute_names("#version", table::VERSION)
        .expression_attribute_names("#layout", LAYOUT)
}

async fn rows_of(query: QueryFluentBuilder) -> Result<Vec<Row>, StoreError> {
    let mut pages = query.into_paginator().send();
    let mut rows = Vec::new();
    while let Some(page) = pages.next().await {
        rows.append(&mut page?.items.unwrap_or_default());
    }
    Ok(rows)
}

/// An order's record.
#[derive(Clone, Debug)]
pub(super) struct StoredRecord {
    pub(super) id: OrderId,
    pub(super) created_at: Timestamp,
    pub(super) position: String,
    pub(super) ordinal: u64,
    pub(super) version: u64,
}

/// An order's authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderAuthority {
    pub(super) id: OrderId,
    pub(super) user: UserId,
    pub(super) created_at: Timestamp,
    pub(super) version: u64,
}

impl StoredRecord {
    pub(super) fn from_row(row: &Row) -> Result<Self, StoreError> {
        table::ORDER_FORMAT.of_row(row)?;
        let read = Attributes(row);
        let position: String = read.parsed(table::SK)?;
        let (created_at, id) = table::parse_order_position(&position).ok_or_else(|| StoreError::corrupt(table::SK))?;
        Ok(Self {
            id,
            created_at,
            position,
            ordinal: read.required_number(table::ORDINAL)?,
            version: read.required_number(table::VERSION)?,
        })
    }
}

impl OrderAuthority {
    pub(super) fn from_row(id: OrderId, row: &Row) -> Result<Self, StoreError> {
        table::AUTHORITY_FORMAT.of_row(row)?;
        let read = Attributes(row);
        Ok(Self {
            id,
            user: read.parsed(table::ACCOUNT)?,
            created_at: Timestamp::from_millis(read.required_number(table::CREATED_AT)?),
            version: read.required_number(table::VERSION)?,
        })
    }

    /// Returns the key of the record that belongs to it.
    pub(super) fn record(&self) -> Row {
        table::order(self.user, &table::order_position(self.created_at, self.id))
    }
}

/// A part of the table.
pub struct OrdersPage {
    /// The number of rows.
    pub rows: u64,
    /// The users who own some of them.
    pub users: BTreeSet<UserId>,
    /// Authorities whose record is missing.
    pub orphans: Vec<OrderAuthority>,
    /// Where the next part begins.
    pub next: Option<Row>,
}

impl Accounts {
    /// Reads a part of the table.
    pub async fn scan_orders(&self, from: Option<Row>) -> Result<OrdersPage, StoreError> {
        let scan = self
            .client
            .scan()
            .table_name(&self.table)
            .consistent_read(true)
            .set_exclusive_start_key(from)
            .projection_expression("#pk, #account, #created_at, #version, #layout")
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_names("#account", table::ACCOUNT)
            .expression_attribute_names("#created_at", table::CREATED_AT)
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_names("#layout", LAYOUT);
        let page = scan.send().await?;
        let (mut users, mut authorities) = (BTreeSet::new(), Vec::new());
        for row in page.items() {
            let partition = Attributes(row).text(table::PK).unwrap_or_default();
            if let Some(id) = table::authority_of(partition) {
                authorities.push(OrderAuthority::from_row(id, row)?);
            } else {
                users.extend(table::owner(partition));
            }
        }
        let rows = page.items().len() as u64;
        Ok(OrdersPage { rows, users, orphans: self.orphans(authorities).await?, next: page.last_evaluated_key })
    }

    /// Returns the authorities whose record is missing.
    async fn orphans(&self, authorities: Vec<OrderAuthority>) -> Result<Vec<OrderAuthority>, StoreError> {
        let mut orphans = Vec::new();
        for authorities in authorities.chunks(ROWS_PER_READ) {
            let keys = authorities.iter().map(OrderAuthority::record).collect();
            let records = get_rows(&self.client, &self.table, keys).await?;
            let is_there = |authority: &&OrderAuthority| {
                let key = authority.record();
                records.iter().any(|row| key.iter().all(|(name, value)| row.get(name) == Some(value)))
            };
            orphans.extend(authorities.iter().filter(|authority| !is_there(authority)));
        }
        Ok(orphans)
    }
}
