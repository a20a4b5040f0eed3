//! Writes orders. Each order has an authority row, which decides whether a message changes the order. A new order
//! updates its user's summary in the same transaction.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem, Update};

use super::summary::Summary;
use super::{Accounts, table};
use platform::backoff::{MAX_RACES, pause};
use platform::layout::Format;
use platform::store::{Attributes, Row, StoreError, b, get_row, n, s};
use platform::transaction;
use types::ids::UserId;
use types::records::PublicOrder;
use types::timestamp::Timestamp;

/// What became of an order message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderOutcome {
    /// The order is new, or newer than what was there.
    Applied,
    /// The stored order is as new as the message, or newer.
    Unchanged,
    /// The order is known under another account.
    OtherAccount,
    /// The order is known with another creation time.
    OtherCreation,
}

impl Accounts {
    /// Applies an order message.
    pub async fn put_order(&self, user: UserId, order: &PublicOrder, version: u64) -> Result<OrderOutcome, StoreError> {
        let data = pack(order)?;
        for attempt in 0..MAX_RACES {
            let authority = get_row(&self.client, &self.table, table::authority(order.id)).await?;
            let written = match &authority {
                Some(authority) => {
                    if let Some(outcome) = settled(authority, user, order.created_at, version)? {
                        return Ok(outcome);
                    }
                    self.update(user, order, version, &data).await
                }
                None => self.insert(user, order, version, &data).await,
            };
            match written {
                Ok(Ok(())) => return Ok(OrderOutcome::Applied),
                Ok(Err(_)) | Err(StoreError::Conflict) => tokio::time::sleep(pause(attempt)).await,
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::Conflict)
    }

    async fn insert(&self, user: UserId, order: &PublicOrder, version: u64, data: &[u8]) -> Written {
        let seen = self.summary(user).await?;
        let position = table::order_position(order.created_at, order.id);
        let mut next = seen.clone();
        next.insert(order.created_at.month(), position.clone());

        let mut authority = table::authority(order.id);
        authority.extend([
            (table::VERSION.to_owned(), n(version)),
            (table::ACCOUNT.to_owned(), s(user.to_string())),
            (table::CREATED_AT.to_owned(), n(order.created_at.millis())),
        ]);
        let mut record = table::order(user, &position);
        record.extend([
            (table::VERSION.to_owned(), n(version)),
            (table::ORDINAL.to_owned(), n(next.total)),
            (table::DATA.to_owned(), b(data)),
        ]);
        let new = [authority, record].map(|row| self.put_new(row));
        let mut writes = new.into_iter().collect::<Result<Vec<_>, _>>()?;
        writes.push(self.move_summary(user, &seen, &next)?);
        self.transact(writes).await
    }

    async fn update(&self, user: UserId, order: &PublicOrder, version: u64, data: &[u8]) -> Written {
        let position = table::order_position(order.created_at, order.id);
        let authority = self.newer(table::authority(order.id), version, None)?;
        let record = self.newer(table::order(user, &position), version, Some(data))?;
        self.transact(vec![authority, record]).await
    }

    fn put_new(&self, row: Row) -> Result<TransactWriteItem, StoreError> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(row))
            .condition_expression("attribute_not_exists(#pk)")
            .expression_attribute_names("#pk", table::PK)
            .build()?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    fn move_summary(&self, user: UserId, seen: &Summary, next: &Summary) -> Result<TransactWriteItem, StoreError> {
        let update = Update::builder().table_name(&self.table).set_key(Some(table::summary(user)));
        let condition = if seen.total == 0 { "attribute_not_exists(#total)" } else { "#total = :seen" };
        let mut update = update.condition_expression(condition);
        if seen.total > 0 {
            update = update.expression_attribute_values(":seen", n(seen.total));
        }
        for (name, value) in next.to_attributes() {
            update = update
                .expression_attribute_names(format!("#{name}"), name)
                .expression_attribute_values(format!(":{name}"), value);
        }
        let assignments = next.to_attributes().map(|(name, _)| format!("#{name} = :{name}")).join(", ");
        let update = update.update_expression(format!("SET {assignments}")).build()?;
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

    async fn transact(&self, writes: Vec<TransactWriteItem>) -> Written {
        transaction::send(self.client.transact_write_items().set_transact_items(Some(writes))).await
    }
}

type Written = Result<Result<(), transaction::Cancelled>, StoreError>;

/// The format of a packed order. Postcard is positional: the order of fields and of enum members is part of it.
const PACKED: Format = Format::first("packed order");

/// Packs an order, so that even a full page of large orders fits in the 1 MB that one DynamoDB call returns.
fn pack(order: &PublicOrder) -> Result<Vec<u8>, StoreError> {
    Ok(postcard::to_extend(order, vec![PACKED.writes])?)
}

/// Unpacks an order from a row's data.
pub(super) fn unpack(data: &[u8]) -> Result<PublicOrder, StoreError> {
    let (_, order) = PACKED.split(data)?;
    postcard::from_bytes(order).map_err(|error| PACKED.corrupt(&error))
}

/// Returns the outcome if a known order's authority shows that the message does not apply, because it contradicts the
/// order (specification 12.2.5) or is not newer.
fn settled(
    authority: &Row,
    user: UserId,
    created_at: Timestamp,
    version: u64,
) -> Result<Option<OrderOutcome>, StoreError> {
    table::AUTHORITY_FORMAT.of_row(authority)?;
    let read = Attributes(authority);
    if read.parsed::<UserId>(table::ACCOUNT)? != user {
        return Ok(Some(OrderOutcome::OtherAccount));
    }
    if read.required_number::<i64>(table::CREATED_AT)? != created_at.millis() {
        return Ok(Some(OrderOutcome::OtherCreation));
    }
    let unchanged = version <= read.required_number::<u64>(table::VERSION)?;
    Ok(unchanged.then_some(OrderOutcome::Unchanged))
}
