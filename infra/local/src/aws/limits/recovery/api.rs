//! The operations of point-in-time recovery and of backups.

use std::sync::atomic::Ordering;

use http::StatusCode;
use serde_json::{Value, json};
use types::timestamp::Timestamp;

use super::copy::Copied;
use super::journal::Journal;
use super::{Backup, Origin, Recovery, SECOND_MILLIS, State, table_arn};
use crate::aws::limits::answer::Answer;
use crate::aws::limits::tables::Tables;

const BYPASSED: &str = "The functions call DynamoDB directly. Start `local` with --aws-limits.";

/// The name of an error, and its message.
type Refused = (&'static str, String);

impl Recovery {
    /// Answers a call that [`Recovery::serves`] names.
    pub(in crate::aws::limits) async fn answer(&self, tables: &Tables, operation: &str, request: &Value) -> Answer {
        self.is_used.store(true, Ordering::Release);
        if operation == "UpdateContinuousBackups" && self.is_bypassed.load(Ordering::Acquire) {
            return Answer::error("ValidationException", json!({ "message": BYPASSED }));
        }
        // A write that is being applied is not in the journal yet.
        let _writing = self.writing.lock().await;
        let mut state = self.state();
        let answered = match operation {
            "UpdateContinuousBackups" => state.update_continuous_backups(tables, request),
            "DescribeContinuousBackups" => state.continuous_backups(tables, text(request, "TableName")),
            "RestoreTableToPointInTime" => state.restore_to_point_in_time(tables, request),
            "CreateBackup" => state.create_backup(tables, request),
            "DescribeBackup" => state
                .backup(text(request, "BackupArn"))
                .map(|backup| json!({ "BackupDescription": { "BackupDetails": backup.details() } })),
            "DeleteBackup" => state.delete_backup(text(request, "BackupArn")),
            "ListBackups" => Ok(state.list_backups(request["TableName"].as_str())),
            "RestoreTableFromBackup" => state.restore_from_backup(tables, request),
            other => Err(("ValidationException", format!("{other} is not among the operations served here"))),
        };
        match answered {
            Ok(body) => Answer::json(StatusCode::OK, &body),
            Err((name, message)) => Answer::error(name, json!({ "message": message })),
        }
    }
}

impl State {
    fn update_continuous_backups(&mut self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let table = text(request, "TableName");
        // Says whether there is such a table.
        self.continuous_backups(tables, table)?;
        if request["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] == json!(true) {
            let since = self.latest();
            self.journals.entry(table.to_owned()).or_insert_with(|| Journal::new(since));
        } else {
            self.journals.remove(table);
        }
        self.continuous_backups(tables, table)
    }

    fn continuous_backups(&self, tables: &Tables, table: &str) -> Result<Value, Refused> {
        tables.schema(table).ok_or_else(|| ("TableNotFoundException", format!("Table not found: {table}")))?;
        let recovery = match self.journals.get(table) {
            None => json!({ "PointInTimeRecoveryStatus": "DISABLED" }),
            Some(journal) => json!({
                "PointInTimeRecoveryStatus": "ENABLED",
                "EarliestRestorableDateTime": earliest(journal),
                "LatestRestorableDateTime": self.latest().seconds(),
            }),
        };
        let description = json!({ "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery });
        Ok(json!({ "ContinuousBackupsDescription": description }))
    }

    fn restore_to_point_in_time(&mut self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let (source, target) = (text(request, "SourceTableName"), text(request, "TargetTableName"));
        let unavailable = || ("PointInTimeRecoveryUnavailableException", format!("not enabled for {source}"));
        let journal = self.journals.get(source).ok_or_else(unavailable)?;
        let seconds = request["RestoreDateTime"].as_f64().map_or(i64::MAX, |seconds| seconds as i64);
        if !(earliest(journal)..=self.latest().seconds()).contains(&seconds) {
            return Err(("InvalidRestoreTimeException", "outside of the restorable times".to_owned()));
        }
        let at = Timestamp::from_millis(seconds * SECOND_MILLIS);
        let mut content = Copied::from_table(&tables.0, source).map_err(internal)?;
        journal.go_back(&mut content.rows, at, self.undone_rows);
        let origin = Origin { source_table: Some(source.to_owned()), source_backup: None, at, is_described: false };
        self.make(tables, target, content, origin)
    }

    fn restore_from_backup(&mut self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let backup = self.backup(text(request, "BackupArn"))?;
        let origin = Origin {
            source_table: Some(backup.table.clone()),
            source_backup: Some(backup.arn.clone()),
            at: backup.made_at,
            is_described: false,
        };
        let content = backup.content.clone();
        self.make(tables, text(request, "TargetTableName"), content, origin)
    }

    /// Makes a table that is restored.
    fn make(&mut self, tables: &Tables, name: &str, content: Copied, origin: Origin) -> Result<Value, Refused> {
        if tables.schema(name).is_some() {
            return Err(("TableAlreadyExistsException", format!("Table already exists: {name}")));
        }
        content.into_table(&tables.0, name).map_err(internal)?;
        self.origins.insert(name.to_owned(), origin);
        Ok(json!({ "TableDescription": { "TableName": name, "TableStatus": "CREATING" } }))
    }

    fn create_backup(&mut self, tables: &Tables, request: &Value) -> Result<Value, Refused> {
        let (table, name) = (text(request, "TableName"), text(request, "BackupName"));
        tables.schema(table).ok_or_else(|| ("TableNotFoundException", format!("Table not found: {table}")))?;
        let made_at = self.latest();
        let arn = format!("{}/backup/{:020}", table_arn(table), self.next_write().millis());
        let content = Copied::from_table(&tables.0, table).map_err(internal)?;
        let backup = Backup { arn, name: name.to_owned(), table: table.to_owned(), made_at, content };
        let details = backup.details();
        self.backups.push(backup);
        Ok(json!({ "BackupDetails": details }))
    }

    fn backup(&self, arn: &str) -> Result<&Backup, Refused> {
        let found = self.backups.iter().find(|backup| backup.arn == arn);
        found.ok_or_else(|| ("BackupNotFoundException", format!("Backup not found: {arn}")))
    }

    fn delete_backup(&mut self, arn: &str) -> Result<Value, Refused> {
        let details = self.backup(arn)?.details();
        self.backups.retain(|backup| backup.arn != arn);
        Ok(json!({ "BackupDescription": { "BackupDetails": details } }))
    }

    fn list_backups(&self, table: Option<&str>) -> Value {
        let listed = self.backups.iter().filter(|backup| table.is_none_or(|table| table == backup.table));
        let listed: Vec<Value> = listed.map(Backup::summary).collect();
        json!({ "BackupSummaries": listed })
    }
}

impl Backup {
    fn details(&self) -> Value {
        json!({
            "BackupArn": self.arn,
            "BackupName": self.name,
            "BackupStatus": "AVAILABLE",
            "BackupType": "USER",
            "BackupCreationDateTime": self.made_at.seconds(),
        })
    }

    fn summary(&self) -> Value {
        let mut summary = self.details();
        summary["TableName"] = json!(self.table);
        summary["TableArn"] = json!(table_arn(&self.table));
        summary
    }
}

/// Returns the first whole second to which a table can be restored.
fn earliest(journal: &Journal) -> i64 {
    (journal.since.millis() + SECOND_MILLIS - 1).div_euclid(SECOND_MILLIS)
}

fn text<'r>(request: &'r Value, name: &str) -> &'r str {
    request[name].as_str().unwrap_or_default()
}

fn internal(message: String) -> Refused {
    ("InternalServerError", message)
}
