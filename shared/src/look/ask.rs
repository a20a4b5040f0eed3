//! Calls that change nothing and hardly cost anything. Functions make calls of these kinds anyway, so that
//! looking needs no permission of its own, but `sqs:GetQueueAttributes`.
//!
//! Each is a function of its own: a program holds the code of those alone that it asks with.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::types::KeysAndAttributes;
use aws_sdk_sqs::types::QueueAttributeName;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::Problem;
use crate::resources::{PARTITION_KEY, SORT_KEY, WAKE_AT, WAKE_INDEX, WAKE_SHARD};
use crate::store::{Item, n, s};

/// Asks a table of this name for something that it does not have.
pub type Ask = fn(&Client, String) -> BoxFuture<'static, Result<(), Problem>>;

/// No item has this partition key.
const NOBODY: &str = "nobody";

/// By an `UpdateItem` whose condition never holds.
pub fn update(client: &Client, table: String) -> BoxFuture<'static, Result<(), Problem>> {
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

/// By a `GetItem`.
pub fn get(client: &Client, table: String) -> BoxFuture<'static, Result<(), Problem>> {
    let get = client.get_item().table_name(table).set_key(Some(nobody()));
    async move { Ok(get.send().await.map(drop)?) }.boxed()
}

/// By a `BatchGetItem`.
pub fn batch_get(client: &Client, table: String) -> BoxFuture<'static, Result<(), Problem>> {
    let client = client.clone();
    async move {
        let wanted = KeysAndAttributes::builder().keys(nobody()).build();
        let wanted = wanted.map_err(|error| Problem::Refused(error.to_string()))?;
        Ok(client.batch_get_item().request_items(table, wanted).send().await.map(drop)?)
    }
    .boxed()
}

/// By a `Query`.
pub fn query(client: &Client, table: String) -> BoxFuture<'static, Result<(), Problem>> {
    let query = client.query().table_name(table).limit(1).key_condition_expression("#pk = :nobody");
    let query = query.expression_attribute_names("#pk", PARTITION_KEY);
    let query = query.expression_attribute_values(":nobody", s(NOBODY));
    async move { Ok(query.send().await.map(drop)?) }.boxed()
}

/// By a `Query` of the index that [`sweep`] reads.
///
/// [`sweep`]: crate::webhooks::store::WebhookStore::due
pub fn sweep(client: &Client, table: String) -> BoxFuture<'static, Result<(), Problem>> {
    let query = client.query().table_name(table).index_name(WAKE_INDEX).limit(1);
    let query = query.key_condition_expression("#shard = :nobody AND #at = :never");
    let query = query.expression_attribute_names("#shard", WAKE_SHARD).expression_attribute_names("#at", WAKE_AT);
    let query = query.expression_attribute_values(":nobody", s(NOBODY)).expression_attribute_values(":never", n(0));
    async move { Ok(query.send().await.map(drop)?) }.boxed()
}

/// Asks a queue for its ARN.
pub fn queue(client: &aws_sdk_sqs::Client, url: &str) -> BoxFuture<'static, Result<(), Problem>> {
    let attributes = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::QueueArn);
    async move { Ok(attributes.send().await.map(drop)?) }.boxed()
}

fn nobody() -> Item {
    [(PARTITION_KEY, NOBODY), (SORT_KEY, NOBODY)].map(|(name, value)| (name.to_owned(), s(value))).into()
}
