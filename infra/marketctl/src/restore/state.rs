//! How far a restore is, as AWS shows it.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{BuildError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::describe_table::DescribeTableError;
use aws_sdk_dynamodb::primitives::DateTime;
use aws_sdk_dynamodb::types::{BackupStatus, TableDescription, TableStatus};
use common::resources::{Resources, Table};
use common::store::explain;
use common::timestamp::Timestamp;
use thiserror::Error;

/// What went wrong, in one line.
#[derive(Debug, Error)]
#[error("{0}")]
pub(super) struct Cause(pub(super) String);

impl<E> From<SdkError<E, HttpResponse>> for Cause
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        Self(explain(&error))
    }
}

impl From<BuildError> for Cause {
    fn from(error: BuildError) -> Self {
        Self(error.to_string())
    }
}

/// What was found of the table, of its copy and of the copy's backup.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: String,
    pub(super) copy_name: String,
    pub(super) to: Timestamp,
    pub(super) table: Option<Described>,
    pub(super) copy: Option<Described>,
    /// Whether the copy is one of this table at this moment.
    pub(super) is_own_copy: bool,
    /// The ARN of the backup of the repaired copy.
    pub(super) backup: Option<String>,
    /// Whether the table was restored from that backup.
    pub(super) is_swapped: bool,
    /// The moments to which the table can be restored.
    pub(super) window: Option<(Timestamp, Timestamp)>,
}

/// A table as AWS describes it.
#[derive(Clone, Debug)]
pub(super) struct Described {
    pub(super) status: TableStatus,
    pub(super) arn: String,
    /// When it was created, in seconds since the Unix epoch.
    pub(super) created: i64,
    pub(super) is_protected: bool,
    pub(super) origin: Option<Origin>,
}

/// Where a table comes from that was restored.
#[derive(Clone, Debug)]
pub(super) struct Origin {
    table_arn: Option<String>,
    backup_arn: Option<String>,
    /// In seconds since the Unix epoch.
    at: i64,
}

/// A backup of the repaired copy.
struct Backup {
    arn: String,
    /// In seconds since the Unix epoch.
    made_at: i64,
}

impl Found {
    /// Looks at everything again.
    pub(super) async fn look(
        client: &Client,
        resources: &Resources,
        table: Table,
        to: Timestamp,
    ) -> Result<Self, Cause> {
        let name = resources.table(table);
        let copy_name = format!("{name}-restored");
        let (table, copy) = (describe(client, &name).await?, describe(client, &copy_name).await?);
        let is_own_copy = copy.as_ref().is_some_and(|copy| copy.is_copy_of(&name, to));
        let since = copy.as_ref().map_or(i64::MIN, |copy| copy.created);
        // A copy of another moment has no backup for this one.
        let is_other = copy.is_some() && !is_own_copy;
        let backup = if is_other { None } else { backup(client, &copy_name, &backup_name(&name, to), since).await? };
        let (backup, is_swapped) = judge(backup, table.as_ref());
        let window = if table.is_some() && copy.is_none() { window(client, &name).await? } else { None };
        Ok(Self { name, copy_name, to, table, copy, is_own_copy, backup, is_swapped, window })
    }

    /// Returns the name of the backup of the repaired copy.
    pub(super) fn backup_name(&self) -> String {
        backup_name(&self.name, self.to)
    }
}

impl Described {
    fn is_copy_of(&self, table: &str, at: Timestamp) -> bool {
        let source = format!(":table/{table}");
        self.origin.as_ref().is_some_and(|origin| {
            let is_of_table = origin.table_arn.as_ref().is_some_and(|arn| arn.ends_with(&source));
            is_of_table && origin.backup_arn.is_none() && origin.at == at.seconds()
        })
    }
}

