//! What keeps data is in a template of its own: the project's tables, queues, bucket and secret, and nothing is lost with
//! a stack.

use std::collections::BTreeSet;

use common::resources::{Index, MAX_RECEIVES, OBJECT_KEEP, PARTITION_KEY, Queue, SORT_KEY, TTL, Table};
use local::environment::{ACCOUNT_ID, REGION};
use serde_json::{Value, json};
use tests::{Template, arn};

use super::{assert_same, deployed, names};

/// The properties that name a resource in AWS.
const NAMES: [&str; 5] = ["TableName", "QueueName", "BucketName", "Bucket", "Name"];
fn name_in_aws(resource: &Value) -> String {
    let properties = &resource["Properties"];
    let mut named = NAMES.iter().filter_map(|name| properties[name].as_str());
    named.next().unwrap_or_else(|| panic!("no name: {resource}")).to_owned()
}

#[test]
fn the_data_template_holds_exactly_the_projects_resources() {
    let deployed = Template::read().data();
    let mut expected: BTreeSet<_> = Table::ALL.map(|table| names().table(table)).into();
    expected.extend(Queue::ALL.map(|queue| names().queue(queue)));
    expected.extend([names().base_bucket(ACCOUNT_ID, REGION), names().keyring()]);
    assert_eq!(deployed.values().map(name_in_aws).collect::<BTreeSet<_>>(), expected);
    // The bucket has a policy, which bears its name.
    assert_eq!(deployed.len(), expected.len() + 1);
}

/// `RetainExceptOnCreate` keeps a resource in every case but one: if the creation of the stack that was to make it
/// fails.
#[test]
fn nothing_in_the_data_template_is_lost_with_its_stack_or_by_a_replacement() {
    for (id, resource) in Template::read().data() {
        assert_eq!(resource["DeletionPolicy"], "RetainExceptOnCreate", "{id}");
        assert_eq!(resource["UpdateReplacePolicy"], "Retain", "{id}");
    }
}

#[test]
fn the_template_has_the_projects_tables_with_keys_and_indexes() {
    let mut deployed = deployed("AWS::DynamoDB::Table", "TableName");
    for table in Table::ALL {
        let name = names().table(table);
        assert_same(&name, deployed.remove(&name).unwrap_or_default(), expected(table));
    }
    assert!(deployed.is_empty(), "{deployed:?}");
}

fn expected(table: Table) -> Value {
    let mut properties = json!({
        "TableName": names().table(table),
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": keys(PARTITION_KEY, SORT_KEY),
        "TimeToLiveSpecification": {"AttributeName": TTL, "Enabled": true},
        "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true},
        "DeletionProtectionEnabled": true,
    });
    let mut attributes = vec![attribute(PARTITION_KEY, "S"), attribute(SORT_KEY, "S")];
    for index in table.indexes() {
        for key in [attribute(index.partition_key, "S"), attribute(index.sort_key, "N")] {
            if !attributes.contains(&key) {
                attributes.push(key);
            }
        }
    }
    properties["AttributeDefinitions"] = attributes.into();
    let indexes: Vec<Value> = table.indexes().iter().map(expected_index).collect();
    if !indexes.is_empty() {
        properties["GlobalSecondaryIndexes"] = indexes.into();
    }
    properties
}

fn expected_index(index: &Index) -> Value {
    json!({
        "IndexName": index.name,
        "KeySchema": keys(index.partition_key, index.sort_key),
        "Projection": {"ProjectionType": "KEYS_ONLY"},
    })
}

fn attribute(name: &str, kind: &str) -> Value {
    json!({"AttributeName": name, "AttributeType": kind})
}

fn keys(partition_key: &str, sort_key: &str) -> Value {
    json!([{"AttributeName": partition_key, "KeyType": "HASH"}, {"AttributeName": sort_key, "KeyType": "RANGE"}])
}

#[test]
fn the_template_has_the_projects_queues() {
    let mut deployed = deployed("AWS::SQS::Queue", "QueueName");
    for queue in Queue::ALL {
        let name = names().queue(queue);
        let mut properties = deployed.remove(&name).unwrap_or_default();
        // The defaults of SQS.
        properties.entry("VisibilityTimeout").or_insert(json!(30));
        properties.entry("FifoQueue").or_insert(json!(false));
        assert_same(&name, properties, expected_queue(queue));
    }
    assert!(deployed.is_empty(), "{deployed:?}");
}

fn expected_queue(queue: Queue) -> Value {
    let mut properties = json!({
        "QueueName": names().queue(queue),
        "VisibilityTimeout": queue.visibility_seconds(),
        "FifoQueue": queue.is_fifo(),
        "MessageRetentionPeriod": Queue::RETENTION.as_secs(),
        "SqsManagedSseEnabled": true,
    });
    if let Some(dead) = queue.dead_letters() {
        let target = arn::queue(&names().queue(dead));
        properties["RedrivePolicy"] = json!({"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVES});
    }
    properties
}

#[test]
fn objects_of_the_bucket_expire_when_no_reader_needs_them_any_more() {
    let buckets = deployed("AWS::S3::Bucket", "BucketName");
    let rules = &buckets[&names().base_bucket(ACCOUNT_ID, REGION)]["LifecycleConfiguration"]["Rules"];
    let [rule] = &rules.as_array().unwrap()[..] else { panic!("{rules}") };
    assert_eq!(
        (&rule["Status"], &rule["ExpirationInDays"]),
        (&json!("Enabled"), &json!(OBJECT_KEEP.as_secs() / 86_400))
    );
}
