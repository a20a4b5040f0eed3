//! One look at one resource.

use aws_sdk_dynamodb::types::TableStatus;
use aws_sdk_sqs::types::QueueAttributeName;

use super::Problem;

/// Whether the table is active.
pub(crate) async fn table(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<(), Problem> {
    let found = client.describe_table().table_name(name).send().await?;
    match found.table.and_then(|table| table.table_status) {
        Some(TableStatus::Active) => Ok(()),
        status => Err(Problem::NotActive(status.map_or_else(|| "unknown".to_owned(), |status| status.to_string()))),
    }
}

/// Whether the queue has an address and answers.
pub(super) async fn queue(client: &aws_sdk_sqs::Client, name: &str) -> Result<(), Problem> {
    let found = client.get_queue_url().queue_name(name).send().await?;
    let attributes = client.get_queue_attributes().set_queue_url(found.queue_url);
    attributes.attribute_names(QueueAttributeName::QueueArn).send().await?;
    Ok(())
}

/// Whether the secret exists and is not about to be deleted. Its value is not read.
pub(super) async fn secret(client: &aws_sdk_secretsmanager::Client, name: &str) -> Result<(), Problem> {
    let found = client.describe_secret().secret_id(name).send().await?;
    match found.deleted_date {
        Some(_) => Err(Problem::NotActive("scheduled for deletion".to_owned())),
        None => Ok(()),
    }
}
