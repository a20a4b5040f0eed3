//! The steps that make, back up, delete and set up tables. Each waits until DynamoDB has done it, which may take hours.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::create_backup::CreateBackupError;
use aws_sdk_dynamodb::operation::update_continuous_backups::UpdateContinuousBackupsError;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{
    BackupStatus, PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, TableStatus, Tag,
    TimeToLiveSpecification, TimeToLiveStatus,
};
use common::resources::TTL;

use super::state::{Cause, Described, Found, describe};

/// The tag of the copy that says whether the table was protected from deletion.
const PROTECTED_TAG: &str = "marketctl:deletion-protection";
/// Tags that begin with this belong to AWS, and nobody else can set them.
const AWS_PREFIX: &str = "aws:";
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Restores the moment into the copy, unless the copy exists.
pub(super) async fn copy(client: &Client, found: &Found) -> Result<(), Cause> {
    if found.copy.is_none() {
        let restore = client.restore_table_to_point_in_time().source_table_name(&found.name);
        let restore = restore.target_table_name(&found.copy_name);
        restore.restore_date_time(DateTime::from_secs(found.to.seconds())).send().await?;
    }
    wait_until_active(client, &found.copy_name).await.map(drop)
}

/// Backs the copy up. DynamoDB refuses that for a while after it has made a table.
pub(super) async fn back_up(client: &Client, found: &Found) -> Result<String, Cause> {
    let mut pauses = Pauses::new();
    loop {
        let create = client.create_backup().table_name(&found.copy_name).backup_name(found.backup_name());
        match create.send().await {
            Ok(made) => {
                let made = made.backup_details.map(|made| made.backup_arn);
                return made.ok_or_else(|| Cause("DynamoDB names no backup".to_owned()));
            }
            Err(error)
                if matches!(
                    error.as_service_error(),
                    Some(CreateBackupError::ContinuousBackupsUnavailableException(_))
                ) => {}
            Err(error) => return Err(error.into()),
        }
        pauses.wait().await;
    }
}

/// Waits until a backup is complete.
pub(super) async fn wait_until_backed_up(client: &Client, backup: &str) -> Result<(), Cause> {
    let mut pauses = Pauses::new();
    loop {
        let found = client.describe_backup().backup_arn(backup).send().await?;
        let details = found.backup_description.and_then(|found| found.backup_details);
        match details.map(|details| details.backup_status) {
            Some(BackupStatus::Available) => return Ok(()),
            Some(BackupStatus::Creating) => pauses.wait().await,
            status => return Err(Cause(format!("the backup {backup} is {status:?}"))),
        }
    }
}

/// Deletes the damaged table, if it exists.
pub(super) async fn delete(client: &Client, name: &str) -> Result<(), Cause> {
    match describe(client, name).await? {
        None => return Ok(()),
        Some(table) if table.status == TableStatus::Deleting => {}
        Some(_) => {
            protect(client, name, false).await?;
            client.delete_table().table_name(name).send().await?;
        }
    }
    let mut pauses = Pauses::new();
    while describe(client, name).await?.is_some() {
        pauses.wait().await;
    }
    Ok(())
}

/// Restores the backup under the table's name, unless a table has that name.
pub(super) async fn swap(client: &Client, name: &str, backup: &str) -> Result<(), Cause> {
    if describe(client, name).await?.is_none() {
        client.restore_table_from_backup().target_table_name(name).backup_arn(backup).send().await?;
    }
    wait_until_active(client, name).await.map(drop)
}

/// Switches the protection from deletion on or off.
async fn protect(client: &Client, name: &str, is_protected: bool) -> Result<(), Cause> {
    let table = wait_until_active(client, name).await?;
    if table.is_protected != is_protected {
        client.update_table().table_name(name).deletion_protection_enabled(is_protected).send().await?;
        wait_until_active(client, name).await?;
    }
    Ok(())
}

/// Waits until a table can be used. Fails if it does not exist.
async fn wait_until_active(client: &Client, name: &str) -> Result<Described, Cause> {
    let mut pauses = Pauses::new();
    loop {
        let table = describe(client, name).await?.ok_or_else(|| Cause(format!("table {name} does not exist")))?;
        match table.status {
            TableStatus::Active => return Ok(table),
            TableStatus::Creating | TableStatus::Updating => pauses.wait().await,
            status => return Err(Cause(format!("table {name} is {status}"))),
        }
    }
}

/// Notes the table's tags, and whether it is protected from deletion, in tags of the copy.
pub(super) async fn note(client: &Client, table: &Described, copy: &Described) -> Result<(), Cause> {
    let mut tags = tags(client, table).await?;
    tags.push(Tag::builder().key(PROTECTED_TAG).value(table.is_protected.to_string()).build()?);
    client.tag_resource().resource_arn(&copy.arn).set_tags(Some(tags)).send().await?;
    Ok(())
}

/// Gives the restored table the settings that were noted. If the copy is gone, the table is protected.
pub(super) async fn set_up(client: &Client, name: &str, copy: Option<&Described>) -> Result<(), Cause> {
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

/// Growing pauses between looks at something that takes seconds or hours.
pub(super) struct Pauses(Duration);

impl Pauses {
    pub(super) const fn new() -> Self {
        Self(FIRST_PAUSE)
    }

    /// Waits, each time longer, and at most five seconds.
    pub(super) async fn wait(&mut self) {
        tokio::time::sleep(self.0).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
