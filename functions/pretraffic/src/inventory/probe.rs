//! Checks one resource.

use aws_sdk_dynamodb::types::{IndexStatus, TableStatus};
use aws_sdk_sqs::types::QueueAttributeName;

use common::preflight::Problem;
use common::resources::Index;
use webhooks::secrets::Keyring;

/// Checks that the table and these indexes of it are active.
pub async fn check_table(client: &aws_sdk_dynamodb::Client, name: &str, indexes: &[Index]) -> Result<(), Problem> {
    let found = client.describe_table().table_name(name).send().await?.table;
    match found.as_ref().and_then(|table| table.table_status.as_ref()) {
        Some(TableStatus::Active) => {}
        status => return Err(Problem::NotActive(status.map_or_else(|| "unknown".to_owned(), ToString::to_string))),
    }
    let present = found.and_then(|table| table.global_secondary_indexes).unwrap_or_default();
    for index in indexes {
        match present.iter().find(|found| found.index_name() == Some(index.name)) {
            None => return Err(Problem::NoIndex(index.name)),
            Some(found) if found.index_status() != Some(&IndexStatus::Active) => {
                return Err(Problem::NotActive(format!("building or deleting its index {}", index.name)));
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// Checks that the queue exists and answers.
pub(crate) async fn check_queue(client: &aws_sdk_sqs::Client, name: &str) -> Result<(), Problem> {
    let found = client.get_queue_url().queue_name(name).send().await?;
    let attributes = client.get_queue_attributes().set_queue_url(found.queue_url);
    attributes.attribute_names(QueueAttributeName::QueueArn).send().await?;
    Ok(())
}

/// Checks that the secret exists, is not scheduled for deletion, and holds a valid keyring.
pub(crate) async fn check_keyring(client: &aws_sdk_secretsmanager::Client, name: &str) -> Result<(), Problem> {
    let found = client.describe_secret().secret_id(name).send().await?;
    if found.deleted_date.is_some() {
        return Err(Problem::NotActive("scheduled for deletion".to_owned()));
    }
    let value = client.get_secret_value().secret_id(name).send().await?;
    Keyring::parse(value.secret_string().unwrap_or_default())?;
    Ok(())
}
