//! Brings the rows of orders back in line, after a restore that holds some but not all rows of recent transactions.
//!
//! Nobody should write meanwhile. Still, every change is made on condition that the rows are as they were read.
//!
//! A few rows change in one transaction, so readers see all of it or nothing. If there are too many for one, the
//! summary is closed first: it loses its months, so that pages of this user are errors instead of wrong, and no order
//! can be inserted. It is written last, and that opens it again. After a crash in between, the next repair completes the
//! work.

mod plan;
mod stored;

use aws_sdk_dynamodb::types::{ConditionCheck, Delete, Put, TransactWriteItem, Update};

use super::hours::Hours;
use super::order_writes::authority;
use super::summary::Summary;
use super::{Accounts, table};
use common::backoff::pause;
use common::ids::{OrderId, UserId};
use common::store::{Row, StoreError, get_row, n};
use common::timestamp::Timestamp;
use common::transaction;
use plan::{AuthorityMending, Mending, OrderMending};

pub use stored::{OrderAuthority, OrdersPage};

/// How often a repair begins again if a row changes meanwhile.
const MAX_ATTEMPTS: u32 = 5;
/// The most writes of a transaction (DynamoDB's limit).
const MAX_WRITES: usize = 100;

/// What was done with the orders of a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairedOrders {
    pub orders: usize,
    /// How many of them got another number, or an authority with their version.
    pub changed: usize,
}

