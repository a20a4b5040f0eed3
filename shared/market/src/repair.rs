//! What a repair needs: where the log ends whatever the head says, a new beginning of a stream, and versions that any
//! message may follow.

use super::log::Log;
use super::{Market, table};
use crate::{ChangeOf, Record};
use common::ids::MarketplaceKey;
use common::store::{Attributes, StoreError, reset_version};
use common::timestamp::Timestamp;
use common::transaction;

impl<R: Record> Log<R> {
    /// Reads the sequence number of the newest entry, whatever the head says; 0 if there is no entry.
    pub async fn newest_entry(&self) -> Result<u64, StoreError> {
        let newest = self.market.query(table::log_partition::<R>(), None).scan_index_forward(false).limit(1);
        newest.send().await?.items().first().map_or(Ok(0), |row| Attributes(row).parsed(table::SK))
    }

    /// Begins the stream anew: moves the head from `head` to `seq`, and puts an empty entry there. Returns false, and
    /// changes nothing, if the head has moved or there is such an entry.
    ///
    /// Before that entry is a gap. So every reader that stands before it, wherever it believes to be, reads the whole
    /// stream again: the next base, or until there is one, the entities.
    pub async fn begin_anew(&self, head: u64, seq: u64, now: Timestamp) -> Result<bool, StoreError> {
        let writes = self.advance(head, seq, std::iter::empty::<&ChangeOf<R>>(), now)?;
        let request = self.market.client.transact_write_items().set_transact_items(Some(writes.into()));
        Ok(transaction::send(request).await?.is_ok())
    }

    /// Sets an entity's version to 0. Returns the version that it had, or `None` if there is no such entity.
    pub async fn reset_version(&self, id: &R::Id) -> Result<Option<u64>, StoreError> {
        let key = table::entity::<R>(&id.to_string());
        reset_version(&self.market.client, &self.market.table, key, table::VERSION).await
    }
}

impl Market {
    /// Sets a marketplace's version to 0. Returns the version that it had, or `None` if there is no such marketplace.
    pub async fn reset_marketplace_version(&self, key: &MarketplaceKey) -> Result<Option<u64>, StoreError> {
        reset_version(&self.client, &self.table, table::marketplace(key), table::VERSION).await
    }
}
