//! What the template gives a table beside its rows, and a restore does not copy.

use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::operation::update_continuous_backups::UpdateContinuousBackupsError;
use aws_sdk_dynamodb::types::{
    PointInTimeRecoverySpecification, PointInTimeRecoveryStatus, TableDescription, Tag, TimeToLiveSpecification,
    TimeToLiveStatus,
};
use common::preflight::Problem;
use common::resources::TTL;

/// The pause before a call is repeated that DynamoDB does not take yet.
const PAUSE: Duration = Duration::from_secs(1);
/// Tags of AWS begin like this. Nobody else can set them.
const AWS_PREFIX: &str = "aws:";

/// What a table lacks.
#[derive(Debug)]
pub(crate) struct Lacking {
    arn: String,
    time_to_live: bool,
    recovery: bool,
    protection: bool,
    /// The tags of the stack's own table.
    tags: Vec<Tag>,
}

impl Lacking {
    /// Looks at a table. `own` is the table that the template makes.
    pub(crate) async fn of(client: &Client, name: &str, own: &str) -> Result<Self, Problem> {
        let table = described(client, name).await?;
        let protects = |table: &TableDescription| table.deletion_protection_enabled == Some(true);
        let is_protected = table.as_ref().is_some_and(protects);
        let arn = table.and_then(|table| table.table_arn).unwrap_or_default();
        let own_table = match described(client, own).await {
            Ok(found) => found,
            Err(Problem::Missing) => None,
            Err(problem) => return Err(problem),
        };
        let time_to_live = !expires_rows(client, name).await?;
        // A stack may want no protection. Its own table shows that, unless a restore has just made it.
        let wants_protection = if name == own { time_to_live } else { own_table.as_ref().is_none_or(protects) };
        let of_own = match own_table {
            Some(own_table) => tags(client, own_table.table_arn).await?,
            None => Vec::new(),
        };
        let present = tags(client, Some(arn.clone())).await?;
        Ok(Self {
            time_to_live,
            recovery: !is_recovered(client, name).await?,
            protection: wants_protection && !is_protected,
            tags: of_own.into_iter().filter(|tag| !present.contains(tag)).collect(),
            arn,
        })
    }

    /// Names what is missing.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let all = [
            (self.time_to_live, "time to live"),
            (self.recovery, "point-in-time recovery"),
            (self.protection, "deletion protection"),
            (!self.tags.is_empty(), "tags"),
        ];
        all.into_iter().filter(|(lacks, _)| *lacks).map(|(_, name)| name).collect()
    }

    /// Gives the table what it lacks.
    pub(crate) async fn give(self, client: &Client, name: &str) -> Result<(), Problem> {
        if !self.tags.is_empty() {
            client.tag_resource().resource_arn(self.arn).set_tags(Some(self.tags)).send().await?;
        }
        if self.time_to_live {
            let expiry = TimeToLiveSpecification::builder().attribute_name(TTL).enabled(true).build();
            let update = client.update_time_to_live().table_name(name);
            update.time_to_live_specification(expiry.map_err(|error| refused(&error))?).send().await?;
        }
        if self.recovery {
            recover(client, name).await?;
        }
        if self.protection {
            client.update_table().table_name(name).deletion_protection_enabled(true).send().await?;
        }
        Ok(())
    }
}

async fn described(client: &Client, name: &str) -> Result<Option<TableDescription>, Problem> {
    Ok(client.describe_table().table_name(name).send().await?.table)
}

/// Returns a table's tags that do not belong to AWS.
async fn tags(client: &Client, arn: Option<String>) -> Result<Vec<Tag>, Problem> {
    let (mut tags, mut next) = (Vec::new(), None);
    loop {
        let list = client.list_tags_of_resource().set_resource_arn(arn.clone()).set_next_token(next);
        let page = list.send().await?;
        tags.extend(page.tags.unwrap_or_default().into_iter().filter(|tag| !tag.key().starts_with(AWS_PREFIX)));
        next = page.next_token;
        if next.is_none() {
            return Ok(tags);
        }
    }
}

async fn expires_rows(client: &Client, name: &str) -> Result<bool, Problem> {
    let found = client.describe_time_to_live().table_name(name).send().await?.time_to_live_description;
    let status = found.and_then(|found| found.time_to_live_status);
    Ok(matches!(status, Some(TimeToLiveStatus::Enabled | TimeToLiveStatus::Enabling)))
}

async fn is_recovered(client: &Client, name: &str) -> Result<bool, Problem> {
    let found = client.describe_continuous_backups().table_name(name).send().await?;
    let found = found.continuous_backups_description.and_then(|found| found.point_in_time_recovery_description);
    Ok(found.and_then(|found| found.point_in_time_recovery_status) == Some(PointInTimeRecoveryStatus::Enabled))
}

/// Switches point-in-time recovery on. DynamoDB refuses that for a while after it has made a table.
async fn recover(client: &Client, name: &str) -> Result<(), Problem> {
    let on = PointInTimeRecoverySpecification::builder().point_in_time_recovery_enabled(true).build();
    let on = on.map_err(|error| refused(&error))?;
    loop {
        let update = client.update_continuous_backups().table_name(name);
        match update.point_in_time_recovery_specification(on.clone()).send().await {
            Ok(_) => return Ok(()),
            Err(error)
                if matches!(
                    error.as_service_error(),
                    Some(UpdateContinuousBackupsError::ContinuousBackupsUnavailableException(_))
                ) =>
            {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn refused(error: &BuildError) -> Problem {
    Problem::Refused(error.to_string())
}
