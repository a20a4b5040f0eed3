//! Checks that every table, queue, bucket and secret of a stack exists, can be reached and has the expected form.

use aws_sdk_dynamodb::types::{IndexStatus, TableStatus};
use aws_sdk_sqs::types::QueueAttributeName;
use common::preflight::{Problem, ResourceKind};
use common::resources::{Index, Queue, Resources, Table};
use futures_util::future::join_all;
use webhooks::secrets::Keyring;

/// What the resources of a stack are reached by.
#[derive(Clone, Debug)]
pub struct Clients {
    pub dynamodb: aws_sdk_dynamodb::Client,
    pub sqs: aws_sdk_sqs::Client,
    pub secrets: aws_sdk_secretsmanager::Client,
    pub s3: replica::objects::Client,
}

/// A resource that was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedResource {
    pub kind: ResourceKind,
    pub name: String,
    /// What is wrong with it, if anything is.
    pub found: Result<(), Problem>,
    /// About how many messages a queue holds, whether or not they can be received now.
    pub messages: Option<u64>,
}

impl CheckedResource {
    fn new(kind: ResourceKind, name: String, found: Result<(), Problem>) -> Self {
        Self { kind, name, found, messages: None }
    }
}

/// Checks all resources of a stack at the same time. `bucket` returns the name of its bucket, which contains the
/// account.
pub async fn check(
    clients: &Clients,
    resources: &Resources,
    bucket: impl Future<Output = Result<String, Problem>>,
) -> Vec<CheckedResource> {
    let Clients { dynamodb, sqs, secrets, s3 } = clients;
    let tables = Table::ALL.map(|table| async move {
        let name = resources.table(table);
        let found = check_table(dynamodb, &name, table.indexes()).await;
        CheckedResource::new(ResourceKind::Table, name, found)
    });
    let queues = Queue::ALL.map(|queue| async move {
        let name = resources.queue(queue);
        let (messages, found) = match check_queue(sqs, &name).await {
            Ok(messages) => (Some(messages), Ok(())),
            Err(problem) => (None, Err(problem)),
        };
        CheckedResource { messages, ..CheckedResource::new(ResourceKind::Queue, name, found) }
    });
    let keyring = async {
        let name = resources.keyring();
        let found = check_keyring(secrets, &name).await;
        CheckedResource::new(ResourceKind::Secret, name, found)
    };
    let bucket = async {
        let name = bucket.await;
        let found = match &name {
            Ok(name) => replica::objects::probe(s3, name).await,
            Err(problem) => Err(problem.clone()),
        };
        let name = name.unwrap_or_else(|_| "of this account".to_owned());
        CheckedResource::new(ResourceKind::Bucket, name, found)
    };
    let (mut checked, queues, keyring, bucket) = tokio::join!(join_all(tables), join_all(queues), keyring, bucket);
    checked.extend(queues);
    checked.extend([keyring, bucket]);
    checked
}

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

/// Checks that the queue exists and answers. Returns about how many messages it holds.
async fn check_queue(client: &aws_sdk_sqs::Client, name: &str) -> Result<u64, Problem> {
    const HELD: [QueueAttributeName; 3] = [
        QueueAttributeName::ApproximateNumberOfMessages,
        QueueAttributeName::ApproximateNumberOfMessagesDelayed,
        QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
    ];
    let found = client.get_queue_url().queue_name(name).send().await?;
    let attributes = client.get_queue_attributes().set_queue_url(found.queue_url);
    let found = attributes.set_attribute_names(Some(HELD.to_vec())).send().await?.attributes.unwrap_or_default();
    Ok(HELD.iter().filter_map(|name| found.get(name)?.parse::<u64>().ok()).sum())
}

/// Checks that the secret exists, is not scheduled for deletion, and holds a valid keyring.
async fn check_keyring(client: &aws_sdk_secretsmanager::Client, name: &str) -> Result<(), Problem> {
    let found = client.describe_secret().secret_id(name).send().await?;
    if found.deleted_date.is_some() {
        return Err(Problem::NotActive("scheduled for deletion".to_owned()));
    }
    let value = client.get_secret_value().secret_id(name).send().await?;
    Keyring::parse(value.secret_string().unwrap_or_default())?;
    Ok(())
}
