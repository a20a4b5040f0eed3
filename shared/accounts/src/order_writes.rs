//! The rows of orders, as parts of a transaction: orders, their authorities, and what counts them.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};

use super::hours::{Hour, Hours};
use super::summary::Summary;
use super::{Accounts, table};
use common::ids::{OrderId, UserId};
use common::records::PublicOrder;
use common::store::{Row, StoreError, b, n, s};
use common::timestamp::Timestamp;

/// How many writes of a transaction belong to one order: its authority and its record.
pub(super) const WRITES_PER_ORDER: usize = 2;

/// An order that is to be written, from one of several messages.
pub(super) struct OrderWrite<'o> {
    /// The message's place among them.
    pub(super) place: usize,
    pub(super) order: &'o PublicOrder,
    pub(super) version: u64,
    /// The packed order.
    pub(super) data: Vec<u8>,
}

impl OrderWrite<'_> {
    /// Returns the key of the order's authority.
    pub(super) fn authority(&self) -> Row {
        table::authority(self.order.id)
    }

    fn position(&self) -> String {
        table::order_position(self.order.created_at, self.order.id)
    }
}

impl Accounts {
    /// Returns the writes of new orders, in their order, and then those of what counts them: their user's summary, which
    /// moves from `seen` to the summary that is returned, and the hours of their months. Each order has
    /// [`WRITES_PER_ORDER`].
    pub(super) fn insertion(
        &self,
        user: UserId,
        orders: &[&OrderWrite<'_>],
        seen: &Summary,
    ) -> Result<(Vec<TransactWriteItem>, Summary), StoreError> {
        let mut next = seen.clone();
        let mut hours = BTreeMap::<String, Hours>::new();
        let mut writes = Vec::with_capacity(orders.len() * (WRITES_PER_ORDER + 1) + 1);
        for new in orders {
            let (month, position) = (new.order.created_at.month(), new.position());
            hours.entry(month.clone()).or_default().insert(Hour::of(&position)?);
            next.insert(month, position.clone());
            let authority = authority(user, new.order.id, new.order.created_at, new.version);
            let mut record = table::order(user, &position);
            record.extend([
                (table::VERSION.to_owned(), n(new.version)),
                (table::ORDINAL.to_owned(), n(next.total)),
                (table::DATA.to_owned(), b(new.data.as_slice())),
            ]);
            writes.push(self.put_new(authority)?);
            writes.push(self.put_new(record)?);
        }
        writes.push(self.move_summary(user, seen, &next)?);
        for (month, inserted) in &hours {
            writes.push(self.count_hours(user, month, inserted, &next)?);
        }
        Ok((writes, next))
    }

    /// Returns the writes of newer versions of known orders, [`WRITES_PER_ORDER`] for each, in their order.
    pub(super) fn update(
        &self,
        user: UserId,
        orders: &[&OrderWrite<'_>],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut writes = Vec::with_capacity(orders.len() * WRITES_PER_ORDER);
        for newer in orders {
            writes.push(self.newer(newer.authority(), newer.version, None)?);
            writes.push(self.newer(table::order(user, &newer.position()), newer.version, Some(&newer.data))?);
        }
        Ok(writes)
    }

    pub(super) fn put_new(&self, row: Row) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", table::PK)
            .build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    fn move_summary(&self, user: UserId, seen: &Summary, next: &Summary) -> Result<TransactWriteItem, StoreError> {
        self.put_summary(user, (seen.total > 0).then_some(seen.total), next)
    }

    /// Returns the write that replaces a summary of which the total was seen, or none.
    pub(super) fn put_summary(
        &self,
        user: UserId,
        seen: Option<u64>,
        next: &Summary,
    ) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder().table_name(&self.table).set_key(Some(table::summary(user)));
        let mut update = update.condition_expression(table::summary_is_as_seen(seen));
        if let Some(seen) = seen {
            update = update.expression_attribute_values(":seen", n(seen));
        }
        for (name, value) in next.to_attributes() {
            update = update
                .expression_attribute_names(format!("#{name}"), name)
                .expression_attribute_values(format!(":{name}"), value);
        }
        let assignments: Vec<String> =
            next.to_attributes().iter().map(|(name, _)| format!("#{name} = :{name}")).collect();
        let update = update.update_expression(format!("SET {}", assignments.join(", "))).build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Returns the write that adds inserted orders to the hours of their month. `next` is the summary after them.
    fn count_hours(
        &self,
        user: UserId,
        month: &str,
        inserted: &Hours,
        next: &Summary,
    ) -> Result<TransactWriteItem, StoreError> {
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(table::hours(user, month)))
            .expression_attribute_names("#orders", table::ORDERS)
            .expression_attribute_values(":orders", n(next.orders_in(month)));
        let mut additions = Vec::new();
        for (hour, orders) in inserted.iter() {
            let name = hour.attribute();
            additions.push(format!("#{name} :{name}"));
            update = update
                .expression_attribute_values(format!(":{name}"), n(orders))
                .expression_attribute_names(format!("#{name}"), name);
        }
        let expression = format!("SET #orders = :orders ADD {}", additions.join(", "));
        Ok(TransactWriteItem::builder().update(update.update_expression(expression).build()?).build())
    }

    fn newer(&self, key: Row, version: u64, data: Option<&[u8]>) -> Result<TransactWriteItem, StoreError> {
        let mut update = Update::builder()
            .table_name(&self.table)
            .set_key(Some(key))
            .condition_expression("#version < :version")
            .expression_attribute_names("#version", table::VERSION)
            .expression_attribute_values(":version", n(version));
        let mut expression = "SET #version = :version".to_owned();
        if let Some(data) = data {
            expression.push_str(", #data = :data");
            update =
                update.expression_attribute_names("#data", table::DATA).expression_attribute_values(":data", b(data));
        }
        let update = update.update_expression(expression).build()?;
        Ok(TransactWriteItem::builder().update(update).build())
    }
}

/// Returns an order's authority.
pub(super) fn authority(user: UserId, id: OrderId, created_at: Timestamp, version: u64) -> Row {
    let mut row = table::authority(id);
    row.extend([
        (table::VERSION.to_owned(), n(version)),
        (table::ACCOUNT.to_owned(), s(user.to_string())),
        (table::CREATED_AT.to_owned(), n(created_at.millis())),
    ]);
    row
}
