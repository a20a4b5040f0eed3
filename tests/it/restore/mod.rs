//! `marketctl restore`: whatever a restored table lacks of its last transaction, and wherever the command is
//! interrupted, the service is right afterwards and was never wrong.

mod command;
mod orders;
mod streams;

use aws_sdk_dynamodb::types::{
    PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, TableDescription, Tag, TimeToLiveStatus,
};
use common::resources::Queue;
use common::timestamp::Timestamp;
use local::environment::Variables;
use local::switches::Trigger;
use tests::{Program, Stack, dynamodb, marketctl};

const AT: &str = "2026-11-20T10:00:00Z";
const OWNER: [&str; 2] = ["owner", "team market"];

/// Gives a table what the template gives it, and a tag.
async fn deploy_settings(stack: &Stack, table: &str) {
    let client = dynamodb(stack);
    let on = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build().unwrap();
    let update = client.update_continuous_backups().table_name(table).point_in_time_recovery_specification(on);
    update.send().await.unwrap();
    client.update_table().table_name(table).deletion_protection_enabled(true).send().await.unwrap();
    let tag = Tag::builder().key(OWNER[0]).value(OWNER[1]).build().unwrap();
    let arn = described(stack, table).await.unwrap().table_arn.unwrap();
    client.tag_resource().resource_arn(arn).tags(tag).send().await.unwrap();
}

/// Asserts that a table has what the template gives it, and the tag.
async fn assert_settings(stack: &Stack, table: &str) {
    let client = dynamodb(stack);
    let described = described(stack, table).await.unwrap();
    assert_eq!(described.deletion_protection_enabled, Some(true));
    let tags = client.list_tags_of_resource().resource_arn(described.table_arn.unwrap()).send().await.unwrap();
    let tags: Vec<_> = tags.tags().iter().map(|tag| [tag.key(), tag.value()]).collect();
    assert_eq!(tags, [OWNER]);
    let expiry = client.describe_time_to_live().table_name(table).send().await.unwrap().time_to_live_description;
    assert_eq!(expiry.unwrap().time_to_live_status, Some(TimeToLiveStatus::Enabled));
    let backups = client.describe_continuous_backups().table_name(table).send().await.unwrap();
    let recovery = backups.continuous_backups_description.unwrap().point_in_time_recovery_description.unwrap();
    assert_eq!(recovery.point_in_time_recovery_status, Some(PointInTimeRecoveryStatus::Enabled));
}

async fn described(stack: &Stack, table: &str) -> Option<TableDescription> {
    match dynamodb(stack).describe_table().table_name(table).send().await {
        Ok(described) => described.table,
        Err(error) => {
            let error = error.into_service_error();
            assert!(error.is_resource_not_found_exception(), "{error:?}");
            None
        }
    }
}

/// Returns whether the feed is applied.
fn feed_is_on(stack: &Stack) -> bool {
    stack.aws.switches().of(Trigger::Queue(Queue::Feed)).is_on()
}

async fn restore(stack: &Stack, table: &str, to: Timestamp, flags: &[&str]) -> Program {
    restore_through(&stack.aws.endpoint_url, table, to, flags).await
}

/// Runs the command against an endpoint.
async fn restore_through(endpoint: &str, table: &str, to: Timestamp, flags: &[&str]) -> Program {
    let to = to.to_string();
    let arguments = [&["--json", "restore", table, "--to", to.as_str()][..], flags].concat();
    marketctl(&Variables::new(endpoint), &arguments, "").await
}
