//! The key shapes, attribute names and layouts of the accounts table, in one place.

use common::ids::{OrderId, UserId};
use common::layout::Format;
pub(super) use common::resources::{PARTITION_KEY as PK, SORT_KEY as SK};
use common::store::{Row, s};
use common::timestamp::Timestamp;

pub(super) const VERSION: &str = "version";
pub(super) const DATA: &str = "data";
pub(super) const ACCOUNT: &str = "account_id";
pub(super) const CREATED_AT: &str = "created_at";
/// The order's place in the sequence of the user's inserts, from 1.
pub(super) const ORDINAL: &str = "ordinal";
pub(super) const TOTAL: &str = "total";
pub(super) const MONTHS: &str = "months";
pub(super) const RECENT: &str = "recent";
pub(super) const ERA: &str = "era";
/// The number of orders of a month.
pub(super) const ORDERS: &str = "orders";
/// An attribute that counts the orders of one hour: this, the day of the month and the hour, each with two digits.
pub(super) const HOUR: &str = "h";

pub(super) const ORDER_FORMAT: Format = Format::first("order");
pub(super) const AUTHORITY_FORMAT: Format = Format::first("order authority");
pub(super) const SUMMARY_FORMAT: Format = Format::first("order summary");
pub(super) const HOURS_FORMAT: Format = Format::first("order hours");
pub(super) const BALANCE_FORMAT: Format = Format::first("balance");

/// The partitions whose rows belong to a user's orders, without the user.
const PARTITIONS_OF_A_USER: [&str; 3] = ["orders#", "summary#", "hours#"];

/// Returns the user whose orders, summary or hours are in a partition.
pub(super) fn owner(partition: &str) -> Option<UserId> {
    PARTITIONS_OF_A_USER.iter().find_map(|start| partition.strip_prefix(start)?.parse().ok())
}

/// Returns the order whose authority is in a partition.
pub(super) fn authority_of(partition: &str) -> Option<OrderId> {
    partition.strip_prefix("order#")?.parse().ok()
}

/// Returns the condition that the summary's `#total` is `:seen`, or that there is no summary.
pub(super) const fn summary_is_as_seen(seen: Option<u64>) -> &'static str {
    if seen.is_some() { "#total = :seen" } else { "attribute_not_exists(#total)" }
}

pub(super) fn hours_partition(user: UserId) -> String {
    format!("hours#{user}")
}

pub(super) fn orders_partition(user: UserId) -> String {
    format!("orders#{user}")
}

/// Returns an order's position: its time in a fixed width, then its id. So text order is time order.
pub(super) fn order_position(created_at: Timestamp, id: OrderId) -> String {
    format!("{created_at}#{id}")
}

/// Parses an order's position.
pub(super) fn parse_order_position(position: &str) -> Option<(Timestamp, OrderId)> {
    let (at, id) = position.split_once('#')?;
    Some((at.parse().ok()?, id.parse().ok()?))
}

pub(super) fn order(user: UserId, position: &str) -> Row {
    place(orders_partition(user), position)
}

pub(super) fn authority(id: OrderId) -> Row {
    place(format!("order#{id}"), "authority")
}

pub(super) fn summary(user: UserId) -> Row {
    place(format!("summary#{user}"), "summary")
}

/// Returns the key of the hours of a month (`YYYY-MM`).
pub(super) fn hours(user: UserId, month: &str) -> Row {
    place(hours_partition(user), month)
}

pub(super) fn balance(user: UserId) -> Row {
    place(format!("balance#{user}"), "balance")
}

fn place(pk: String, sk: &str) -> Row {
    Row::from([(PK.to_owned(), s(pk)), (SK.to_owned(), s(sk))])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn order() -> impl Strategy<Value = (Timestamp, OrderId)> {
        (0i64..3, any::<u128>()).prop_map(|(millis, id)| (Timestamp::from_millis(millis), Uuid::from_u128(id).into()))
    }

    proptest! {
        #[test]
        fn positions_sort_by_time_and_id(a in order(), b in order()) {
            let [a_text, b_text] = [a, b].map(|(at, id)| order_position(at, id));
            prop_assert_eq!(a.cmp(&b), a_text.cmp(&b_text));
            prop_assert_eq!(parse_order_position(&a_text), Some(a));
        }
    }
}
