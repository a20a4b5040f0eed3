//! Creates a stack's tables, queues and secret from their one definition.

use aws_sdk_dynamodb::error::SdkError;
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification,
};
use aws_sdk_secretsmanager::operation::create_secret::CreateSecretError;
use aws_sdk_sqs::types::QueueAttributeName;
use shared::resources::{MAX_RECEIVES, PARTITION_KEY, Queue, Resources, SORT_KEY, TTL, Table};
use shared::store::explain;

/// Clients of one AWS side.
pub struct Clients {
    /// Tables.
    pub dynamodb: aws_sdk_dynamodb::Client,
    /// Queues.
    pub sqs: aws_sdk_sqs::Client,
    /// Secrets.
    pub secrets: aws_sdk_secretsmanager::Client,
}

/// Creates what is not there yet. Tables that exist are kept as they are.
pub async fn create(clients: &Clients, resources: &Resources) -> Result<(), String> {
    for table in Table::ALL {
        create_table(&clients.dynamodb, &resources.table(table)).await?;
    }
    for queue in Queue::ALL {
        create_queue(&clients.sqs, resources, queue).await?;
    }
    create_keyring(&clients.secrets, &resources.keyring()).await
}

async fn create_table(client: &aws_sdk_dynamodb::Client, name: &str) -> Result<(), String> {
    let keys = [(PARTITION_KEY, KeyType::Hash), (SORT_KEY, KeyType::Range)];
    let mut request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    for (key, kind) in keys {
        let definition = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(kind);
        request = request
            .attribute_definitions(definition.build().map_err(|error| error.to_string())?)
            .key_schema(element.build().map_err(|error| error.to_string())?);
    }
    match request.send().await {
        Ok(_) => {}
        Err(SdkError::ServiceError(error)) if matches!(error.err(), CreateTableError::ResourceInUseException(_)) => {
            return Ok(());
        }
        Err(error) => return Err(format!("table {name}: {}", explain(&error))),
    }
    let expiry = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true);
    let expiry = expiry.build().map_err(|error| error.to_string())?;
    let expiring = client.update_time_to_live().table_name(name).time_to_live_specification(expiry).send().await;
    expiring.map_err(|error| format!("table {name}: {}", explain(&error)))?;
    Ok(())
}

async fn create_queue(client: &aws_sdk_sqs::Client, resources: &Resources, queue: Queue) -> Result<(), String> {
    let name = resources.queue(queue);
    let visibility = queue.visibility_seconds().to_string();
    let mut request =
        client.create_queue().queue_name(&name).attributes(QueueAttributeName::VisibilityTimeout, visibility);
    if queue.is_fifo() {
        request = request.attributes(QueueAttributeName::FifoQueue, "true");
    }
    if let Some(dead) = queue.dead_letters() {
        let arn = format!("arn:aws:sqs:us-east-1:000000000000:{}", resources.queue(dead));
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVES}}}"#);
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    request.send().await.map_err(|error| format!("queue {name}: {}", explain(&error)))?;
    Ok(())
}

async fn create_keyring(client: &aws_sdk_secretsmanager::Client, name: &str) -> Result<(), String> {
    match client.create_secret().name(name).secret_string("{}").send().await {
        Ok(_) => Ok(()),
        Err(SdkError::ServiceError(error)) if matches!(error.err(), CreateSecretError::ResourceExistsException(_)) => {
            Ok(())
        }
        Err(error) => Err(format!("secret {name}: {}", explain(&error))),
    }
}
