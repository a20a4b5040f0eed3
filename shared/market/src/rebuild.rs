//! How far a base has been made anew from the entities. Several runs share that work: each continues what the row says,
//! and writes into it what it has done.
//!
//! The row has a partition of its own. Beside the manifest, every start would read it too.

use common::store::{Attributes, Row, StoreError, changed, get_row, s};
use common::timestamp::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::log::{Log, LogPosition};
use super::manifest::ObjectRef;
use super::table;
use crate::Record;

/// What was done for a base that is being made.
///
/// It is stored as JSON, so a later release may add members.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rebuild {
    /// When the first run began with it.
    pub began_at: Timestamp,
    /// Where the log is read from once the entities were read. All entities were read later.
    pub start: LogPosition,
    /// Which entities are read next. `None` once all were read.
    pub next: Option<EntityCursor>,
    /// The records that were read.
    pub runs: Vec<SortedRun>,
}

/// A place among the entities of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EntityCursor {
    pub partition: u32,
    /// The last id before the place. `None` at the beginning of the partition.
    pub behind: Option<String>,
}

/// Records in the order of a base, in objects of the bucket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SortedRun {
    pub records: u64,
    /// In the order of the records.
    pub parts: Vec<ObjectRef>,
}

/// The row as a run has last seen it.
#[derive(Clone, Debug, Default)]
pub struct StoredRebuild {
    /// What is under way. `None` if nothing is, or if it cannot be read: then the entities are read from the beginning.
    pub rebuild: Option<Rebuild>,
    /// Changes with every write of the row.
    generation: Option<String>,
}

impl<R: Record> Log<R> {
    /// Reads which base is being made.
    pub async fn rebuild(&self) -> Result<StoredRebuild, StoreError> {
        let row = get_row(&self.market.client, &self.market.table, table::rebuild::<R>()).await?;
        Ok(row.as_ref().map(StoredRebuild::from_row).unwrap_or_default())
    }

    /// Writes what was done, on condition that the row is still the one that `stored` is. Returns whether it was.
    pub async fn put_rebuild(
        &self,
        stored: &mut StoredRebuild,
        generation: Uuid,
        rebuild: Option<&Rebuild>,
    ) -> Result<bool, StoreError> {
        let (mut row, generation) = (table::rebuild::<R>(), generation.to_string());
        row.insert(table::GENERATION.to_owned(), s(&generation));
        if let Some(rebuild) = rebuild {
            row.insert(table::DATA.to_owned(), s(serde_json::to_string(rebuild)?));
        }
        let put = self.market.client.put_item().table_name(&self.market.table);
        let put = put.set_item(Some(row)).expression_attribute_names("#generation", table::GENERATION);
        let put = match &stored.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        let is_put = changed(put.send().await)?;
        if is_put {
            *stored = StoredRebuild { rebuild: rebuild.cloned(), generation: Some(generation) };
        }
        Ok(is_put)
    }
}

impl StoredRebuild {
    fn from_row(row: &Row) -> Self {
        let read = Attributes(row);
        let is_known = table::REBUILD_FORMAT.of_row(row).is_ok();
        let data = read.text(table::DATA).filter(|_| is_known);
        Self {
            rebuild: data.and_then(|data| serde_json::from_str(data).ok()),
            generation: read.text(table::GENERATION).map(ToOwned::to_owned),
        }
    }
}
