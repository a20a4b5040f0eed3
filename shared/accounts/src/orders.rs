//! Writes orders. Each order has an authority row, which decides whether a message changes the order. A new order
//! is counted in the same transaction, in its user's summary and in the hours of its month.
//!
//! The orders of one user are read together and written several at a time. A transaction that is refused says whose
//! conditions failed. Those orders are then written alone, so that none of them holds up the others.

use std::collections::{BTreeMap, BTreeSet};

use aws_sdk_dynamodb::types::TransactWriteItem;
use serde::{Deserialize, Serialize};

use super::order_writes::{OrderWrite, WRITES_PER_ORDER};
use super::summary::Summary;
use super::{Accounts, lock, table};
use common::backoff::{MAX_RACES, pause};
use common::ids::{ItemId, ListingId, OrderId, OrderStatus, UserId};
use common::layout::Format;
use common::money::Usd;
use common::records::{OrderSource, PublicOrder, PublicOrderLine};
use common::rows::get_rows;
use common::store::{Attributes, Row, StoreError};
use common::timestamp::Timestamp;
use common::transaction;

/// The most orders that are read together. A batch read has at most 100 keys, and one of them is the summary's.
const ORDERS_PER_READ: usize = 64;
/// The most new orders in a transaction. A reader may see a part of it, and notices by the latest inserts that the summary
/// lists.
pub(super) const INSERTS_PER_TRANSACTION: usize = 4;
/// How often a writer looks whether the latest inserts show. It pauses between, at most 1.3 s in all: long for a
/// transaction, and short for the function, whose other users wait if a damaged table lacks an order.
const LOOKS_AT_LATEST: u32 = 9;
/// The most newer versions of known orders in a transaction. Together they stay below DynamoDB's 4 MB.
const UPDATES_PER_TRANSACTION: usize = 16;

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

/// What became of each message, by its place; `None` if that is not known yet.
type Outcomes = [Option<Result<OrderOutcome, StoreError>>];

/// How a round ended.
enum Round {
    /// The newest message of each order is written.
    Written,
    /// What was read is out of date. Holds the places of the messages whose own conditions failed. If there are none,
    /// the summary has moved.
    Refused(BTreeSet<usize>),
}

impl Accounts {
    /// Applies order messages of one user, each with its version. Returns what became of each, in their order.
    ///
    /// An error concerns only its own message, unless the store is busy or unavailable.
    pub async fn put_orders(
        &self,
        user: UserId,
        messages: &[(PublicOrder, u64)],
    ) -> Vec<Result<OrderOutcome, StoreError>> {
        let mut outcomes = vec![None; messages.len()];
        let mut pending = Vec::with_capacity(messages.len());
        for (place, (order, version)) in messages.iter().enumerate() {
            match pack(order) {
                Ok(data) => pending.push(OrderWrite { place, order, version: *version, data }),
                Err(error) => outcomes[place] = Some(Err(error)),
            }
        }
        while !pending.is_empty() {
            let rest = pending.split_off(pending.len().min(ORDERS_PER_READ));
            let set_aside = self.put_together(user, pending, &mut outcomes).await;
            for message in set_aside {
                self.put_together(user, vec![message], &mut outcomes).await;
            }
            pending = rest;
            // Nor would the rest be stored, and each try takes its time.
            let away = outcomes.iter().flatten().find_map(|outcome| match outcome {
                Err(error @ StoreError::Unavailable(_)) => Some(error.clone()),
                _ => None,
            });
            if let Some(error) = away {
                pending.drain(..).for_each(|message| outcomes[message.place] = Some(Err(error.clone())));
            }
        }
        outcomes.into_iter().map(|outcome| outcome.unwrap_or(Err(StoreError::Conflict))).collect()
    }

