//! The settings that a restored table lacks: tags, time to live, point-in-time recovery and protection from deletion.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::update_continuous_backups::UpdateContinuousBackupsError;
use aws_sdk_dynamodb::types::{
    PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, Tag, TimeToLiveSpecification, TimeToLiveStatus,
};
use platform::resources::TTL;

use super::error::Cause;
use super::pause::Pauses;
use super::state::Described;
use super::tables::{protect, wait_until_active};

/// The tag of the copy that says whether the table was protected from deletion.
const PROTECTED_TAG: &str = "marketctl:deletion-protection";
/// Tags that begin with this belong to AWS, and nobody else can set them.
const AWS_PREFIX: &str = "aws:";

/// Notes the table's tags, and whether it is protected from deletion, in tags of the copy.
pub(super) async fn note(client: &Client, table: &Described, copy: &Described) -> Result<(), Cause> {
    let mut tags = tags(client, table).await?;
    tags.push(Tag::builder().key(PROTECTED_TAG).value(table.is_protected.to_string()).build()?);
    client.tag_resource().resource_arn(&copy.arn).set_tags(Some(tags)).send().await?;
    Ok(())
}

/// Gives the restored table the settings that were noted. If the copy is gone, the table is protected.
pub(super) async fn apply(client: &Client, name: &str, copy: Option<&Described>) -> Result<(), Cause> {
    let noted = match copy {
        Some(copy) => tags(client, copy).await?,
        None => Vec::new(),
    };
    let (marks, tags): (Vec<Tag>, Vec<Tag>) = noted.into_iter().partition(|tag| tag.key() == PROTECTED_TAG);
    let table = wait_until_active(client, name).await?;
    if !tags.is_empty() {
        client.tag_resource().resource_arn(&table.arn).set_tags(Some(tags)).send().await?;
    }
    expire_rows(client, name).await?;
    recover_to_moments(client, name).await?;
    let is_protected = marks.first().is_none_or(|mark| mark.value() != "false");
    protect(client, name, is_protected).await
}

/// Returns a table's tags that do not belong to AWS.
async fn tags(client: &Client, table: &Described) -> Result<Vec<Tag>, Cause> {
    let (mut tags, mut next) = (Vec::new(), None);
    loop {
        let list = client.list_tags_of_resource().resource_arn(&table.arn).set_next_token(next);
        let page = list.send().await?;
        tags.extend(page.tags.unwrap_or_default().into_iter().filter(|tag| !tag.key().starts_with(AWS_PREFIX)));
        next = page.next_token;
        if next.is_none() {
            return Ok(tags);
        }
    }
}

async fn expire_rows(client: &Client, name: &str) -> Result<(), Cause> {
    let found = client.describe_time_to_live().table_name(name).send().await?.time_to_live_description;
    let status = found.and_then(|found| found.time_to_live_status);
    if matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)) {
        return Ok(());
    }
    let expiry = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true).build()?;
    client.update_time_to_live().table_name(name).time_to_live_specification(expiry).send().await?;
    Ok(())
}

/// Switches point-in-time recovery on. DynamoDB refuses that for a while after it has made a table.
async fn recover_to_moments(client: &Client, name: &str) -> Result<(), Cause> {
    let on = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build()?;
    let mut pauses = Pauses::new();
    loop {
        let found = client.describe_continuous_backups().table_name(name).send().await?;
        let found = found.continuous_backups_description.and_then(|found| found.point_in_time_recovery_description);
        let status = found.and_then(|found| found.point_in_time_recovery_status);
        if status == Some(PointInTimeRecoveryStatus::Enabled) {
            return Ok(());
        }
        let update = client.update_continuous_backups().table_name(name);
        match update.point_in_time_recovery_specification(on.clone()).send().await {
            Ok(_) => {}
            Err(error)
                if matches!(
                    error.as_service_error(),
                    Some(UpdateContinuousBackupsError::ContinuousBackupsUnavailableException(_))
                ) => {}
            Err(error) => return Err(error.into()),
        }
        pauses.wait().await;
    }
}
