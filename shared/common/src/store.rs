//! What the crates of tables and of the bucket need: errors, reads, versioned writes, attributes, and retries after
//! conflicts.

use std::collections::HashMap;
use std::future::Future;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::put_item::{PutItemError, PutItemOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemError, UpdateItemOutput};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use thiserror::Error;

use crate::backoff;

/// The codes of requests that DynamoDB takes for invalid.
const INVALID: [&str; 3] =
    ["ValidationException", "SerializationException", "ItemCollectionSizeLimitExceededException"];
/// The HTTP status of a request that is too large to be read.
const CONTENT_TOO_LARGE: u16 = 413;

/// A row as DynamoDB returns it.
pub type Row = HashMap<String, AttributeValue>;

/// Why a call to DynamoDB or S3 failed.
#[derive(Clone, Debug, Error)]
pub enum StoreError {
    /// Another transaction holds one of the rows. The same call may be repeated.
    #[error("transaction conflict")]
    Conflict,
    /// A part of the transaction was throttled, and nothing was written. The same call may be repeated.
    #[error("transaction throttled")]
    Throttled,
    /// The store was unreachable, throttled the call, did not answer in time or refused, or the answer was not its own.
    #[error("{0}")]
    Unavailable(String),
    /// DynamoDB takes the request for invalid, for example because a row would be too large. It would refuse the same
    /// request each time.
    #[error("invalid request: {0}")]
    InvalidRequest(String),
    /// This code could not put the request together. That is a defect in the code.
    #[error("cannot put the request together: {0}")]
    Defect(String),
    /// A row that this code did not write, or can no longer read.
    #[error("unreadable row: {what}")]
    Corrupt {
        /// The attribute and what is wrong with it.
        what: String,
    },
}

impl StoreError {
    /// Makes the error for a row with an attribute that is missing or malformed.
    pub fn corrupt(what: impl Into<String>) -> Self {
        Self::Corrupt { what: what.into() }
    }
}

impl From<BuildError> for StoreError {
    fn from(error: BuildError) -> Self {
        Self::Defect(error.to_string())
    }
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        Self::Defect(error.to_string())
    }
}

impl From<postcard::Error> for StoreError {
    fn from(error: postcard::Error) -> Self {
        Self::Defect(error.to_string())
    }
}

impl<E> From<SdkError<E, HttpResponse>> for StoreError
where
    E: ProvideErrorMetadata + std::error::Error + Send + Sync + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        match error.code() {
            Some("TransactionConflictException" | "TransactionInProgressException") => Self::Conflict,
            Some(code) if INVALID.contains(&code) => Self::InvalidRequest(explain(&error)),
            _ if matches!(error, SdkError::ConstructionFailure(_)) => Self::Defect(explain(&error)),
            _ if error.raw_response().is_some_and(|response| response.status().as_u16() == CONTENT_TOO_LARGE) => {
                Self::InvalidRequest(explain(&error))
            }
            _ => Self::Unavailable(explain(&error)),
        }
    }
}

/// Reads a row as the last completed write left it (a strongly consistent read). Returns `None` if there is none.
pub async fn get_row(client: &Client, table: &str, key: Row) -> Result<Option<Row>, StoreError> {
    let request = client.get_item().table_name(table).set_key(Some(key)).consistent_read(true);
    Ok(request.send().await?.item)
}

/// The condition that a stored row is absent or older, by the number that `#version` names and `:version` holds.
pub const IS_NEWER: &str = "attribute_not_exists(#version) OR #version < :version";

/// Puts a row unless the stored one is as new or newer. `version` names the attribute that tells, and `number` is the
/// row's own. Returns whether anything changed.
pub async fn put_newer(
    client: &Client,
    table: &str,
    row: Row,
    version: &str,
    number: AttributeValue,
) -> Result<bool, StoreError> {
    let put = client
        .put_item()
        .table_name(table)
        .set_item(Some(row))
        .item(version, number.clone())
        .condition_expression(IS_NEWER)
        .expression_attribute_names("#version", version)
        .expression_attribute_values(":version", number);
    changed(put.send().await)
}

/// Sets a row's version to 0, so that a message with any later version applies. Returns the version that it had, or
/// `None` if there is no such row.
pub async fn reset_version(client: &Client, table: &str, key: Row, version: &str) -> Result<Option<u64>, StoreError> {
    let update = client
        .update_item()
        .table_name(table)
        .set_key(Some(key))
        .update_expression("SET #version = :zero")
        .condition_expression("attribute_exists(#version)")
        .expression_attribute_names("#version", version)
        .expression_attribute_values(":zero", n(0))
        .return_values(ReturnValue::UpdatedOld);
    match update.send().await {
        Ok(updated) => Attributes(&updated.attributes.unwrap_or_default()).required_number(version).map(Some),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(None),
            _ => Err(error.into()),
        },
    }
}