    /// Applies messages in rounds until each has an outcome. Returns those that should be applied alone instead. There
    /// are none if there is only one message.
    async fn put_together<'o>(
        &self,
        user: UserId,
        mut pending: Vec<OrderWrite<'o>>,
        outcomes: &mut Outcomes,
    ) -> Vec<OrderWrite<'o>> {
        let is_alone = pending.len() == 1;
        let (mut set_aside, mut races) = (Vec::new(), 0);
        while !pending.is_empty() {
            let round = self.round(user, &pending, outcomes).await;
            pending.retain(|message| outcomes[message.place].is_none());
            let error = match round {
                Ok(Round::Written) => continue,
                Ok(Round::Refused(places)) if !is_alone && !places.is_empty() => {
                    set_aside.extend(pending.extract_if(.., |message| places.contains(&message.place)));
                    continue;
                }
                Ok(Round::Refused(_)) | Err(StoreError::Conflict | StoreError::Throttled) if races < MAX_RACES => {
                    tokio::time::sleep(pause(races)).await;
                    races += 1;
                    continue;
                }
                Ok(Round::Refused(_)) => StoreError::Conflict,
                Err(error @ (StoreError::Conflict | StoreError::Throttled | StoreError::Unavailable(_))) => error,
                Err(error) if is_alone => error,
                Err(_) => {
                    set_aside.append(&mut pending);
                    continue;
                }
            };
            for message in pending.drain(..) {
                outcomes[message.place] = Some(Err(error.clone()));
            }
        }
        set_aside
    }

    /// Reads what is known of the messages' orders, finds the outcomes of messages that do not apply, and writes the
    /// newest of the others for each order. What is left needs another round.
    async fn round(
        &self,
        user: UserId,
        pending: &[OrderWrite<'_>],
        outcomes: &mut Outcomes,
    ) -> Result<Round, StoreError> {
        let ids: BTreeSet<OrderId> = pending.iter().map(|message| message.order.id).collect();
        let keys = ids.into_iter().map(table::authority).chain([table::summary(user)]);
        let rows = get_rows(&self.client, &self.table, keys.collect()).await?;
        let mut open = Vec::with_capacity(pending.len());
        for message in pending {
            let authority = find(&rows, &message.authority());
            match authority.map_or(Ok(None), |authority| settled(authority, user, message)) {
                Ok(None) => open.push(message),
                settled => outcomes[message.place] = settled.transpose(),
            }
        }
        let (updates, inserts): (Vec<_>, Vec<_>) =
            newest(open).into_iter().partition(|message| find(&rows, &message.authority()).is_some());
        for orders in updates.chunks(UPDATES_PER_TRANSACTION) {
            let refused = self.transact(self.update(user, orders)?, orders, outcomes).await?;
            if let Some(places) = refused {
                return Ok(Round::Refused(places));
            }
        }
        let mut summary =
            match find(&rows, &table::summary(user)).map_or_else(|| Ok(Summary::default()), Summary::from_row) {
                Ok(summary) => summary,
                Err(error) => {
                    for message in inserts {
                        outcomes[message.place] = Some(Err(error.clone()));
                    }
                    return Ok(Round::Written);
                }
            };
        if !inserts.is_empty() {
            self.await_latest(user, &summary).await?;
        }
        for orders in inserts.chunks(INSERTS_PER_TRANSACTION) {
            let (writes, next) = self.insertion(user, orders, &summary)?;
            if let Some(places) = self.transact(writes, orders, outcomes).await? {
                return Ok(Round::Refused(places));
            }
            lock(&self.inserts).put(user, (next.era, next.total));
            summary = next;
        }
        Ok(Round::Written)
    }

    /// Waits until the orders of the latest transaction that a summary counts all show. Another transaction may move the
    /// summary as soon as the summary shows, and without this wait any number of half visible transactions could follow
    /// each other. With it only the latest one is, and a summary lists more inserts than that.
    async fn await_latest(&self, user: UserId, summary: &Summary) -> Result<(), StoreError> {
        if lock(&self.inserts).get(&user) == Some(&(summary.era, summary.total)) {
            return Ok(());
        }
        let latest = summary.recent.iter().rev().take(INSERTS_PER_TRANSACTION);
        let keys: Vec<Row> = latest.map(|position| table::order(user, position)).collect();
        for look in 0..LOOKS_AT_LATEST {
            if look > 0 {
                tokio::time::sleep(pause(look - 1)).await;
            }
            if get_rows(&self.client, &self.table, keys.clone()).await?.len() == keys.len() {
                return Ok(());
            }
        }
        let cause =
            "an order that is counted does not show; if it stays so, `marketctl repair --table accounts` mends it";
        Err(StoreError::Unavailable(cause.to_owned()))
    }

    /// Sends a transaction that begins with the writes of these orders. If conditions failed, returns the places of the
    /// orders among whose writes they are.
    async fn transact(
        &self,
        writes: Vec<TransactWriteItem>,
        orders: &[&OrderWrite<'_>],
        outcomes: &mut Outcomes,
    ) -> Result<Option<BTreeSet<usize>>, StoreError> {
        let request = self.client.transact_write_items().set_transact_items(Some(writes));
        let Err(cancelled) = transaction::send(request).await? else {
            for order in orders {
                outcomes[order.place] = Some(Ok(OrderOutcome::Applied));
            }
            return Ok(None);
        };
        let has_failed = |index: usize| (0..WRITES_PER_ORDER).any(|at| cancelled.failed(index * WRITES_PER_ORDER + at));
        let failed = orders.iter().enumerate().filter(|(index, _)| has_failed(*index));
        Ok(Some(failed.map(|(_, order)| order.place).collect()))
    }
}

/// The format of a packed order. Postcard is positional: the order of fields and of enum members is part of it.
const PACKED: Format = Format::first("packed order");

/// An order as it is stored. It has the fields of the answer, but it does not change with the answer: a field that is
/// added there must be named in the conversions below.
#[derive(Serialize, Deserialize)]
struct PackedOrder {
    id: OrderId,
    status: OrderStatus,
    source: OrderSource,
    total_usd: Usd,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
    items: Vec<PackedLine>,
}

/// A line of a stored order.
#[derive(Serialize, Deserialize)]
struct PackedLine {
    listing_id: ListingId,
    price_usd: Usd,
    item_id: Option<ItemId>,
}

impl From<PublicOrder> for PackedOrder {
    fn from(order: PublicOrder) -> Self {
        let PublicOrder { id, status, source, total_usd, created_at, delivered_at, items } = order;
        let items = items.into_iter().map(PackedLine::from).collect();
        Self { id, status, source, total_usd, created_at, delivered_at, items }
    }
}

impl From<PackedOrder> for PublicOrder {
    fn from(order: PackedOrder) -> Self {
        let PackedOrder { id, status, source, total_usd, created_at, delivered_at, items } = order;
        let items = items.into_iter().map(PublicOrderLine::from).collect();
        Self { id, status, source, total_usd, created_at, delivered_at, items }
    }
}

impl From<PublicOrderLine> for PackedLine {
    fn from(line: PublicOrderLine) -> Self {
        let PublicOrderLine { listing_id, price_usd, item_id } = line;
        Self { listing_id, price_usd, item_id }
    }
}

impl From<PackedLine> for PublicOrderLine {
    fn from(line: PackedLine) -> Self {
        let PackedLine { listing_id, price_usd, item_id } = line;
        Self { listing_id, price_usd, item_id }
    }
}

/// Packs an order, so that even a full page of large orders fits in the 1 MB that one DynamoDB call returns.
fn pack(order: &PublicOrder) -> Result<Vec<u8>, StoreError> {
    Ok(postcard::to_extend(&PackedOrder::from(order.clone()), vec![PACKED.writes])?)
}

/// Unpacks an order from a row's data.
pub(super) fn unpack(data: &[u8]) -> Result<PublicOrder, StoreError> {
    let (_, order) = PACKED.split(data)?;
    postcard::from_bytes::<PackedOrder>(order).map(PublicOrder::from).map_err(|error| PACKED.corrupt(&error))
}

/// Returns the row that has this key.
fn find<'r>(rows: &'r [Row], key: &Row) -> Option<&'r Row> {
    rows.iter().find(|row| key.iter().all(|(name, value)| row.get(name) == Some(value)))
}

