//! Checks that every table, queue, bucket and secret of a stack exists, can be reached and has the expected form.

mod probe;

use common::preflight::{Problem, ResourceKind};
use common::resources::{Queue, Resources, Table};
use futures_util::future::join_all;

pub use probe::check_table;
use probe::{check_keyring, check_queue};

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
        CheckedResource { kind: ResourceKind::Table, name, found }
    });
    let queues = Queue::ALL.map(|queue| async move {
        let name = resources.queue(queue);
        let found = check_queue(sqs, &name).await;
        CheckedResource { kind: ResourceKind::Queue, name, found }
    });
    let keyring = async {
        let name = resources.keyring();
        let found = check_keyring(secrets, &name).await;
        CheckedResource { kind: ResourceKind::Secret, name, found }
    };
    let bucket = async {
        let name = bucket.await;
        let found = match &name {
            Ok(name) => replica::objects::probe(s3, name).await,
            Err(problem) => Err(problem.clone()),
        };
        let name = name.unwrap_or_else(|_| "of this account".to_owned());
        CheckedResource { kind: ResourceKind::Bucket, name, found }
    };
    let (mut checked, queues, keyring, bucket) = tokio::join!(join_all(tables), join_all(queues), keyring, bucket);
    checked.extend(queues);
    checked.extend([keyring, bucket]);
    checked
}
