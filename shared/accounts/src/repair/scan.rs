//! Looks through the whole table for users with orders, and for authorities whose record is missing.

use std::collections::BTreeSet;

use super::rows::OrderAuthority;
use super::stored::ROWS_PER_READ;
use crate::{Accounts, table};
use platform::batch_get::get_rows;
use platform::layout::LAYOUT;
use platform::store::{Attributes, Row, StoreError, about_rows};
use types::ids::UserId;

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
    /// Returns about how many rows the table has, if that is known.
    pub async fn about_rows(&self) -> Result<Option<u64>, StoreError> {
        about_rows(&self.client, &self.table).await
    }

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
