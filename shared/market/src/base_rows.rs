//! Where a stream stands: its head, and the manifest of its base beside that.

use common::store::{Attributes, StoreError, changed, s};

use super::log::{Log, LogPosition, position};
use super::manifest::Manifest;
use super::table;
use crate::Record;

/// To a reader, this many records of a base are as much work as one change in the log. A record takes a quarter of a
/// change's bytes, and parts are read at the same time while pages of the log are read one after the other.
const RECORDS_PER_CHANGE: u64 = 10;

/// A stream's head and manifest, as of one moment.
pub struct Standing {
    pub head: LogPosition,
    /// The manifest, if there is one. It is an error if it cannot be read.
    pub manifest: Option<Result<Manifest, StoreError>>,
    /// The generation of the manifest, even if the rest of it cannot be read.
    generation: Option<String>,
}

impl Standing {
    /// Returns how many changes have come after the base and its deltas. If no base can be read, these are all changes.
    pub fn behind(&self) -> u64 {
        self.head.changes.saturating_sub(self.base().map_or(0, |base| base.end.changes))
    }

    /// Returns the manifest, if it can be read.
    fn base(&self) -> Option<&Manifest> {
        self.manifest.as_ref()?.as_ref().ok()
    }

    /// Returns the sequence number up to which base and deltas hold the stream; 0 if no base can be read.
    pub fn base_seq(&self) -> u64 {
        self.base().map_or(0, |base| base.end.seq)
    }

    /// Returns whether a reader at `position` has more work with the log up to its end than with the base and the log
    /// behind that. Without a base that can be read, it never has.
    pub fn is_base_nearer_than_end(&self, position: LogPosition) -> bool {
        let Some(base) = self.base() else { return false };
        let left = self.head.changes.saturating_sub(position.changes);
        left > self.behind() + base.records / RECORDS_PER_CHANGE
    }
}

impl<R: Record> Log<R> {
    /// Reads head and manifest by one Query, so that both are as of one moment.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let rows = self.market.partition(table::standing_partition::<R>()).await?;
        let find = |name: &str| rows.iter().find(|row| Attributes(row).text(table::SK) == Some(name));
        let manifest = find(table::MANIFEST);
        let generation = manifest.and_then(|row| Attributes(row).text(table::GENERATION)).map(ToOwned::to_owned);
        Ok(Standing { head: position(find(table::HEAD))?, manifest: manifest.map(Manifest::from_row), generation })
    }

    /// Puts the manifest, on condition that the stored one is still the one that `seen` has. Returns whether it was.
    pub async fn put_manifest(&self, manifest: &Manifest, seen: &Standing) -> Result<bool, StoreError> {
        let put = self.market.client.put_item().table_name(&self.market.table);
        let put = put.set_item(Some(manifest.row::<R>()?)).expression_attribute_names("#generation", table::GENERATION);
        let put = match &seen.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        changed(put.send().await)
    }
}
