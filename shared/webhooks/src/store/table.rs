//! The key shapes, attribute names and layouts of the webhooks table, in one place.
//!
//! The endpoints of an account are attributes of one row. So one call finds the endpoints of a whole batch of events
//! or messages, and one condition limits how many an account can have.

use crate::delivery::Status;
use common::change::Change;
use common::ids::{DeliveryId, EndpointId, NoticeId, UserId};
use common::layout::Format;
pub(super) use common::resources::{
    CREATED_AT, DELIVERIES_INDEX, ENDPOINT_ID, LISTED, PARTITION_KEY as PK, SORT_KEY as SK, STATUSES_INDEX, TTL,
    WAKE_AT, WAKE_INDEX, WAKE_SHARD,
};
use common::store::{Row, s};

pub(super) const ACCOUNT_ID: &str = "account_id";
pub(super) const EVENT: &str = "event";
pub(super) const EVENT_ID: &str = "event_id";
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
/// Until when a delivery is kept, in seconds. A delivery that is not pending has this as its TTL.
pub(super) const KEPT_UNTIL: &str = "kept_until";
pub(super) const ATTEMPTS: &str = "attempts";
/// The number of older attempts that are not kept. Absent if it is 0.
pub(super) const DROPPED_ATTEMPTS: &str = "attempts_dropped";
/// The latest UTC day on which owners began rounds, and how many. Absent if they began none.
pub(super) const OWNER_DAY: &str = "owner_day";
pub(super) const OWNER_ROUNDS: &str = "owner_rounds";

/// The number of endpoints that an account has.
pub(super) const COUNT: &str = "count";
pub(super) const URL: &str = "url";
pub(super) const EVENTS: &str = "events";
pub(super) const REASON: &str = "reason";
pub(super) const EPOCH: &str = "epoch";
pub(super) const SECRETS: &str = "secrets";
pub(super) const SECRET_VERSION: &str = "secret_version";
/// Whether the endpoint responds promptly. Absent if that is not known.
pub(super) const PROMPT: &str = "prompt";
/// When it was found slow last. Absent if it never was.
pub(super) const SLOW_AT: &str = "slow_at";
/// The latest warning that deliveries to the endpoint fail: its epoch, and when it was. Absent if there was none.
pub(super) const WARNING: &str = "warning";
pub(super) const WARNED_AT: &str = "at";
/// Of an endpoint, and of its account: the minute of the last trial, and how many there were in it. Absent if none.
pub(super) const TRIAL_MINUTE: &str = "trial_minute";
pub(super) const TRIALS: &str = "trials";
/// When its URL got another host that no test has reached yet. Absent if there is nothing to prove.
pub(super) const HOST_CHANGED_AT: &str = "host_changed_at";
pub(super) const REMOVED_AT: &str = "removed_at";
/// Of an endpoint that was switched off because a delivery failed: when, by which delivery, and with which notice.
pub(super) const DISABLED_AT: &str = "disabled_at";
pub(super) const DISABLED_BY: &str = "disabled_by";
pub(super) const NOTICE_ID: &str = "notice_id";

/// Of a drain: present if no message for it is on its way and nobody runs it.
pub(super) const ASLEEP: &str = "asleep";
/// How often the drain was woken.
pub(super) const WAKES: &str = "wakes";
pub(super) const WOKEN_AT: &str = "woken_at";
/// The removed endpoints whose deliveries the drain still has to end.
pub(super) const REMOVED: &str = "removed";

pub(super) const NOTICE: &str = "notice";

/// Every attribute that expressions name.
const ATTRIBUTES: &[&str] = &[
    PK,
    ACCOUNT_ID,
    EVENT,
    EVENT_ID,
    IS_TEST,
    BODY,
    STATUS,
    FAILURE,
    ROUND,
    FAILED_ATTEMPTS,
    TOKEN,
    LEASE_ID,
    LEASE_UNTIL,
    CLAIMS,
    DUE,
    KEPT_UNTIL,
    ATTEMPTS,
    DROPPED_ATTEMPTS,
    OWNER_DAY,
    OWNER_ROUNDS,
    COUNT,
    URL,
    EVENTS,
    REASON,
    EPOCH,
    SECRETS,
    SECRET_VERSION,
    PROMPT,
    WARNING,
    WARNED_AT,
    TRIAL_MINUTE,
    TRIALS,
    HOST_CHANGED_AT,
    REMOVED_AT,
    DISABLED_AT,
    DISABLED_BY,
    NOTICE_ID,
    ASLEEP,
    WAKES,
    WOKEN_AT,
    REMOVED,
    TTL,
    SLOW_AT,
    WAKE_AT,
    WAKE_SHARD,
    LISTED,
    CREATED_AT,
    ENDPOINT_ID,
];

/// Begins a conditional write of a row.
pub(super) fn change(key: Row) -> Change {
    Change::of(key, ATTRIBUTES)
}

/// Begins a change of an account's row that is about the endpoint `#e`, and refused if that was removed. So it never
/// makes a row.
pub(super) fn endpoint_change(account: UserId, id: EndpointId) -> Change {
    let change = change(self::account(account)).name("#e", endpoint_attribute(id));
    change.when("attribute_exists(#e)")
}

pub(super) const ACCOUNT_FORMAT: Format = Format::first("account's endpoints");
pub(super) const ENDPOINT_FORMAT: Format = Format::first("endpoint");
pub(super) const FINDER_FORMAT: Format = Format::first("finder of an endpoint");
pub(super) const DELIVERY_FORMAT: Format = Format::first("delivery");
pub(super) const NOTICE_FORMAT: Format = Format::first("notice");
pub(super) const DRAIN_FORMAT: Format = Format::first("drain");

/// The number of partitions of the wake-up index for drains and notices. With a single one, the limit of a partition
/// would limit the rate of all accounts.
pub const WAKE_SHARDS: u32 = 8;

pub(super) const ACCOUNT_PARTITION: &str = "account#";
pub(super) const FINDER_PARTITION: &str = "endpoint#";
pub(super) const DELIVERY_PARTITION: &str = "delivery#";
pub(super) const NOTICE_PARTITION: &str = "notice#";
pub(super) const DRAIN_PARTITION: &str = "drain#";

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

pub(super) fn drain(account: UserId) -> Row {
    row_key(format!("{DRAIN_PARTITION}{account}"), "drain")
}

pub(super) fn account_of_drain(pk: &str) -> Option<UserId> {
    pk.strip_prefix(DRAIN_PARTITION)?.parse().ok()
}

pub(super) fn notice_of(pk: &str) -> Option<NoticeId> {
    pk.strip_prefix(NOTICE_PARTITION)?.parse().ok()
}

/// Returns the partition of the wake-up index in which an endpoint's deliveries wait: retries, or first attempts of a
/// round.
pub(super) fn waiting(endpoint: EndpointId, is_retry: bool) -> String {
    format!("{}#{endpoint}", if is_retry { "retry" } else { "first" })
}

/// Returns the partition of the index of statuses for an endpoint's deliveries with this status. A delivered one is in
/// none.
pub(super) fn listed(endpoint: EndpointId, status: Status) -> Option<String> {
    (status != Status::Delivered).then(|| format!("{endpoint}#{}", status.as_str()))
}

pub(super) fn delivery_of(pk: &str) -> Option<DeliveryId> {
    pk.strip_prefix(DELIVERY_PARTITION)?.parse().ok()
}

/// Returns the partition of the wake-up index for the drain of an account or a notice with this id.
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