impl Accounts {
    /// Counts a user's orders anew and brings their rows in line, unless it is only a trial.
    pub async fn repair_orders(
        &self,
        user: UserId,
        now: Timestamp,
        dry_run: bool,
    ) -> Result<RepairedOrders, StoreError> {
        for attempt in 0..MAX_ATTEMPTS {
            let stored = self.stored_orders(user).await?;
            let mending = stored.mending(now)?;
            if dry_run || self.mend(user, stored.total, &mending).await? {
                return Ok(RepairedOrders { orders: stored.records.len(), changed: mending.orders.len() });
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

    /// Makes the changes. Returns false if a row is no longer as it was read. Then some of the changes may be made.
    async fn mend(&self, user: UserId, total: Option<u64>, mending: &Mending) -> Result<bool, StoreError> {
        let mut groups =
            mending.orders.iter().map(|order| self.mend_order(user, order)).collect::<Result<Vec<_>, _>>()?;
        for (month, hours) in &mending.hours {
            groups.push(vec![self.replace_hours(table::hours(user, month), hours.as_ref())?]);
        }
        let mut seen = total;
        if groups.iter().map(Vec::len).sum::<usize>() >= MAX_WRITES {
            let closed = total.unwrap_or_default();
            if !self.send(vec![self.close_summary(user, total, closed)?]).await? {
                return Ok(false);
            }
            seen = Some(closed);
            if !self.send_groups(std::mem::take(&mut groups)).await? {
                return Ok(false);
            }
        }
        let mut writes: Vec<TransactWriteItem> = groups.into_iter().flatten().collect();
        writes.push(self.replace_summary(user, seen, &mending.summary)?);
        self.send(writes).await
    }

    /// Removes an authority, if its record is still missing. Returns whether it did.
    async fn remove_authority(&self, orphan: &OrderAuthority) -> Result<bool, StoreError> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(table::authority(orphan.id)))
            .condition_expression("#version = :version")
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(orphan.version));
        let absent = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(orphan.record()))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", table::PK);
        let delete = TransactWriteItem::builder().delete(delete.build()?).build();
        let absent = TransactWriteItem::builder().condition_check(absent.build()?).build();
        self.send(vec![delete, absent]).await
    }

    /// Sets the version of an order to 0, in its authority and its record. Returns false if one of them is missing.
    async fn reset_versions(&self, authority: &OrderAuthority) -> Result<bool, StoreError> {
        let rows = [table::authority(authority.id), authority.record()];
        let writes = rows.map(|key| self.set_version(key, None, 0));
        self.send(writes.into_iter().collect::<Result<_, _>>()?).await
    }

    /// Returns the writes that mend an order's authority and number it, while its record is as it was read.
    fn mend_order(&self, user: UserId, mending: &OrderMending) -> Result<Vec<TransactWriteItem>, StoreError> {
        let OrderMending { record, ordinal, .. } = mending;
        let key = table::order(user, &record.position);
        let mut writes = vec![match ordinal {
            Some(ordinal) => self.number(key, record.version, record.ordinal, *ordinal)?,
            None => self.require_version(key, record.version)?,
        }];
        match mending.authority {
            AuthorityMending::Right => {}
            AuthorityMending::Missing => {
                writes.push(self.put_new(authority(user, record.id, record.created_at, record.version))?);
            }
            AuthorityMending::OtherVersion(seen) => {
                writes.push(self.set_version(table::authority(record.id), Some(seen), record.version)?);
            }
        }
        Ok(writes)
    }

    fn number(&self, key: Row, version: u64, seen: u64, ordinal: u64) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .update_expression("SET #ordinal = :ordinal")
            .condition_expression("#version = :version AND #ordinal = :seen")
            .expression_attribute_names("#ordinal", table::ORDINAL)
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":ordinal", n(ordinal))
            .expression_attribute_values(":version", n(version))
            .expression_attribute_values(":seen", n(seen));
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }

    fn require_version(&self, key: Row, version: u64) -> Result<TransactWriteItem, StoreError> {
        let check = ConditionCheck::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .condition_expression("#version = :version")
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(version));
        Ok(TransactWriteItem::builder().condition_check(check.build()?).build())
    }

    /// Returns the write that sets a row's version, if it has the one that was seen, or any if none is given.
    fn set_version(&self, key: Row, seen: Option<u64>, version: u64) -> Result<TransactWriteItem, StoreError> {
        let condition = if seen.is_some() { "#version = :seen" } else { "attribute_exists(#version)" };
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .update_expression("SET #version = :version")
            .condition_expression(condition)
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(version));
        if let Some(seen) = seen {
            update = update.expression_attribute_values(":seen", n(seen));
        }
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }

    fn close_summary(&self, user: UserId, seen: Option<u64>, total: u64) -> Result<TransactWriteItem, StoreError> {
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::summary(user)))
            .update_expression("SET #total = :total REMOVE #months")
            .condition_expression(table::summary_is_as_seen(seen))
            .expression_attribute_names("#total", table::TOTAL)
            .expression_attribute_names("#months", table::MONTHS)
            .expression_attribute_values(":total", n(total));
        if let Some(seen) = seen {
            update = update.expression_attribute_values(":seen", n(seen));
        }
        Ok(TransactWriteItem::builder().update(update.build()?).build())
    }

    /// Returns the write of the right hours of a month. A month without orders has none.
    fn replace_hours(&self, key: Row, hours: Option<&Hours>) -> Result<TransactWriteItem, StoreError> {
        let Some(hours) = hours else {
            let delete = Delete::builder().table_name(&self.table).set_key(Some(key)).build()?;
            return Ok(TransactWriteItem::builder().delete(delete).build());
        };
        let put = Put::builder().table_name(&self.table).set_item(Some(hours.to_row(key))).build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    /// Returns the write of the right summary. A user without orders has none.
    fn replace_summary(
        &self,
        user: UserId,
        seen: Option<u64>,
        summary: &Summary,
    ) -> Result<TransactWriteItem, StoreError> {
        if summary.total > 0 {
            return self.put_summary(user, seen, summary);
        }
        let mut delete = Delete::builder()
            .table_name(&self.table)
            .set_key(Some(table::summary(user)))
            .condition_expression(table::summary_is_as_seen(seen))
            .expression_attribute_names("#total", table::TOTAL);
        if let Some(seen) = seen {
            delete = delete.expression_attribute_values(":seen", n(seen));
        }
        Ok(TransactWriteItem::builder().delete(delete.build()?).build())
    }

    /// Sends groups of writes, each group in one transaction with as many others as fit.
    async fn send_groups(&self, groups: Vec<Vec<TransactWriteItem>>) -> Result<bool, StoreError> {
        let mut writes = Vec::new();
        for mut group in groups {
            if writes.len() + group.len() > MAX_WRITES && !self.send(std::mem::take(&mut writes)).await? {
                return Ok(false);
            }
            writes.append(&mut group);
        }
        if writes.is_empty() { Ok(true) } else { self.send(writes).await }
    }

    /// Sends a transaction. Returns false if one of its conditions failed, or it met another one or was throttled.
    async fn send(&self, writes: Vec<TransactWriteItem>) -> Result<bool, StoreError> {
        let request = self.client.transact_write_items().set_transact_items(Some(writes));
        match transaction::send(request).await {
            Ok(outcome) => Ok(outcome.is_ok()),
            Err(StoreError::Conflict | StoreError::Throttled) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
