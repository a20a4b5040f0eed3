//! Brings the rows of orders back in line, after a restore that holds some but not all rows of recent transactions.
//!
//! Nobody should write meanwhile. Still, every change is made on condition that the rows are as they were read.

mod mend;
mod plan;
mod stored;

pub use plan::OrderFindings;
pub use stored::{OrderAuthority, OrdersPage};

use super::{Accounts, table};
use common::backoff::pause;
use common::ids::{OrderId, UserId};
use common::store::{StoreError, get_row};
use common::timestamp::Timestamp;

/// How often a repair begins again if a row changes meanwhile.
const MAX_ATTEMPTS: u32 = 5;

impl Accounts {
    /// Brings a user's orders back in line, unless it is only a trial. Returns what was wrong. With `new_era`, instances
    /// forget what they remember of these orders even if nothing was wrong.
    pub async fn repair_orders(
        &self,
        user: UserId,
        now: Timestamp,
        dry_run: bool,
        new_era: bool,
    ) -> Result<OrderFindings, StoreError> {
        let mut found = None;
        for attempt in 0..MAX_ATTEMPTS {
            let stored = self.stored_orders(user).await?;
            let mending = stored.mending(self.block_orders, now, new_era)?;
            let found = *found.get_or_insert(mending.found);
            if dry_run {
                return Ok(found);
            }
            if self.mend(user, stored.total, &mending).await? {
                return Ok(found);
            }
            tokio::time::sleep(pause(attempt)).await;
        }
        Err(StoreError::Conflict)
    }

    /// Removes an authority whose record is missing. The order's next message then inserts the order.
    pub async fn repair_orphan(&self, orphan: &OrderAuthority) -> Result<(), StoreError> {
        if self.remove_authority(orphan).await? { Ok(()) } else { Err(StoreError::Conflict) }
    }

    /// Sets an order's version to 0, so that a message with any later version applies. Returns the version that it had,
    /// or `None` if there is no such order.
    pub async fn reset_order_version(&self, id: OrderId) -> Result<Option<u64>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::authority(id)).await? else { return Ok(None) };
        let authority = OrderAuthority::from_row(id, &row)?;
        if self.reset_versions(&authority).await? {
            Ok(Some(authority.version))
        } else {
            Err(StoreError::corrupt(format!("order {id}: its record is missing")))
        }
    }
}
