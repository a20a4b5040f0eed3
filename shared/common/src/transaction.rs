//! Sends `TransactWriteItems` and tells apart the reasons why a transaction was cancelled.

use std::fmt;

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::builders::TransactWriteItemsFluentBuilder;
use aws_sdk_dynamodb::types::CancellationReason;

use super::store::{Row, StoreError};

/// A transaction in which at least one condition failed. Nothing was written.
#[derive(Debug)]
pub struct Cancelled {
    reasons: Vec<CancellationReason>,
}

impl Cancelled {
    /// Returns whether the condition of the write at `index` failed.
    pub fn failed(&self, index: usize) -> bool {
        self.reasons.get(index).and_then(CancellationReason::code) == Some(CONDITION_FAILED)
    }

    /// Returns the stored row that made the write at `index` fail, if the write asked for it.
    pub fn item(&self, index: usize) -> Option<&Row> {
        self.reasons.get(index)?.item()
    }
}

impl fmt::Display for Cancelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let codes: Vec<&str> = self.reasons.iter().map(|reason| reason.code().unwrap_or("?")).collect();
        f.write_str(&codes.join(", "))
    }
}

const CONDITION_FAILED: &str = "ConditionalCheckFailed";
/// Reasons that say nothing about the writes themselves. The SDK does not look for them among the reasons of a
/// cancellation.
const CONFLICT: &str = "TransactionConflict";
const THROTTLED: [&str; 2] = ["ThrottlingError", "ProvisionedThroughputExceeded"];
/// Reasons that concern a write itself, which would be refused each time.
const INVALID: [&str; 2] = ["ValidationError", "ItemCollectionSizeLimitExceeded"];

/// Sends a transaction. The inner error says which writes' conditions failed. If the transaction met a conflict with
/// another one, or one of its writes was throttled or invalid, the result is a [`StoreError`] even if conditions failed
/// as well.
pub async fn send(request: TransactWriteItemsFluentBuilder) -> Result<Result<(), Cancelled>, StoreError> {
    let error = match request.send().await {
        Ok(_) => return Ok(Ok(())),
        Err(SdkError::ServiceError(error)) => error,
        Err(error) => return Err(error.into()),
    };
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error.err() else {
        return Err(SdkError::ServiceError(error).into());
    };
    let reasons = cancelled.cancellation_reasons().to_vec();
    let has = |wanted: &str| reasons.iter().any(|reason| reason.code() == Some(wanted));
    if has(CONFLICT) {
        return Err(StoreError::Conflict);
    }
    if THROTTLED.into_iter().any(has) {
        return Err(StoreError::Throttled);
    }
    if INVALID.into_iter().any(has) {
        return Err(StoreError::InvalidRequest(Cancelled { reasons }.to_string()));
    }
    let only_conditions = reasons.iter().all(|r| matches!(r.code(), None | Some("None" | CONDITION_FAILED)));
    if only_conditions && has(CONDITION_FAILED) {
        return Ok(Err(Cancelled { reasons }));
    }
    Err(StoreError::Unavailable(Cancelled { reasons }.to_string()))
}
