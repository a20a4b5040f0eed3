//! The market table, which holds the public data: items, listings, marketplaces and quotes. No other code of the
//! service reads or writes it.

mod base;
mod changes;
mod commit;
mod figures;
mod log;
mod quotes;
mod records;
mod table;
mod writer;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder;

use common::aws::{Missing, Patience};
use common::ids::ItemId;
use common::preflight::Probe;
use common::records::{PublicItem, PublicItemDetail};
use common::resources::Table;
use common::runtime::Service;
use common::store::{Attributes, Row, StoreError, get_row, s};

pub use base::{DeltaRef, EntityCursor, Hash, Manifest, ObjectRef, Rebuild, Standing, StoredRebuild};
pub use changes::Changes;
pub use commit::entity_row;
pub use figures::{Figures, PriceReader, figures};
pub use log::{EntityPage, GapWatch, Log, LogPosition, Tail, contiguous};
pub use quotes::Quote;
pub use records::{Batch, CatalogWrite, Change, Record, Write};
pub use table::ENTITY_PARTITIONS;
pub use writer::Writer;

/// The market table.
#[derive(Clone)]
pub struct Market {
    client: Client,
    table: String,
}

impl Market {
    pub fn new(client: Client, table: String) -> Self {
        Self { client, table }
    }

    /// Returns the market table that the environment names, to be checked by `probe`.
    pub fn from_service(service: &Service<'_>, patience: Patience, probe: Probe) -> Result<Self, Missing> {
        let (client, table) = service.table(Table::Market, patience, probe)?;
        Ok(Self::new(client, table))
    }

    /// Reads an item with its variants.
    pub async fn item(&self, id: &ItemId) -> Result<Option<PublicItemDetail>, StoreError> {
        let key = table::entity::<PublicItem>(id.as_str());
        let Some(row) = get_row(&self.client, &self.table, key).await? else { return Ok(None) };
        table::ENTITY_FORMAT.of_row(&row)?;
        let Some(text) = Attributes(&row).text(table::DATA) else { return Ok(None) };
        serde_json::from_str(text).map(Some).map_err(|error| StoreError::corrupt(format!("item {id}: {error}")))
    }

    pub async fn is_empty(&self) -> Result<bool, StoreError> {
        let scan = self.client.scan().table_name(&self.table).limit(1).consistent_read(true).send().await?;
        Ok(scan.items().is_empty())
    }

    /// Reads every row of a partition, in the order of the sort key.
    async fn partition(&self, partition: String) -> Result<Vec<Row>, StoreError> {
        let mut pages = self.query(partition, None).into_paginator().send();
        let mut rows = Vec::new();
        while let Some(page) = pages.next().await {
            rows.append(&mut page?.items.unwrap_or_default());
        }
        Ok(rows)
    }

    /// Makes a strongly consistent Query of a whole partition, or of the part after a sort key.
    fn query(&self, partition: String, behind: Option<String>) -> QueryFluentBuilder {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_values(":pk", s(partition));
        match behind {
            Some(behind) => query
                .key_condition_expression("#pk = :pk AND #sk > :behind")
                .expression_attribute_names("#sk", table::SK)
                .expression_attribute_values(":behind", s(behind)),
            None => query.key_condition_expression("#pk = :pk"),
        }
    }
}
