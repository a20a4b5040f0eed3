//! The entities of a stream, page by page, for a reader that may stop after any of them.

use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

use super::log::Log;
use super::table;
use crate::Record;
use common::store::{Attributes, Row, StoreError};

/// The read units of a full page, which is 1 MB. They are assumed if the store does not say what a page took.
const PAGE_UNITS: f64 = 256.0;

/// A page of a partition's entities, in the order of their ids.
pub struct EntityPage<R> {
    /// The live ones.
    pub records: Vec<R>,
    /// The id that the next page follows. `None` if this page is the partition's last.
    pub last: Option<String>,
    /// The read units that the page took.
    pub units: f64,
}

impl<R: Record> Log<R> {
    /// Reads the entities of a partition that follow an id, as many as one strongly consistent Query returns.
    pub async fn entities(&self, partition: u32, behind: Option<String>) -> Result<EntityPage<R>, StoreError> {
        let query = self.market.query(table::entity_partition::<R>(partition), behind);
        let page = query.return_consumed_capacity(ReturnConsumedCapacity::Total).send().await?;
        let records = page.items().iter().filter_map(|row| Self::live(row).transpose());
        let last = page.last_evaluated_key().map(|key| Attributes(key).parsed(table::SK));
        let units = page.consumed_capacity().and_then(ConsumedCapacity::capacity_units);
        Ok(EntityPage {
            records: records.collect::<Result<_, _>>()?,
            last: last.transpose()?,
            units: units.unwrap_or(PAGE_UNITS),
        })
    }

    /// Returns the record of an entity, or `None` for a tombstone, which has no data.
    pub(super) fn live(row: &Row) -> Result<Option<R>, StoreError> {
        table::ENTITY_FORMAT.of_row(row)?;
        let Some(data) = Attributes(row).text(table::DATA) else { return Ok(None) };
        R::from_data(data).map(Some).map_err(|error| StoreError::corrupt(format!("{}: {error}", R::STREAM)))
    }
}