/// Returns whether a conditional put changed anything. A failed condition is an answer and not an error.
pub fn changed(put: Result<PutItemOutput, SdkError<PutItemError, HttpResponse>>) -> Result<bool, StoreError> {
    match put {
        Ok(_) => Ok(true),
        Err(error) => match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(_)) => Ok(false),
            _ => Err(error.into()),
        },
    }
}

/// Returns whether a conditional update changed anything, as [`changed`] does for a put.
pub fn updated(update: Result<UpdateItemOutput, SdkError<UpdateItemError, HttpResponse>>) -> Result<bool, StoreError> {
    match update {
        Ok(_) => Ok(true),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(false),
            _ => Err(error.into()),
        },
    }
}

/// Returns in one line what went wrong: the code and message of the AWS service, or the chain of causes.
pub fn explain<E>(error: &SdkError<E, HttpResponse>) -> String
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    if let Some(code) = error.code() {
        return error.message().map_or_else(|| code.to_owned(), |message| format!("{code}: {message}"));
    }
    causes(error)
}

/// Returns the messages of an error and of its causes, outermost first.
pub fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

/// Repeats a call while it meets transaction conflicts or is throttled, with growing, random pauses.
///
/// Neither says anything about the call itself, so it never counts as a fault of the data. After `attempts` calls the
/// error is returned, and the caller may try again later.
pub async fn retry_conflicts<T, F, Fut>(attempts: u32, mut call: F) -> Result<T, StoreError>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, StoreError>>,
{
    let mut attempt = 0;
    loop {
        match call().await {
            Err(StoreError::Conflict | StoreError::Throttled) if attempt + 1 < attempts => {
                tokio::time::sleep(backoff::pause(attempt)).await;
                attempt += 1;
            }
            other => return other,
        }
    }
}

/// Reads the attributes of a row. Errors name the attribute that is missing or malformed.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a Row);

impl<'a> Attributes<'a> {
    /// Returns a string, if there is one.
    pub fn text(self, name: &str) -> Option<&'a str> {
        self.0.get(name)?.as_s().ok().map(String::as_str)
    }

    /// Parses a string that must be there.
    pub fn parsed<T: std::str::FromStr>(self, name: &str) -> Result<T, StoreError> {
        self.text(name).and_then(|text| text.parse().ok()).ok_or_else(|| StoreError::corrupt(name))
    }

    /// Returns a number, if there is one.
    pub fn number<T: std::str::FromStr>(self, name: &str) -> Option<T> {
        self.0.get(name)?.as_n().ok()?.parse().ok()
    }

    /// Returns a number that may be absent. If the attribute is there, it must be such a number.
    pub fn optional_number<T: std::str::FromStr>(self, name: &str) -> Result<Option<T>, StoreError> {
        if self.0.contains_key(name) { self.required_number(name).map(Some) } else { Ok(None) }
    }

    /// Returns a number that must be there.
    pub fn required_number<T: std::str::FromStr>(self, name: &str) -> Result<T, StoreError> {
        self.number(name).ok_or_else(|| StoreError::corrupt(name))
    }

    /// Returns bytes, if there are any.
    pub fn bytes(self, name: &str) -> Option<&'a [u8]> {
        self.0.get(name)?.as_b().ok().map(AsRef::as_ref)
    }
}

/// Makes a string attribute.
pub fn s(text: impl Into<String>) -> AttributeValue {
    AttributeValue::S(text.into())
}

/// Makes a number attribute.
#[expect(clippy::needless_pass_by_value, reason = "numbers are passed by value")]
pub fn n(number: impl ToString) -> AttributeValue {
    AttributeValue::N(number.to_string())
}

/// Makes a binary attribute.
pub fn b(bytes: impl Into<Vec<u8>>) -> AttributeValue {
    AttributeValue::B(aws_sdk_dynamodb::primitives::Blob::new(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_the_client_cannot_put_together_is_a_defect() {
        let error = SdkError::<PutItemError, HttpResponse>::construction_failure("a member is missing");
        assert!(matches!(StoreError::from(error), StoreError::Defect(_)));
    }
}
