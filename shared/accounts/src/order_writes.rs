//! The rows of orders, as parts of a transaction, and the marks of busy months. Marks change in the transaction that
//! inserts an order, so they are as exact as the summary.

use std::collections::BTreeMap;

use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};

use super::marks::{Cut, Marks};
use super::summary::{Place, Summary};
use super::{Accounts, table};
use common::ids::{OrderId, UserId};
use common::records::PublicOrder;
use common::store::{Attributes, Row, StoreError, b, get_row, n, s};
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
    /// Returns the writes of new orders, in their order, and then that of their user's summary, which moves from `seen`
    /// to the summary that is returned. Each order has [`WRITES_PER_ORDER`]. They hold only while the summary is as it
    /// was seen, so what follows from a user's orders and the summary can be written with them without a condition of
    /// its own.
    pub(super) fn insertion(
        &self,
        user: UserId,
        orders: &[&OrderWrite<'_>],
        seen: &Summary,
    ) -> Result<(Vec<TransactWriteItem>, Summary), StoreError> {
        let mut next = seen.clone();
        let mut writes = Vec::with_capacity(orders.len() * WRITES_PER_ORDER + 1);
        for new in orders {
            let position = new.position();
            next.insert(new.order.created_at.month(), position.clone());
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

    /// Reads the marks of a month. There are none if it has few orders.
    pub(super) async fn marks(&self, user: UserId, month: &str) -> Result<Option<Marks>, StoreError> {
        let Some(row) = get_row(&self.client, &self.table, table::marks(user, month)).await? else { return Ok(None) };
        Marks::from_row(&row).map(Some)
    }

    /// Returns the writes that add new orders to the marks. `seen` is the summary before these orders, and the
    /// transaction must be cancelled if that has changed.
    pub(super) async fn mark(
        &self,
        user: UserId,
        seen: &Summary,
        inserted: &[Place],
    ) -> Result<Vec<TransactWriteItem>, StoreError> {
        let mut months = BTreeMap::<String, Vec<Place>>::new();
        for place in inserted {
            months.entry(place.at.month()).or_default().push(*place);
        }
        let mut writes = Vec::new();
        for (month, places) in months {
            if seen.orders_in(&month) >= self.block_orders {
                let marks = self.marks_with(user, seen, &month, &places).await?;
                writes.push(self.put_marks(user, &month, &marks)?);
            }
        }
        Ok(writes)
    }

    async fn marks_with(
        &self,
        user: UserId,
        seen: &Summary,
        month: &str,
        inserted: &[Place],
    ) -> Result<Marks, StoreError> {
        let mut marks = Marks::as_of(self.marks(user, month).await?, seen, month);
        let cut = inserted.first().and_then(|place| marks.too_large(month, *place, self.block_orders));
        if let Some(cut) = cut {
            let newest = self.newest_orders(user, seen, &cut).await?;
            marks.cut(&cut, &newest, inserted);
        }
        for place in inserted {
            marks.insert(*place);
        }
        Ok(marks)
    }

    /// Reads the newest orders of a block, without their data. Returns none if the read may have missed one that the
    /// summary counts. Then the block is cut at a later insert.
    async fn newest_orders(&self, user: UserId, seen: &Summary, cut: &Cut) -> Result<Vec<Place>, StoreError> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .scan_index_forward(false)
            .limit(i32::try_from(cut.read).unwrap_or(i32::MAX))
            .key_condition_expression("#pk = :pk AND #sk BETWEEN :from AND :below")
            .projection_expression("#sk, #ordinal")
            .expression_attribute_names("#pk", table::PK)
            .expression_attribute_names("#sk", table::SK)
            .expression_attribute_names("#ordinal", table::ORDINAL)
            .expression_attribute_values(":pk", s(table::orders_partition(user)))
            .expression_attribute_values(":from", s(&cut.from))
            .expression_attribute_values(":below", s(&cut.below));
        let page = query.send().await?;
        let mut positions = Vec::new();
        for row in page.items() {
            let position: String = Attributes(row).parsed(table::SK)?;
            let ordinal: u64 = Attributes(row).required_number(table::ORDINAL)?;
            if ordinal <= seen.total && position < cut.below {
                positions.push(position);
            }
        }
        let is_whole = page.last_evaluated_key().is_none();
        let oldest = if is_whole { Some(&cut.from) } else { positions.last() };
        let was_read = |position: &&String| oldest.is_some_and(|oldest| *position >= oldest) && **position < cut.below;
        if !seen.recent.iter().filter(was_read).all(|position| positions.contains(position)) {
            return Ok(Vec::new());
        }
        let places: Option<Vec<Place>> = positions.iter().map(|position| Place::parse(position)).collect();
        places.ok_or_else(|| StoreError::corrupt(table::SK))
    }

    pub(super) fn put_marks(&self, user: UserId, month: &str, marks: &Marks) -> Result<TransactWriteItem, StoreError> {
        let row = marks.to_row(table::marks(user, month))?;
        let put = Put::builder().table_name(&self.table).set_item(Some(row)).build()?;
        Ok(TransactWriteItem::builder().put(put).build())
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