impl From<TableDescription> for Described {
    fn from(table: TableDescription) -> Self {
        let origin = table.restore_summary.map(|summary| Origin {
            table_arn: summary.source_table_arn,
            backup_arn: summary.source_backup_arn,
            at: summary.restore_date_time.secs(),
        });
        Self {
            status: table.table_status.unwrap_or_else(|| TableStatus::from("unknown")),
            arn: table.table_arn.unwrap_or_default(),
            created: table.creation_date_time.map_or(0, |at| at.secs()),
            is_protected: table.deletion_protection_enabled.unwrap_or_default(),
            origin,
        }
    }
}

/// Describes a table, if it exists.
pub(super) async fn describe(client: &Client, name: &str) -> Result<Option<Described>, Cause> {
    match client.describe_table().table_name(name).send().await {
        Ok(found) => Ok(found.table.map(Described::from)),
        Err(error) if matches!(error.as_service_error(), Some(DescribeTableError::ResourceNotFoundException(_))) => {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the table's newest backup with this name that was made since then.
async fn backup(client: &Client, table: &str, name: &str, since: i64) -> Result<Option<Backup>, Cause> {
    let listed = client.list_backups().table_name(table).send().await?;
    let listed = listed.backup_summaries.unwrap_or_default().into_iter().filter(|backup| {
        backup.backup_name.as_deref() == Some(name) && backup.backup_status != Some(BackupStatus::Deleted)
    });
    let made = listed.filter_map(|backup| {
        Some(Backup { arn: backup.backup_arn?, made_at: backup.backup_creation_date_time?.secs() })
    });
    Ok(made.filter(|backup| backup.made_at >= since).max_by_key(|backup| backup.made_at))
}

/// Returns the backup that a restore goes on from, and whether the table was restored from it. A backup that is older
/// than the table is left over: instances may remember what a later restore began anew, so the copy is repaired again.
fn judge(backup: Option<Backup>, table: Option<&Described>) -> (Option<String>, bool) {
    let Some(Backup { arn, made_at }) = backup else { return (None, false) };
    let source = table.and_then(|table| table.origin.as_ref()?.backup_arn.as_ref());
    let is_swapped = source == Some(&arn);
    let is_left_over = !is_swapped && table.is_some_and(|table| table.created > made_at);
    (Some(arn).filter(|_| !is_left_over), is_swapped)
}

/// Returns the moments to which a table can be restored, if it has point-in-time recovery.
async fn window(client: &Client, name: &str) -> Result<Option<(Timestamp, Timestamp)>, Cause> {
    let found = client.describe_continuous_backups().table_name(name).send().await?;
    let found = found.continuous_backups_description.and_then(|found| found.point_in_time_recovery_description);
    let at = |at: DateTime| Timestamp::from_millis(at.secs().saturating_mul(1_000));
    Ok(found.and_then(|found| Some((at(found.earliest_restorable_date_time?), at(found.latest_restorable_date_time?)))))
}

fn backup_name(table: &str, to: Timestamp) -> String {
    format!("{table}-{}", to.seconds())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(created: i64, backup: Option<&str>) -> Described {
        let origin = backup.map(|arn| Origin { table_arn: None, backup_arn: Some(arn.to_owned()), at: 0 });
        Described { status: TableStatus::Active, arn: String::new(), created, is_protected: false, origin }
    }

    #[test]
    fn a_backup_from_before_the_table_is_left_over_unless_the_table_comes_from_it() {
        let judged = |table: Option<Described>| {
            let backup = Backup { arn: "mine".to_owned(), made_at: 5 };
            let (backup, is_swapped) = judge(Some(backup), table.as_ref());
            (backup.is_some(), is_swapped)
        };
        assert_eq!(judged(None), (true, false));
        assert_eq!(judged(Some(table(5, None))), (true, false));
        assert_eq!(judged(Some(table(6, Some("mine")))), (true, true));
        assert_eq!(judged(Some(table(6, Some("other")))), (false, false));
        assert_eq!(judged(Some(table(6, None))), (false, false));
    }
}