/// Returns the newest message of each order, in the order in which the messages came. If messages say that an order was
/// created at different times, the first one counts. The others then contradict a known order.
fn newest<'m, 'o>(messages: Vec<&'m OrderWrite<'o>>) -> Vec<&'m OrderWrite<'o>> {
    let mut newest = BTreeMap::<OrderId, &OrderWrite<'o>>::new();
    for message in messages {
        let known = newest.entry(message.order.id).or_insert(message);
        if message.order.created_at == known.order.created_at && message.version > known.version {
            *known = message;
        }
    }
    let mut newest: Vec<_> = newest.into_values().collect();
    newest.sort_by_key(|message| message.place);
    newest
}

/// Returns the outcome if a known order's authority shows that the message does not apply, because it contradicts the
/// order (specification 12.2.5) or is not newer.
fn settled(authority: &Row, user: UserId, message: &OrderWrite<'_>) -> Result<Option<OrderOutcome>, StoreError> {
    table::AUTHORITY_FORMAT.of_row(authority)?;
    let read = Attributes(authority);
    if read.parsed::<UserId>(table::ACCOUNT)? != user {
        return Ok(Some(OrderOutcome::OtherAccount));
    }
    if read.required_number::<i64>(table::CREATED_AT)? != message.order.created_at.millis() {
        return Ok(Some(OrderOutcome::OtherCreation));
    }
    let unchanged = message.version <= read.required_number::<u64>(table::VERSION)?;
    Ok(unchanged.then_some(OrderOutcome::Unchanged))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As rows hold them. These bytes never change: whoever needs others needs another layout.
    const FIRST_LAYOUT: &[u8] = b"\x01\
        \x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\x09delivered\0\xe2\x09\x80\xb4\xb0\x86\xbf\x68\x01\x80\xb4\xb0\x86\xbf\x68\x01\
        \x10\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x09\xe2\x09\x01\x0dak-47-redline";

    #[test]
    fn an_order_in_the_first_layout_is_read() {
        let order = unpack(FIRST_LAYOUT).unwrap();
        assert_eq!((order.status.as_str(), order.total_usd.to_string()), ("delivered", "12.50".to_owned()));
        assert_eq!(order.delivered_at, Some(order.created_at));
        assert_eq!(order.items[0].item_id.as_ref().map(ItemId::as_str), Some("ak-47-redline"));
    }
}
