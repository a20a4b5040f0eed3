//! Where a reader of the entities begins in the log.
//!
//! A scan consists of Queries, and a Query beside a transaction may see some of its writes and miss others. So it would
//! not be enough to read the log after the head that was there before the scan:
//!
//! 1. A transaction writes the head (7), log entry 7, and the entities A and B.
//! 2. A reader's Query already sees that the head is 7.
//! 3. Its scan sees the new A, but still the old B.
//! 4. The log after entry 7 is empty. The reader would keep the old B until B changes again.
//!
//! Therefore the reader begins well before the head, with entry 6 or an earlier one, and reads the log only after the
//! scan. A transaction that was committed long before the scan has been seen as a whole. Every later one is in the part
//! of the log that is read, and so its changes are applied in their order, whatever the scan has seen of them. An entry
//! that is older than what the scan saw does no harm, because the entries after it follow in the same log.
//!
//! A transaction may also be committed during the scan. Once the scan has ended, the reader asks for the head by a
//! `GetItem`, which sees each transaction as a whole or not at all. It reads the log at least up to there.

use common::store::{Attributes, StoreError, get_row};
use common::timestamp::Timestamp;

use super::commit::LOG_KEEP_MILLIS;
use super::log::Log;
use super::table;
use crate::Record;

/// How old an entry must be for a scan to see all of its transaction: five minutes. Transactions take milliseconds. The
/// rest is for clocks that are wrong, and for writers that stamp an entry and then lose races for two minutes.
const MIN_AGE_MILLIS: i64 = 5 * 60 * 1_000;
/// At least this many entries are read again, whatever the clocks say.
const MIN_OVERLAP: u64 = 16;

impl<R: Record> Log<R> {
    /// Returns the position after which a reader reads the log if it scans the entities from `now` on, and the head was
    /// at `head` before. No entry is known to be missing between the position and the head.
    ///
    /// Looks at ever older entries, in steps that double.
    pub async fn before_scan(&self, head: u64, now: Timestamp) -> Result<u64, StoreError> {
        let (mut start, mut step) = (head.saturating_sub(1), 1);
        while start > 0 {
            let seq = head.saturating_sub(step).max(1);
            let Some(committed_at) = self.committed_at(seq).await? else { return Ok(start) };
            if seq == 1 {
                return Ok(0);
            }
            start = seq;
            if step >= MIN_OVERLAP && now.millis() - committed_at.millis() > MIN_AGE_MILLIS {
                break;
            }
            step *= 2;
        }
        Ok(start)
    }

    /// Returns when a batch was stamped, by its writer's clock. Returns `None` if its entry has expired.
    async fn committed_at(&self, seq: u64) -> Result<Option<Timestamp>, StoreError> {
        let entry = get_row(&self.market.client, &self.market.table, table::log_entry::<R>(seq)).await?;
        entry.map_or(Ok(None), |entry| {
            let expires: i64 = Attributes(&entry).required_number(table::TTL)?;
            Ok(Some(Timestamp::from_millis(expires.saturating_mul(1_000)).plus_millis(-LOG_KEEP_MILLIS)))
        })
    }
}
