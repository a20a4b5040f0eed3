//! Point-in-time recovery and backups. The embedded DynamoDB has neither.
//!
//! While a table has point-in-time recovery, a journal keeps what each write replaced. A restore copies the table as it
//! is, and undoes what was written after the moment. As with AWS, a restored table may hold some but not all rows of the
//! last transaction before that moment: [`Recovery::cut_last_transaction`] says which rows it lacks.
//!
//! Everything is forgotten when the process ends.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use common::clock::{Clock, SystemClock};
use common::timestamp::Timestamp;
use dynoxide::actions::scan::ScanRequest;
use dynoxide::{ImportOptions, Item};
use http::StatusCode;
use serde_json::{Value, json};

use super::tables::{Answer, Tables};
use super::writes::{RowKey, Write};
use crate::environment::{ACCOUNT_ID, REGION};

const SECOND_MILLIS: i64 = 1_000;

/// The name of an error, and its message.
type Refused = (&'static str, String);

/// The journals and the backups of all tables.
#[derive(Default)]
pub struct Recovery {
    is_used: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    journals: HashMap<String, Journal>,
    backups: Vec<Backup>,
    /// Where restored tables come from.
    origins: HashMap<String, Origin>,
    undone_rows: u64,
    last_millis: i64,
}

/// The writes to a table since it has point-in-time recovery.
struct Journal {
    since: Timestamp,
    writes: Vec<(Timestamp, Vec<Undo>)>,
}

/// A row and what it was before a write, or `None` if it was not there.
type Undo = (RowKey, Option<Item>);

struct Backup {
    arn: String,
    name: String,
    table: String,
    made_at: Timestamp,
    content: Copied,
}

/// Where a table comes from that was restored.
struct Origin {
    source_table: String,
    source_backup: Option<String>,
    at: Timestamp,
    /// Whether the table was described since. The first description says that it is being created.
    is_described: bool,
}

/// A table's definition and its rows. Settings such as its tags are not part of it.
#[derive(Clone)]
pub(super) struct Copied {
    definition: Value,
    rows: HashMap<RowKey, Item>,
}

impl Recovery {
    /// Returns a whole second to which tables can be restored. All writes so far are before it, and all others after
    /// it.
    pub fn moment(&self) -> Timestamp {
        let mut state = self.state();
        state.last_millis = ceiling_seconds(state.latest()) * SECOND_MILLIS;
        Timestamp::from_millis(state.last_millis)
    }

    /// From now on, tables restored to a moment lack some rows of the last transaction before it: those whose number in
    /// the transaction has a bit here.
    pub fn cut_last_transaction(&self, rows: u64) {
        self.state().undone_rows = rows;
    }

    /// Answers a call. If it writes to a table with a journal, the journal gets the write.
    pub(super) fn answer(&self, tables: &Tables, operation: &str, body: &[u8]) -> Answer {
        let is_own = operation.contains("Backup") || operation == "RestoreTableToPointInTime";
        if !is_own && !self.is_used.load(Ordering::Acquire) {
            return tables.answer(operation, body);
        }
        self.is_used.store(true, Ordering::Release);
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        // Held until the answer, so that the journals have the writes in their order.
        let mut state = self.state();
        if is_own {
            return match state.own_answer(tables, operation, &request) {
                Ok(body) => Answer::json(StatusCode::OK, &body),
                Err((name, message)) => Answer::error(name, json!({ "message": message })),
            };
        }
        let writes = Write::from_request(tables, operation, &request).unwrap_or_default();
        let changes = writes.iter().filter(|write| write.is_change());
        let undos: Vec<Undo> = changes.map(|write| (write.row(), write.stored(tables))).collect();
        let answer = tables.answer(operation, body);
        if answer.status.is_success() && !undos.is_empty() {
            state.keep(undos);
        }
        match (operation, request["TableName"].as_str()) {
            ("DescribeTable", Some(table)) => state.describe(table, answer),
            ("DeleteTable", Some(table)) if answer.status.is_success() => {
                state.journals.remove(table);
                state.origins.remove(table);
                answer
            }
            _ => answer,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the time now, which is never before a write.
    fn latest(&self) -> Timestamp {
        SystemClock::new().now().max(Timestamp::from_millis(self.last_millis))
    }

    /// Returns a time that no other write has.
    fn next_write(&mut self) -> Timestamp {
        self.last_millis = self.latest().millis().max(self.last_millis + 1);
        Timestamp::from_millis(self.last_millis)
    }

    /// Puts a write into the journals of its tables.
    fn keep(&mut self, undos: Vec<Undo>) {
        let at = self.next_write();
        let mut by_table: HashMap<String, Vec<Undo>> = HashMap::new();
        for undo in undos {
            by_table.entry(undo.0.table.clone()).or_default().push(undo);
        }
        for (table, rows) in by_table {
            if let Some(journal) = self.journals.get_mut(&table) {
                journal.writes.push((at, rows));
            }
        }
    }

    /// Adds to a table's description where the table comes from.
    fn describe(&mut self, table: &str, answer: Answer) -> Answer {
        let Some(origin) = self.origins.get_mut(table) else { return answer };
        answer.changed(|body| {
            let description = &mut body["Table"];
            description["RestoreSummary"] = json!({
                "RestoreDateTime": origin.at.seconds(),
                "RestoreInProgress": !origin.is_described,
                "SourceTableArn": table_arn(&origin.source_table),
                "SourceBackupArn": origin.source_backup,
            });
            if !origin.is_described {
                description["TableStatus"] = json!("CREATING");
                origin.is_described = true;
            }
            Some(())
        })
    }

    fn own_answer(&mut self, tables: &Tables, operation: &str, request: &Value) -> Result<Value, Refused> {
        let text = |name: &str| request[name].as_str().unwrap_or_default();
        let (table, target) = (text("TableName"), text("TargetTableName"));
        match operation {
            "UpdateContinuousBackups" => {
                // Says whether there is such a table.
                self.continuous_backups(tables, table)?;
                if request["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] == json!(true) {
                    let journal = Journal { since: self.latest(), writes: Vec::new() };
                    self.journals.entry(table.to_owned()).or_insert(journal);
                } else {
                    self.journals.remove(table);
                }
                self.continuous_backups(tables, table)
            }
            "DescribeContinuousBackups" => self.continuous_backups(tables, table),
            "RestoreTableToPointInTime" => {
                let seconds = request["RestoreDateTime"].as_f64().map_or(i64::MAX, |seconds| seconds as i64);
                self.restore_to(tables, text("SourceTableName"), seconds, target)
            }
            "CreateBackup" => self.back_up(tables, table, text("BackupName")),
            "DescribeBackup" => {
                let backup = self.backup(text("BackupArn"))?;
                Ok(json!({ "BackupDescription": { "BackupDetails": backup.details() } }))
            }
            "DeleteBackup" => {
                let details = self.backup(text("BackupArn"))?.details();
                self.backups.retain(|backup| backup.arn != text("BackupArn"));
                Ok(json!({ "BackupDescription": { "BackupDetails": details } }))
            }
            "ListBackups" => {
                let listed = self.backups.iter().filter(|backup| table.is_empty() || table == backup.table);
                Ok(json!({ "BackupSummaries": listed.map(Backup::details).collect::<Vec<_>>() }))
            }
            "RestoreTableFromBackup" => {
                let Backup { arn, table, made_at, content, .. } = self.backup(text("BackupArn"))?;
                let (source_table, source_backup) = (table.clone(), Some(arn.clone()));
                let origin = Origin { source_table, source_backup, at: *made_at, is_described: false };
                let content = content.clone();
                self.make(tables, target, content, origin)
            }
            other => Err(("ValidationException", format!("{other} is not among the operations served here"))),
        }
    }

    fn continuous_backups(&self, tables: &Tables, table: &str) -> Result<Value, Refused> {
        assert_there(tables, table)?;
        let recovery = match self.journals.get(table) {
            None => json!({ "PointInTimeRecoveryStatus": "DISABLED" }),
            Some(journal) => json!({
                "PointInTimeRecoveryStatus": "ENABLED",
                "EarliestRestorableDateTime": ceiling_seconds(journal.since),
                "LatestRestorableDateTime": self.latest().seconds(),
            }),
        };
        let description = json!({ "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": recovery });
        Ok(json!({ "ContinuousBackupsDescription": description }))
    }

    fn restore_to(&mut self, tables: &Tables, source: &str, seconds: i64, target: &str) -> Result<Value, Refused> {
        let unavailable = || ("PointInTimeRecoveryUnavailableException", format!("not enabled for {source}"));
        let journal = self.journals.get(source).ok_or_else(unavailable)?;
        if !(ceiling_seconds(journal.since)..=self.latest().seconds()).contains(&seconds) {
            return Err(("InvalidRestoreTimeException", "outside of the restorable times".to_owned()));
        }
        let at = Timestamp::from_millis(seconds * SECOND_MILLIS);
        let mut content = Copied::from_table(tables, source).map_err(internal)?;
        journal.go_back(&mut content.rows, at, self.undone_rows);
        let origin = Origin { source_table: source.to_owned(), source_backup: None, at, is_described: false };
        self.make(tables, target, content, origin)
    }

    /// Makes a table that is restored.
    fn make(&mut self, tables: &Tables, name: &str, content: Copied, origin: Origin) -> Result<Value, Refused> {
        if tables.schema(name).is_some() {
            return Err(("TableAlreadyExistsException", format!("Table already exists: {name}")));
        }
        content.into_table(tables, name).map_err(internal)?;
        self.origins.insert(name.to_owned(), origin);
        Ok(json!({ "TableDescription": { "TableName": name, "TableStatus": "CREATING" } }))
    }

    fn back_up(&mut self, tables: &Tables, table: &str, name: &str) -> Result<Value, Refused> {
        assert_there(tables, table)?;
        let made_at = self.latest();
        let arn = format!("{}/backup/{:020}", table_arn(table), self.next_write().millis());
        let content = Copied::from_table(tables, table).map_err(internal)?;
        let backup = Backup { arn, name: name.to_owned(), table: table.to_owned(), made_at, content };
        let details = backup.details();
        self.backups.push(backup);
        Ok(json!({ "BackupDetails": details }))
    }

    fn backup(&self, arn: &str) -> Result<&Backup, Refused> {
        let found = self.backups.iter().find(|backup| backup.arn == arn);
        found.ok_or_else(|| ("BackupNotFoundException", format!("Backup not found: {arn}")))
    }
}

impl Backup {
    /// Returns its details, as calls describe and list it.
    fn details(&self) -> Value {
        json!({
            "BackupArn": self.arn,
            "BackupName": self.name,
            "BackupStatus": "AVAILABLE",
            "BackupType": "USER",
            "BackupCreationDateTime": self.made_at.seconds(),
            "TableName": self.table,
            "TableArn": table_arn(&self.table),
        })
    }
}

impl Journal {
    /// Makes the rows what they were at a moment. Of the last transaction before it, the rows are undone whose number
    /// has a bit in `undone_rows`.
    fn go_back(&self, rows: &mut HashMap<RowKey, Item>, to: Timestamp, undone_rows: u64) {
        let (before, after) = self.writes.split_at(self.writes.partition_point(|(at, _)| *at <= to));
        for (key, old) in after.iter().rev().flat_map(|(_, undos)| undos.iter().rev()) {
            undo(rows, key, old.as_ref());
        }
        let Some(last) = before.iter().rposition(|(_, undos)| undos.len() > 1) else { return };
        // What was written since to the same rows stays.
        let later: HashSet<&RowKey> =
            before[last + 1..].iter().flat_map(|(_, undos)| undos).map(|(key, _)| key).collect();
        for (number, (key, old)) in before[last].1.iter().enumerate() {
            let is_undone = number < 64 && (undone_rows >> number) & 1 == 1;
            if is_undone && !later.contains(key) {
                undo(rows, key, old.as_ref());
            }
        }
    }
}

fn undo(rows: &mut HashMap<RowKey, Item>, key: &RowKey, old: Option<&Item>) {
    if let Some(old) = old {
        rows.insert(key.clone(), old.clone());
    } else {
        rows.remove(key);
    }
}

impl Copied {
    /// Copies a table as it is.
    pub(super) fn from_table(tables: &Tables, name: &str) -> Result<Self, String> {
        let metadata = tables.0.get_table_metadata(name).map_err(|error| error.to_string())?;
        let (metadata, schema) = metadata.zip(tables.schema(name)).ok_or_else(|| format!("no table {name}"))?;
        let parsed = |json: &str| serde_json::from_str::<Value>(json).map_err(|error| error.to_string());
        let mut definition = json!({
            "KeySchema": parsed(&metadata.key_schema)?,
            "AttributeDefinitions": parsed(&metadata.attribute_definitions)?,
            "BillingMode": "PAY_PER_REQUEST",
        });
        if let Some(indexes) = metadata.gsi_definitions.filter(|_| !schema.indexes.is_empty()) {
            definition["GlobalSecondaryIndexes"] = parsed(&indexes)?;
        }
        let (mut rows, mut exclusive_start_key) = (HashMap::new(), None);
        loop {
            let table_name = name.to_owned();
            let scan = ScanRequest { table_name, exclusive_start_key, ..ScanRequest::default() };
            let page = tables.0.scan(scan).map_err(|error| error.to_string())?;
            for row in page.items.into_iter().flatten() {
                let key = schema.keys.key_of(&row).ok_or("a row without keys")?;
                rows.insert(RowKey::new(name, &key), row);
            }
            exclusive_start_key = page.last_evaluated_key;
            if exclusive_start_key.is_none() {
                return Ok(Self { definition, rows });
            }
        }
    }

    /// Makes a table of it.
    pub(super) fn into_table(mut self, tables: &Tables, name: &str) -> Result<(), String> {
        self.definition["TableName"] = json!(name);
        let made = tables.answer("CreateTable", self.definition.to_string().as_bytes());
        if !made.status.is_success() {
            return Err(String::from_utf8_lossy(&made.body).into_owned());
        }
        let rows = self.rows.into_values().collect();
        tables.0.import_items(name, rows, ImportOptions::default()).map_err(|error| error.to_string())?;
        Ok(())
    }
}

fn assert_there(tables: &Tables, table: &str) -> Result<(), Refused> {
    let is_there = tables.schema(table).is_some();
    if is_there { Ok(()) } else { Err(("TableNotFoundException", format!("Table not found: {table}"))) }
}

/// Returns the first whole second that is not before this time. A table can be restored to whole seconds only.
fn ceiling_seconds(time: Timestamp) -> i64 {
    (time.millis() + SECOND_MILLIS - 1).div_euclid(SECOND_MILLIS)
}

fn table_arn(name: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{name}")
}

fn internal(message: String) -> Refused {
    ("InternalServerError", message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dynoxide::AttributeValue;

    fn item(value: &str) -> Item {
        Item::from([("pk".to_owned(), AttributeValue::S(value.to_owned()))])
    }

    fn key(name: &str) -> RowKey {
        RowKey::new("table", &item(name))
    }

    /// Returns the rows `a` and `b` as they were at this time. They were put by one transaction, and `a` was put again.
    fn rows_at(millis: i64, undone_rows: u64) -> [Option<Item>; 2] {
        let at = Timestamp::from_millis;
        let writes =
            vec![(at(1), vec![(key("a"), None), (key("b"), None)]), (at(2), vec![(key("a"), Some(item("first")))])];
        let journal = Journal { since: at(0), writes };
        let mut rows = HashMap::from([(key("a"), item("second")), (key("b"), item("first"))]);
        journal.go_back(&mut rows, at(millis), undone_rows);
        ["a", "b"].map(|name| rows.remove(&key(name)))
    }

    #[test]
    fn later_writes_are_undone() {
        assert_eq!(rows_at(2, 0), [Some(item("second")), Some(item("first"))]);
        assert_eq!(rows_at(1, 0), [Some(item("first")), Some(item("first"))]);
        assert_eq!(rows_at(0, 0), [None, None]);
    }

    #[test]
    fn the_last_transaction_is_cut_and_what_came_after_it_stays() {
        assert_eq!(rows_at(1, 0b01), [None, Some(item("first"))]);
        assert_eq!(rows_at(1, 0b10), [Some(item("first")), None]);
        assert_eq!(rows_at(2, 0b11), [Some(item("second")), None]);
    }
}
