//! The lease of a stream's base: one run at a time makes it anew from the entities.

use common::store::{StoreError, changed, n};
use common::timestamp::Timestamp;

use super::log::Log;
use super::table;
use crate::Record;

impl<R: Record> Log<R> {
    /// Takes the lease until a time, if nobody has it. Returns whether nobody had.
    pub async fn take_lease(&self, now: Timestamp, until: Timestamp) -> Result<bool, StoreError> {
        self.put_lease(until, "attribute_not_exists(#until) OR #until <= :present", now).await
    }

    /// Ends the lease that was taken until a time, unless somebody else has taken it since.
    pub async fn end_lease(&self, until: Timestamp, now: Timestamp) -> Result<(), StoreError> {
        self.put_lease(now, "#until = :present", until).await.map(drop)
    }

    async fn put_lease(&self, until: Timestamp, condition: &str, present: Timestamp) -> Result<bool, StoreError> {
        let mut lease = table::lease::<R>();
        lease.insert(table::UNTIL.to_owned(), n(until.millis()));
        let put = self.market.client.put_item().table_name(&self.market.table).set_item(Some(lease));
        let put = put.condition_expression(condition).expression_attribute_names("#until", table::UNTIL);
        changed(put.expression_attribute_values(":present", n(present.millis())).send().await)
    }
}
