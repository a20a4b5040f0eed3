//! What keeps data is in a template of its own: the project's tables, queues, bucket and secret, and nothing is lost with
//! a stack.

use std::collections::{BTreeMap, BTreeSet};

use common::resources::{Index, MAX_RECEIVES, OBJECT_KEEP, PARTITION_KEY, Queue, Resources, SORT_KEY, TTL, Table};
use local::environment::{ACCOUNT_ID, REGION};
use serde_json::{Value, json};
use tests::{Template, arn};

use super::{assert_same, deployed, names};

/// The properties that name a resource in AWS.
const NAMES: [&str; 5] = ["TableName", "QueueName", "BucketName", "Bucket", "Name"];

/// The pattern of a stack's name, wherever it is checked.
const STACK_NAME: &str = "[a-z]([a-z0-9-]{0,28}[a-z0-9])?";
/// The longest name that S3 allows for a bucket, and the longest of a region.
const LONGEST_BUCKET: usize = 63;
const LONGEST_REGION: &str = "ap-northeast-1";

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
fn tables_can_be_deleted_only_if_the_operator_says_so() {
    for (parameter, protected) in [("true", true), ("false", false)] {
        let template = Template::with_parameters(&[("DeletionProtection", parameter)]);
        let tables = template.resources("AWS::DynamoDB::Table");
        assert_eq!(tables.len(), Table::ALL.len());
        for (id, table) in tables {
            assert_eq!(table["Properties"]["DeletionProtectionEnabled"], protected, "{id}");
        }
    }
}

#[test]
fn a_ceiling_holds_for_every_table_and_index() {
    let template = Template::with_parameters(&[("MaxReadUnits", "12000"), ("MaxWriteUnits", "4000")]);
    let ceiling = json!({"MaxReadRequestUnits": "12000", "MaxWriteRequestUnits": "4000"});
    for (id, table) in template.resources("AWS::DynamoDB::Table") {
        let properties = &table["Properties"];
        let indexes = properties["GlobalSecondaryIndexes"].as_array().into_iter().flatten();
        for limited in indexes.chain([properties]) {
            assert_eq!(limited["OnDemandThroughput"], ceiling, "{id}");
        }
    }
}

#[test]
fn the_service_keeps_no_data() {
    let kinds = |resources: BTreeMap<String, Value>| -> BTreeSet<String> {
        resources.values().map(|resource| resource["Type"].as_str().unwrap().to_owned()).collect()
    };
    let keeping = kinds(Template::read().data());
    assert_eq!(keeping.len(), 5, "{keeping:?}");
    let service = kinds(Template::read().service());
    assert!(service.is_disjoint(&keeping), "{service:?}");
}

#[test]
fn the_longest_name_of_a_stack_leaves_room_for_the_rest_of_the_buckets_name() {
    let bucket = Resources::new(&"a".repeat(30)).base_bucket(ACCOUNT_ID, LONGEST_REGION);
    assert_eq!(bucket.len(), LONGEST_BUCKET);
    assert!(include_str!("../../../infra/data/template.yaml").contains(STACK_NAME));
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

/// The longest time for which SQS keeps a message, 14 days, in seconds.
const RETENTION_SECONDS: u64 = 14 * 24 * 60 * 60;

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
        "MessageRetentionPeriod": RETENTION_SECONDS,
        "SqsManagedSseEnabled": true,
    });
    if let Some(dead) = queue.dead_letters() {
        let target = arn::queue(&names().queue(dead));
        properties["RedrivePolicy"] = json!({"deadLetterTargetArn": target, "maxReceiveCount": MAX_RECEIVES});
    }
    properties
}

fn bucket_name() -> String {
    names().base_bucket(ACCOUNT_ID, REGION)
}

#[test]
fn the_template_has_the_projects_bucket_and_nothing_in_it_is_public_or_kept_for_ever() {
    let mut deployed = deployed("AWS::S3::Bucket", "BucketName");
    let lifecycle = json!({
        "Id": "expire",
        "Status": "Enabled",
        "ExpirationInDays": OBJECT_KEEP.as_secs() / 86_400,
        "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
    });
    let expected = json!({
        "BucketName": bucket_name(),
        "BucketEncryption": {
            "ServerSideEncryptionConfiguration": [{"ServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}],
        },
        "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]},
        "PublicAccessBlockConfiguration": {
            "BlockPublicAcls": true,
            "BlockPublicPolicy": true,
            "IgnorePublicAcls": true,
            "RestrictPublicBuckets": true,
        },
        "LifecycleConfiguration": {"Rules": [lifecycle]},
    });
    assert_same(&bucket_name(), deployed.remove(&bucket_name()).unwrap_or_default(), expected);
    assert!(deployed.is_empty(), "{deployed:?}");
}

#[test]
fn the_bucket_refuses_calls_that_are_not_encrypted() {
    let mut policies = deployed("AWS::S3::BucketPolicy", "Bucket");
    let policy = policies.remove(&bucket_name()).unwrap_or_default();
    let bucket = arn::bucket(&bucket_name());
    let statement = json!({
        "Sid": "OnlyEncryptedCalls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [bucket, format!("{bucket}/*")],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    });
    assert_eq!(policy["PolicyDocument"]["Statement"], json!([statement]));
    assert!(policies.is_empty(), "{policies:?}");
}
