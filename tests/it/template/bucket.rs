//! Compares the template's bucket with the project's.

use local::environment::{ACCOUNT_ID, REGION};
use platform::resources::OBJECT_KEEP;
use serde_json::json;
use tests::{Template, arn};

use super::{assert_same, deployed, names};

fn name() -> String {
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
        "BucketName": name(),
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
    assert_same(&name(), deployed.remove(&name()).unwrap_or_default(), expected);
    assert!(deployed.is_empty(), "{deployed:?}");
}

#[test]
fn the_bucket_refuses_calls_that_are_not_encrypted() {
    let mut policies = deployed("AWS::S3::BucketPolicy", "Bucket");
    let policy = policies.remove(&name()).unwrap_or_default();
    let bucket = arn::bucket(&name());
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

#[test]
fn the_bucket_outlives_the_stack_as_the_tables_do() {
    let bucket = &Template::read().resources("AWS::S3::Bucket")["BaseBucket"];
    let table = &Template::read().resources("AWS::DynamoDB::Table")["MarketTable"];
    for policy in ["DeletionPolicy", "UpdateReplacePolicy"] {
        assert_eq!(bucket[policy], table[policy]);
    }
}
