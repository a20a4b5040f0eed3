//! Marks months that became busy before there were marks. An insert cuts only its own month, so past months need this.

use super::marks::Marks;
use super::{Accounts, table};
use platform::backoff::{MAX_RACES, pause};
use platform::store::{StoreError, changed, n};
use types::ids::UserId;

/// How many orders one step moves to new blocks. It reads about 400 KB for that, or 100 units.
const ORDERS_PER_STEP: u64 = 2_000;

impl Accounts {
    /// Marks every busy month of a user, until no block is too large. Returns how many steps that took: none, if all
    /// months have their marks. It may run while orders arrive, and may be repeated.
    pub async fn mark_months(&self, user: UserId) -> Result<u64, StoreError> {
        let mut steps = 0;
        for month in self.summary(user).await?.months.into_keys() {
            steps += self.mark_month(user, &month).await?;
        }
        Ok(steps)
    }

    async fn mark_month(&self, user: UserId, month: &str) -> Result<u64, StoreError> {
        let (mut steps, mut races) = (0, 0);
        while races < MAX_RACES {
            let seen = self.summary(user).await?;
            let stored = self.marks(user, month).await?;
            let known = stored.as_ref().map(Marks::orders);
            let mut marks = Marks::as_of(stored, &seen, month);
            let Some(cut) = marks.newest_too_large(month, ORDERS_PER_STEP, self.block_orders) else {
                return Ok(steps);
            };
            let newest = self.newest_orders(user, &seen, &cut).await?;
            marks.cut(&cut, &newest, &[]);
            if newest.len() > 1 && self.replace_marks(user, month, &marks, known).await? {
                (steps, races) = (steps + 1, 0);
            } else {
                tokio::time::sleep(pause(races)).await;
                races += 1;
            }
        }
        Err(StoreError::Conflict)
    }

    /// Puts marks in place of those that count `known` orders, or of none. Returns whether these were still there.
    ///
    /// The summary needs no condition: if it has moved without the marks, they are behind it, as after any insert by a
    /// release without marks.
    async fn replace_marks(
        &self,
        user: UserId,
        month: &str,
        marks: &Marks,
        known: Option<u64>,
    ) -> Result<bool, StoreError> {
        let mut put = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(marks.to_row(table::marks(user, month))?))
            .expression_attribute_names("#orders", table::ORDERS);
        put = match known {
            Some(known) => put.condition_expression("#orders = :known").expression_attribute_values(":known", n(known)),
            None => put.condition_expression("attribute_not_exists(#orders)"),
        };
        changed(put.send().await)
    }
}
