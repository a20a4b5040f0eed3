//! The calls that check tables. They change nothing and cost next to nothing. Functions make calls of these kinds
//! anyway, so checking a table needs no permission of its own.
//!
//! Each call is a separate function, so a program contains only the code of those that it makes.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Problem;
use crate::resources::{PARTITION_KEY, SORT_KEY};
use crate::store::{Row, s};

/// A check that is under way. It ends with the resource's problem, if there is one.
pub type ProbeFuture = BoxFuture<'static, Result<(), Problem>>;

/// Checks the table of this name by asking for a row that it does not have.
pub type Probe = fn(&Client, String) -> ProbeFuture;

/// A partition key that no row has.
const NOBODY: &str = "nobody";

/// Checks a table by an `UpdateItem` whose condition never holds.
pub fn update(client: &Client, table: String) -> ProbeFuture {
    let update = client.update_item().table_name(table).set_key(Some(nobody()));
    let update = update.condition_expression("attribute_exists(#pk)").expression_attribute_names("#pk", PARTITION_KEY);
    async move {
        match update.send().await {
            Err(SdkError::ServiceError(refused))
                if matches!(refused.err(), UpdateItemError::ConditionalCheckFailedException(_)) =>
            {
                Ok(())
            }
            updated => Ok(updated.map(drop)?),
        }
    }
    .boxed()
}

/// Checks a table by a `GetItem`.
pub fn get(client: &Client, table: String) -> ProbeFuture {
    let get = client.get_item().table_name(table).set_key(Some(nobody()));
    async move { Ok(get.send().await.map(drop)?) }.boxed()
}

/// Checks a table by a `BatchGetItem`.
pub fn batch_get(client: &Client, table: String) -> ProbeFuture {
    let client = client.clone();
    async move {
        let wanted = KeysAndAttributes::builder().keys(nobody()).build();
        let wanted = wanted.map_err(|error| Problem::Refused(error.to_string()))?;
        Ok(client.batch_get_item().request_items(table, wanted).send().await.map(drop)?)
    }
    .boxed()
}

/// Checks a table by a `Query`.
pub fn query(client: &Client, table: String) -> ProbeFuture {
    let query = client.query().table_name(table).limit(1).key_condition_expression("#pk = :nobody");
    let query = query.expression_attribute_names("#pk", PARTITION_KEY);
    let query = query.expression_attribute_values(":nobody", s(NOBODY));
    async move { Ok(query.send().await.map(drop)?) }.boxed()
}

/// Returns a key that no row has.
pub fn nobody() -> Row {
    [(PARTITION_KEY, NOBODY), (SORT_KEY, NOBODY)].map(|(name, value)| (name.to_owned(), s(value))).into()
}
