//! Creates a stack's tables, queues, bucket and secret from the one place that defines them.

use aws_sdk_dynamodb::error::{BuildError, SdkError};
use aws_sdk_dynamodb::operation::create_table::CreateTableError;
use aws_sdk_dynamodb::operation::create_table::builders::CreateTableFluentBuilder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, Projection, ProjectionType,
    ScalarAttributeType, TimeToLiveSpecification,
};
use aws_sdk_s3::operation::create_bucket::CreateBucketError;
use aws_sdk_secretsmanager::operation::create_secret::CreateSecretError;
use aws_sdk_sqs::types::QueueAttributeName;
use common::resources::{MAX_RECEIVES, PARTITION_KEY, Queue, Resources, SORT_KEY, TTL, Table};
use common::store::explain;

use crate::environment::{ACCOUNT_ID, REGION};

/// Clients of one AWS side.
pub struct Clients {
    pub dynamodb: aws_sdk_dynamodb::Client,
    pub sqs: aws_sdk_sqs::Client,
    pub s3: aws_sdk_s3::Client,
    pub secrets: aws_sdk_secretsmanager::Client,
}

/// Creates what does not exist yet. Existing tables are kept as they are. The secrets in them must be sealed under
/// this keyring.
pub async fn create(clients: &Clients, resources: &Resources, keyring: &str) -> Result<(), String> {
    for table in Table::ALL {
        create_table(&clients.dynamodb, table, &resources.table(table)).await?;
    }
    for queue in Queue::ALL {
        create_queue(&clients.sqs, resources, queue).await?;
    }
    create_bucket(&clients.s3, &resources.base_bucket(ACCOUNT_ID, REGION)).await?;
    create_keyring(&clients.secrets, &resources.keyring(), keyring).await
}

async fn create_table(client: &aws_sdk_dynamodb::Client, table: Table, name: &str) -> Result<(), String> {
    let request = client.create_table().table_name(name).billing_mode(BillingMode::PayPerRequest);
    match defined(request, table).map_err(|error| error.to_string())?.send().await {
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

/// Adds a table's keys and indexes to the request that creates it.
fn defined(request: CreateTableFluentBuilder, table: Table) -> Result<CreateTableFluentBuilder, BuildError> {
    use ScalarAttributeType::{N, S};
    let mut attributes = vec![(PARTITION_KEY, S), (SORT_KEY, S)];
    let mut request = request.set_key_schema(Some(key_schema(PARTITION_KEY, SORT_KEY)?));
    for index in table.indexes() {
        for attribute in [(index.partition_key, S), (index.sort_key, N)] {
            // Two indexes may share one.
            if !attributes.contains(&attribute) {
                attributes.push(attribute);
            }
        }
        let keys_only = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
        let definition = GlobalSecondaryIndex::builder().index_name(index.name).projection(keys_only);
        let keys = key_schema(index.partition_key, index.sort_key)?;
        request = request.global_secondary_indexes(definition.set_key_schema(Some(keys)).build()?);
    }
    for (name, kind) in attributes {
        let attribute = AttributeDefinition::builder().attribute_name(name).attribute_type(kind);
        request = request.attribute_definitions(attribute.build()?);
    }
    Ok(request)
}

fn key_schema(partition_key: &str, sort_key: &str) -> Result<Vec<KeySchemaElement>, BuildError> {
    let keys = [(partition_key, KeyType::Hash), (sort_key, KeyType::Range)];
    keys.into_iter()
        .map(|(name, kind)| KeySchemaElement::builder().attribute_name(name).key_type(kind).build())
        .collect()
}

async fn create_queue(client: &aws_sdk_sqs::Client, resources: &Resources, queue: Queue) -> Result<(), String> {
    let name = resources.queue(queue);
    let visibility = queue.visibility_seconds().to_string();
    let mut request =
        client.create_queue().queue_name(&name).attributes(QueueAttributeName::VisibilityTimeout, visibility);
    let retention = Queue::RETENTION.as_secs().to_string();
    request = request.attributes(QueueAttributeName::MessageRetentionPeriod, retention);
    if queue.is_fifo() {
        request = request.attributes(QueueAttributeName::FifoQueue, "true");
    }
    if let Some(dead) = queue.dead_letters() {
        let arn = format!("arn:aws:sqs:{REGION}:{ACCOUNT_ID}:{}", resources.queue(dead));
        let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":{MAX_RECEIVES}}}"#);
        request = request.attributes(QueueAttributeName::RedrivePolicy, policy);
    }
    request.send().await.map_err(|error| format!("queue {name}: {}", explain(&error)))?;
    Ok(())
}

async fn create_bucket(client: &aws_sdk_s3::Client, name: &str) -> Result<(), String> {
    match client.create_bucket().bucket(name).send().await {
        Ok(_) => Ok(()),
        Err(SdkError::ServiceError(error)) if matches!(error.err(), CreateBucketError::BucketAlreadyOwnedByYou(_)) => {
            Ok(())
        }
        Err(error) => Err(format!("bucket {name}: {}", explain(&error))),
    }
}

async fn create_keyring(client: &aws_sdk_secretsmanager::Client, name: &str, keyring: &str) -> Result<(), String> {
    match client.create_secret().name(name).secret_string(keyring).send().await {
        Ok(_) => Ok(()),
        Err(SdkError::ServiceError(error)) if matches!(error.err(), CreateSecretError::ResourceExistsException(_)) => {
            Ok(())
        }
        Err(error) => Err(format!("secret {name}: {}", explain(&error))),
    }
}
