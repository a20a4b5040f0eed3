//! Reads of several rows that do not depend on each other.
//!
//! A row that cannot be read is an error of that row, never of the rows beside it. Releases run side by side during a
//! deployment, and after a rollback a release meets rows of the newer one. So an unknown word is nothing unusual.

use std::str::FromStr;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use thiserror::Error;

use crate::backoff;
use crate::resources::{PARTITION_KEY, SORT_KEY};
use crate::store::{Attributes, Row, StoreError};

/// The result of a read of several rows: those that could be read, and those that could not.
#[derive(Clone, Debug)]
pub struct Rows<T, U = Unreadable> {
    pub readable: Vec<T>,
    pub unreadable: Vec<U>,
}

/// A row that this release cannot read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Error)]
#[error("{row}: {what}")]
pub struct Unreadable {
    /// The two parts of the row's key. They may be logged, which is why the content of the row is not here.
    pub row: String,
    /// The attribute that cannot be read.
    pub what: String,
}

impl<T, U> Default for Rows<T, U> {
    fn default() -> Self {
        Self { readable: Vec::new(), unreadable: Vec::new() }
    }
}

impl<T, U> FromIterator<Result<T, U>> for Rows<T, U> {
    fn from_iter<I: IntoIterator<Item = Result<T, U>>>(rows: I) -> Self {
        let mut read = Self::default();
        for row in rows {
            match row {
                Ok(row) => read.readable.push(row),
                Err(row) => read.unreadable.push(row),
            }
        }
        read
    }
}

impl<T> Rows<T> {
    /// Returns the readable rows. If there are others, logs a warning.
    pub fn log_unreadable(self) -> Vec<T> {
        log_unreadable(&self.unreadable);
        self.readable
    }
}

impl Unreadable {
    /// Says why a row cannot be read. `row` needs no attributes except those of its key.
    pub fn new(row: &Row, error: StoreError) -> Self {
        let part = |name| Attributes(row).text(name).unwrap_or_default();
        let what = match error {
            StoreError::Corrupt { what } => what,
            other => other.to_string(),
        };
        Self { row: format!("{} {}", part(PARTITION_KEY), part(SORT_KEY)), what }
    }
}

/// Logs one warning about the unreadable rows of a read: how many there are, and the first of them as an example. A
/// rollback may leave thousands of them.
fn log_unreadable(rows: &[Unreadable]) {
    if let Some(first) = rows.first() {
        tracing::warn!(count = rows.len(), row = first.row, what = first.what, "unreadable rows");
    }
}

impl Unreadable {
    /// Returns the last id in the row's key, which is its own.
    pub fn last_id<T: FromStr>(&self) -> Option<T> {
        self.row.rsplit([' ', '#']).find_map(|part| part.parse().ok())
    }
}

impl From<Unreadable> for StoreError {
    fn from(unreadable: Unreadable) -> Self {
        Self::corrupt(unreadable.to_string())
    }
}

/// How often a batch read is made while DynamoDB leaves out some of its keys.
const MAX_ATTEMPTS: u32 = 8;

/// Reads the rows of at most 100 different keys (DynamoDB's limit), each as the last completed write left it (a strongly
/// consistent read). They come in no particular order, and keys without a row are left out.
pub async fn get_rows(client: &Client, table: &str, mut keys: Vec<Row>) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::with_capacity(keys.len());
    for attempt in 0..MAX_ATTEMPTS {
        if keys.is_empty() {
            return Ok(rows);
        }
        if attempt > 0 {
            tokio::time::sleep(backoff::pause(attempt)).await;
        }
        let wanted = KeysAndAttributes::builder().set_keys(Some(keys)).consistent_read(true).build()?;
        let read = client.batch_get_item().request_items(table, wanted).send().await?;
        rows.extend(read.responses.into_iter().flatten().flat_map(|(_, rows)| rows));
        let left = read.unprocessed_keys.unwrap_or_default().remove(table);
        keys = left.map(|left| left.keys).unwrap_or_default();
    }
    if keys.is_empty() {
        return Ok(rows);
    }
    Err(StoreError::Unavailable("DynamoDB kept leaving out parts of a batch read".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::s;

    fn place(pk: &str) -> Row {
        Row::from([(PARTITION_KEY.to_owned(), s(pk)), (SORT_KEY.to_owned(), s("delivery"))])
    }

    #[test]
    fn rows_keep_their_order_on_both_sides() {
        let unreadable = |pk: &str| Unreadable::new(&place(pk), StoreError::corrupt("status"));
        let rows: Rows<u8> = [Err(unreadable("a")), Ok(1), Err(unreadable("b")), Ok(2)].into_iter().collect();
        assert_eq!((rows.readable, rows.unreadable), (vec![1, 2], vec![unreadable("a"), unreadable("b")]));
    }

    #[test]
    fn an_unreadable_row_is_named_by_its_key_and_its_attribute_and_nothing_else() {
        let mut row = place("delivery#1");
        row.insert("status".to_owned(), s("paused"));
        let unreadable = Unreadable::new(&row, Attributes(&row).parsed::<u8>("status").unwrap_err());
        assert_eq!(unreadable.to_string(), "delivery#1 delivery: status");
        assert_eq!(StoreError::from(unreadable).to_string(), "unreadable row: delivery#1 delivery: status");
    }
}
