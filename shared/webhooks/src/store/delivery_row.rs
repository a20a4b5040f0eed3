//! Writes a delivery as a row, and reads it back.

use aws_sdk_dynamodb::types::AttributeValue;

use super::table;
use super::table::{
    ACCOUNT_ID, ATTEMPTS, BODY, CLAIMS, CREATED_AT, DROPPED_ATTEMPTS, DUE, ENDPOINT_ID, EPOCH, EVENT, FAILED_ATTEMPTS,
    FAILURE, IS_TEST, KEPT_UNTIL, LEASE_ID, LEASE_UNTIL, LISTED, PK, ROUND, STATUS, TOKEN, TTL, WAKE_AT, WAKE_SHARD,
};
use crate::delivery::{Attempt, Delivery, Lease, Progress, Status};
use platform::store::{Attributes, Row, StoreError, n, s};
use types::timestamp::Timestamp;

pub(super) fn to_row(delivery: &Delivery) -> Result<Row, StoreError> {
    let progress = &delivery.progress;
    let mut row = table::delivery(delivery.id);
    row.extend(
        [
            (ENDPOINT_ID, s(delivery.endpoint_id.to_string())),
            (ACCOUNT_ID, s(delivery.account_id.to_string())),
            (EVENT, s(delivery.event.as_str())),
            (CREATED_AT, n(delivery.created_at.millis())),
            (BODY, s(&delivery.body)),
            (STATUS, s(progress.status.as_str())),
            (ROUND, n(progress.round)),
            (FAILED_ATTEMPTS, n(progress.failed_attempts)),
            (TOKEN, s(progress.token.to_string())),
            (CLAIMS, n(progress.claims)),
            (DUE, n(progress.due.millis())),
            (ATTEMPTS, attempts_value(&progress.attempts)?),
            (WAKE_SHARD, s(table::waiting(delivery.endpoint_id, progress.failed_attempts > 0))),
            (KEPT_UNTIL, n(delivery.kept_until().seconds())),
        ]
        .map(|(name, value)| (name.to_owned(), value)),
    );
    // What is attempted for the first time is most often delivered at once, and needs no entry.
    let is_first_claim = progress.status == Status::Pending && progress.wake_at.is_none();
    let listed = table::listed(delivery.endpoint_id, progress.status).filter(|_| !is_first_claim);
    let optional = [
        (IS_TEST, delivery.is_test.then_some(AttributeValue::Bool(true))),
        (FAILURE, progress.failure.map(|failure| s(failure.as_str()))),
        (LEASE_ID, progress.lease.map(|lease| s(lease.id.to_string()))),
        (LEASE_UNTIL, progress.lease.map(|lease| n(lease.until.millis()))),
        (WAKE_AT, progress.wake_at.map(|at| n(at.millis()))),
        (EPOCH, progress.epoch.map(n)),
        (TTL, (progress.status != Status::Pending).then(|| n(delivery.kept_until().seconds()))),
        (LISTED, listed.map(s)),
        (DROPPED_ATTEMPTS, (progress.dropped_attempts > 0).then(|| n(progress.dropped_attempts))),
    ];
    row.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    Ok(row)
}

/// Returns the attribute of these attempts.
pub(super) fn attempts_value(attempts: &[Attempt]) -> Result<AttributeValue, StoreError> {
    let attempts = attempts.iter().map(|attempt| Ok(s(serde_json::to_string(attempt)?)));
    Ok(AttributeValue::L(attempts.collect::<Result<_, StoreError>>()?))
}

pub(super) fn from_row(row: &Row) -> Result<Delivery, StoreError> {
    table::DELIVERY_FORMAT.of_row(row)?;
    let read = Attributes(row);
    let pk = read.text(PK).unwrap_or_default();
    Ok(Delivery {
        id: table::delivery_of(pk).ok_or_else(|| StoreError::corrupt(PK))?,
        endpoint_id: read.parsed(ENDPOINT_ID)?,
        account_id: read.parsed(ACCOUNT_ID)?,
        event: read.parsed(EVENT)?,
        is_test: row.contains_key(IS_TEST),
        created_at: Timestamp::from_millis(read.required_number(CREATED_AT)?),
        body: read.text(BODY).ok_or_else(|| StoreError::corrupt(BODY))?.to_owned(),
        progress: progress(row)?,
    })
}

fn progress(row: &Row) -> Result<Progress, StoreError> {
    let read = Attributes(row);
    let time = |name| read.number(name).map(Timestamp::from_millis);
    let lease = match time(LEASE_UNTIL) {
        Some(until) => Some(Lease { id: read.parsed(LEASE_ID)?, until }),
        None => None,
    };
    Ok(Progress {
        status: read.parsed(STATUS)?,
        failure: row.contains_key(FAILURE).then(|| read.parsed(FAILURE)).transpose()?,
        round: read.required_number(ROUND)?,
        failed_attempts: read.required_number(FAILED_ATTEMPTS)?,
        token: read.parsed(TOKEN)?,
        lease,
        claims: read.required_number(CLAIMS)?,
        due: time(DUE).ok_or_else(|| StoreError::corrupt(DUE))?,
        wake_at: time(WAKE_AT),
        epoch: read.optional_number(EPOCH)?,
        attempts: attempts(row)?,
        dropped_attempts: read.optional_number(DROPPED_ATTEMPTS)?.unwrap_or_default(),
    })
}

fn attempts(row: &Row) -> Result<Vec<Attempt>, StoreError> {
    let unreadable = || StoreError::corrupt(ATTEMPTS);
    let attempts = row.get(ATTEMPTS).and_then(|value| value.as_l().ok()).ok_or_else(unreadable)?;
    let attempt = |value: &AttributeValue| {
        let text = value.as_s().map_err(|_| unreadable())?;
        serde_json::from_str(text).map_err(|_| unreadable())
    };
    attempts.iter().map(attempt).collect()
}
