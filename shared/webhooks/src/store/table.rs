//! The key shapes, attribute names and layouts of the webhooks table, in one place.
//!
//! The endpoints of an account are attributes of one row. So one call finds the endpoints of a whole batch of events
//! or messages, and one condition limits how many an account can have.

use crate::delivery::Lane;
use platform::layout::Format;
pub(super) use platform::resources::{
    CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID, PARTITION_KEY as PK, SORT_KEY as SK, TTL, WAKE_AT, WAKE_INDEX,
    WAKE_SHARD,
};
use platform::store::{Row, s};
use types::ids::{DeliveryId, EndpointId, NoticeId, UserId};

pub(super) const ACCOUNT_ID: &str = "account_id";
pub(super) const EVENT: &str = "event";
pub(super) const IS_TEST: &str = "is_test";
pub(super) const BODY: &str = "body";
pub(super) const STATUS: &str = "status";
pub(super) const FAILURE: &str = "failure";
pub(super) const ROUND: &str = "round";
pub(super) const FAILED_ATTEMPTS: &str = "recorded";
pub(super) const TOKEN: &str = "token";
pub(super) const LEASE_ID: &str = "lease_id";
pub(super) const LEASE_UNTIL: &str = "lease_until";
pub(super) const CLAIMS: &str = "claims";
pub(super) const DUE: &str = "due";
pub(super) const RESENT: &str = "resent";
/// Absent if it is 0.
pub(super) const TURNS: &str = "turns";
pub(super) const ATTEMPTS: &str = "attempts";
/// The number of older attempts that are not kept. Absent if it is 0.
pub(super) const DROPPED_ATTEMPTS: &str = "attempts_dropped";

/// The number of endpoints that an account has.
pub(super) const COUNT: &str = "count";
pub(super) const URL: &str = "url";
pub(super) const EVENTS: &str = "events";
pub(super) const REASON: &str = "reason";
pub(super) const EPOCH: &str = "epoch";
pub(super) const SECRETS: &str = "secrets";
pub(super) const SECRET_VERSION: &str = "secret_version";
pub(super) const SLOW_UNTIL: &str = "slow_until";
/// Whether the endpoint responds promptly. Absent if that is not known.
pub(super) const PROMPT: &str = "prompt";
/// The latest warning that deliveries to the endpoint fail: its epoch, when it was, and whether it is over. Absent if
/// there was none.
pub(super) const WARNING: &str = "warning";
pub(super) const WARNED_AT: &str = "at";
pub(super) const IS_OVER: &str = "is_over";
pub(super) const REMOVED_AT: &str = "removed_at";
/// Of an endpoint that was switched off because a delivery failed: when, by which delivery, and with which notice.
pub(super) const DISABLED_AT: &str = "disabled_at";
pub(super) const DISABLED_BY: &str = "disabled_by";
pub(super) const NOTICE_ID: &str = "notice_id";

/// Of a place in an account's share: the attempt that holds it, and until when.
pub(super) const HOLDER: &str = "holder";
pub(super) const UNTIL: &str = "until";
pub(super) const RESERVED_UNTIL: &str = "reserved_until";

pub(super) const NOTICE: &str = "notice";
/// The wake-up that a sweep gave a row which it could not read. The row is still set aside if that is its wake-up.
pub(super) const SET_ASIDE: &str = "set_aside";
pub(super) const PROBED_AT: &str = "probed_at";

pub(super) const ACCOUNT_FORMAT: Format = Format::first("account's endpoints");
pub(super) const ENDPOINT_FORMAT: Format = Format::first("endpoint");
pub(super) const FINDER_FORMAT: Format = Format::first("finder of an endpoint");
pub(super) const DELIVERY_FORMAT: Format = Format::first("delivery");
pub(super) const NOTICE_FORMAT: Format = Format::first("notice");
pub(super) const LANE_FORMAT: Format = Format::first("lane mark");

/// The number of partitions of the wake-up index. With a single one, the limit of a partition would limit the rate of
/// all deliveries.
pub const WAKE_SHARDS: u32 = 8;

pub(super) const ACCOUNT_PARTITION: &str = "account#";
pub(super) const FINDER_PARTITION: &str = "endpoint#";
pub(super) const DELIVERY_PARTITION: &str = "delivery#";
pub(super) const NOTICE_PARTITION: &str = "notice#";
pub(super) const LANE_PARTITION: &str = "lane#";

/// What an entry of the wake-up index stands for.
pub(super) enum Wake {
    /// A pending delivery.
    Delivery,
    /// A notice that may not have been sent.
    Notice(NoticeId),
}

/// Returns the table key of an account's row, which holds its endpoints.
pub(super) fn account(id: UserId) -> Row {
    row_key(account_partition(id), "endpoints")
}

fn account_partition(id: UserId) -> String {
    format!("{ACCOUNT_PARTITION}{id}")
}

pub(super) fn account_of(pk: &str) -> Option<UserId> {
    pk.strip_prefix(ACCOUNT_PARTITION)?.parse().ok()
}

/// Returns the name of an endpoint's attribute in its account's row.
pub(super) fn endpoint_attribute(id: EndpointId) -> String {
    format!("endpoint_{id}")
}

pub(super) fn endpoint_of_attribute(name: &str) -> Option<EndpointId> {
    name.strip_prefix("endpoint_")?.parse().ok()
}

/// Returns the name of a place's attribute in its account's row.
pub(super) fn place_attribute(number: usize) -> String {
    format!("place_{number}")
}

/// Returns the table key of the row that names the account of an endpoint.
pub(super) fn finder(id: EndpointId) -> Row {
    row_key(format!("{FINDER_PARTITION}{id}"), "account")
}

pub(super) fn endpoint_of_finder(pk: &str) -> Option<EndpointId> {
    pk.strip_prefix(FINDER_PARTITION)?.parse().ok()
}

pub(super) fn delivery(id: DeliveryId) -> Row {
    row_key(format!("{DELIVERY_PARTITION}{id}"), "delivery")
}

pub(super) fn notice(id: NoticeId) -> Row {
    row_key(format!("{NOTICE_PARTITION}{id}"), "notice")
}

pub(super) fn lane(lane: Lane) -> Row {
    row_key(format!("{LANE_PARTITION}{}", lane.as_str()), "lane")
}

/// Returns what a partition key of the table stands for, if such rows have wake-ups.
pub(super) fn wake(pk: &str) -> Option<Wake> {
    if delivery_of(pk).is_some() {
        return Some(Wake::Delivery);
    }
    pk.strip_prefix(NOTICE_PARTITION)?.parse().ok().map(Wake::Notice)
}

pub(super) fn delivery_of(pk: &str) -> Option<DeliveryId> {
    pk.strip_prefix(DELIVERY_PARTITION)?.parse().ok()
}

/// Returns the partition of the wake-up index for a delivery or notice with this id.
pub(super) fn wake_shard(id: uuid::Uuid) -> String {
    wake_partition(crc32fast::hash(id.as_bytes()) % WAKE_SHARDS)
}

pub(super) fn wake_partition(shard: u32) -> String {
    format!("wake#{shard}")
}

/// Returns the table key of a row.
pub(super) fn key_of(row: &Row) -> Row {
    let part = |name: &str| row.get(name).map(|value| (name.to_owned(), value.clone()));
    [PK, SK].into_iter().filter_map(part).collect()
}

fn row_key(pk: String, sk: &str) -> Row {
    Row::from([(PK.to_owned(), s(pk)), (SK.to_owned(), s(sk))])
}
