//! Reads several rows in one call.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::KeysAndAttributes;

use crate::backoff;
use crate::store::{Row, StoreError};

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
