//! The rows of a stream's base: the pointer beside the head, and the chunks that it names.

use platform::store::{Attributes, StoreError, b, changed, n, s};
use types::timestamp::Timestamp;
use uuid::Uuid;

use super::log::{Log, LogPosition, position};
use super::pointer::Pointer;
use super::table;
use crate::Record;

/// To a reader, this many records of a base are as much work as one change in the log. A record takes a quarter of a
/// change's bytes, and chunks are read at the same time while pages of the log are read one after the other.
const RECORDS_PER_CHANGE: u64 = 10;

/// A stream's head and base pointer, as of one moment.
pub struct Standing {
    pub head: LogPosition,
    /// The pointer, if there is a base. It is an error if the pointer cannot be read.
    pub base: Option<Result<Pointer, StoreError>>,
    /// The generation that the pointer names, even if the rest of the pointer cannot be read.
    generation: Option<String>,
}

impl Standing {
    /// Returns how many changes have come after the base. If no pointer can be read, these are all changes.
    pub fn behind(&self) -> u64 {
        let base = self.base.as_ref().and_then(|base| base.as_ref().ok());
        self.head.changes.saturating_sub(base.map_or(0, |base| base.position.changes))
    }

    /// Returns whether a reader at `position` has more work with the log up to its end than with the base and the log
    /// behind that. Without a base that can be read, it never has.
    pub fn is_base_nearer_than_end(&self, position: LogPosition) -> bool {
        let Some(Ok(base)) = &self.base else { return false };
        let left = self.head.changes.saturating_sub(position.changes);
        left > self.behind() + base.records / RECORDS_PER_CHANGE
    }
}

impl<R: Record> Log<R> {
    /// Reads head and pointer by one Query, so that both are as of one moment.
    pub async fn standing(&self) -> Result<Standing, StoreError> {
        let rows = self.market.partition(table::standing_partition::<R>()).await?;
        let find = |name: &str| rows.iter().find(|row| Attributes(row).text(table::SK) == Some(name));
        let base = find(table::BASE);
        let generation = base.and_then(|row| Attributes(row).text(table::GENERATION)).map(ToOwned::to_owned);
        Ok(Standing { head: position(find(table::HEAD))?, base: base.map(Pointer::from_row), generation })
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

    /// Puts a chunk under a generation that no pointer names yet.
    pub async fn put_base_chunk(
        &self,
        generation: Uuid,
        number: usize,
        packed: Vec<u8>,
        expires: Timestamp,
    ) -> Result<(), StoreError> {
        let put = self.market.client.put_item().table_name(&self.market.table);
        let put = put.set_item(Some(table::base_chunk::<R>(generation, number)));
        put.item(table::PACKED, b(packed)).item(table::TTL, n(expires.seconds())).send().await?;
        Ok(())
    }

    /// Moves the pointer, on condition that it still names the generation that `seen` has. Returns whether it moved.
    pub async fn put_base_pointer(&self, pointer: &Pointer, seen: &Standing) -> Result<bool, StoreError> {
        let put = self.market.client.put_item().table_name(&self.market.table).set_item(Some(pointer.row::<R>()));
        let put = put.expression_attribute_names("#generation", table::GENERATION);
        let put = match &seen.generation {
            None => put.condition_expression("attribute_not_exists(#generation)"),
            Some(seen) => put.condition_expression("#generation = :seen").expression_attribute_values(":seen", s(seen)),
        };
        changed(put.send().await)
    }
}
