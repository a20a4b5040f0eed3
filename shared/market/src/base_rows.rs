//! The rows of a stream's base: the manifest beside the head; and the pointer, with the chunks that it names, which the
//! releases before the manifest wrote.

use platform::store::{Attributes, StoreError, changed, s};
use uuid::Uuid;

use super::log::{Log, LogPosition, position};
use super::manifest::Manifest;
use super::pointer::Pointer;
use super::table;
use crate::Record;

/// To a reader, this many records of a base are as much work as one change in the log. A record takes a quarter of a
/// change's bytes, and chunks are read at the same time while pages of the log are read one after the other.
const RECORDS_PER_CHANGE: u64 = 10;

/// A stream's head, manifest and base pointer, as of one moment.
pub struct Standing {
    pub head: LogPosition,
    /// The manifest, if there is one that is not older than the pointer. It is an error if it cannot be read.
    pub manifest: Option<Result<Manifest, StoreError>>,
    /// The pointer, if there is one. It is used only where there is no manifest. It is an error if it cannot be read.
    pub base: Option<Result<Pointer, StoreError>>,
    /// The generation of the manifest, even if the rest of it cannot be read.
    generation: Option<String>,
}

impl Standing {
    /// Returns how many changes have come after the base and its deltas. If no base can be read, these are all changes.
    pub fn behind(&self) -> u64 {
        self.head.changes.saturating_sub(self.packed().map_or(0, |(end, _)| end.changes))
    }

    /// Returns up to where base and deltas hold the stream, and how many records the base has.
    fn packed(&self) -> Option<(LogPosition, u64)> {
        if let Some(manifest) = &self.manifest {
            return manifest.as_ref().ok().map(|manifest| (manifest.end, manifest.records));
        }
        let pointer = self.base.as_ref()?.as_ref().ok()?;
        Some((pointer.position, pointer.records))
    }

    /// Returns the sequence number up to which base and deltas hold the stream; 0 if no base can be read.
    pub fn base_seq(&self) -> u64 {
        self.packed().map_or(0, |(end, _)| end.seq)
    }

    /// Returns whether a reader at `position` has more work with the log up to its end than with the base and the log
    /// behind that. Without a base that can be read, it never has.
    pub fn is_base_nearer_than_end(&self, position: LogPosition) -> bool {
        let Some((_, records)) = self.packed() else { return false };
        let left = self.head.changes.saturating_sub(position.changes);
        left > self.behind() + records / RECORDS_PER_CHANGE
    }
}

impl<R: Record> Log<R> {
    /// Reads head, manifest and pointer by one Query, so that all are as of one moment.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let rows = self.market.partition(table::standing_partition::<R>()).await?;
        let find = |name: &str| rows.iter().find(|row| Attributes(row).text(table::SK) == Some(name));
        let (base, manifest) = (find(table::BASE), find(table::MANIFEST));
        let generation = manifest.and_then(|row| Attributes(row).text(table::GENERATION)).map(ToOwned::to_owned);
        let (manifest, base) = (manifest.map(Manifest::from_row), base.map(Pointer::from_row));
        // After a rollback, the release before has gone on with its pointer.
        let is_left_behind =
            |manifest: &Manifest| matches!(&base, Some(Ok(pointer)) if pointer.position.seq > manifest.end.seq);
        let manifest = manifest.filter(|manifest| !manifest.as_ref().is_ok_and(is_left_behind));
        Ok(Standing { head: position(find(table::HEAD))?, manifest, base, generation })
    }

    /// Reads a chunk. A chunk never changes, so the cheaper, eventually consistent read is right if it finds one. Only
    /// if it finds none is the chunk asked for again, by a strongly consistent read.
    pub async fn base_chunk(&self, generation: Uuid, number: usize) -> Result<Option<Vec<u8>>, StoreError> {
        let get = |strongly: bool| {
            let key = table::base_chunk::<R>(generation, number);
            let get = self.market.client.get_item().table_name(&self.market.table).set_key(Some(key));
            get.consistent_read(strongly).send()
        };
        let found = match get(false).await?.item {
            Some(row) => Some(row),
            None => get(true).await?.item,
        };
        Ok(found.as_ref().and_then(|row| Attributes(row).bytes(table::PACKED)).map(ToOwned::to_owned))
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
