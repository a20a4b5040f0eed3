//! The steps that make, back up and delete tables. Each waits until DynamoDB has done it, which may take hours.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::create_backup::CreateBackupError;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{BackupStatus, TableStatus};

use super::error::Cause;
use super::pause::Pauses;
use super::state::{Described, Found, describe};

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
pub(super) async fn protect(client: &Client, name: &str, is_protected: bool) -> Result<(), Cause> {
    let table = wait_until_active(client, name).await?;
    if table.is_protected != is_protected {
        client.update_table().table_name(name).deletion_protection_enabled(is_protected).send().await?;
        wait_until_active(client, name).await?;
    }
    Ok(())
}

/// Waits until a table can be used. Fails if it does not exist.
pub(super) async fn wait_until_active(client: &Client, name: &str) -> Result<Described, Cause> {
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
