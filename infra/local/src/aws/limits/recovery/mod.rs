//! Point-in-time recovery and backups. The embedded DynamoDB has neither.
//!
//! While a table has point-in-time recovery, a journal keeps what each write replaced. A restore copies the table as it
//! is, and undoes what was written after the moment. As with AWS, a restored table may hold some but not all rows of the
//! last transaction before that moment: [`Recovery::cut_last_transaction`] says which rows it lacks.
//!
//! Everything is forgotten when the process ends.

mod api;
mod copy;
mod journal;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::sync::MutexGuard as WritingGuard;
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;

use super::answer::Answer;
use super::tables::Tables;
use super::writes::Write;
use crate::environment::{ACCOUNT_ID, REGION};
use copy::Copied;
use journal::{Journal, Undo};

const SECOND_MILLIS: i64 = 1_000;

/// The journals and the backups of all tables.
#[derive(Default)]
pub struct Recovery {
    is_used: AtomicBool,
    is_bypassed: AtomicBool,
    /// Held while a write is applied, so that the journal has the writes in their order.
    writing: tokio::sync::Mutex<()>,
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

struct Backup {
    arn: String,
    name: String,
    table: String,
    made_at: Timestamp,
    content: Copied,
}

/// Where a table comes from that was restored.
struct Origin {
    source_table: Option<String>,
    source_backup: Option<String>,
    at: Timestamp,
    /// Whether the table was described since. The first description says that it is being created.
    is_described: bool,
}

/// A write that will go to the journal once it was applied.
pub(super) struct Pending<'r> {
    recovery: &'r Recovery,
    rows: Vec<(String, Undo)>,
    _writing: WritingGuard<'r, ()>,
}

impl Recovery {
    /// Returns a whole second to which tables can be restored. All writes so far are before it, and all others after
    /// it.
    pub fn moment(&self) -> Timestamp {
        let mut state = self.state();
        let seconds = (state.latest().millis() + SECOND_MILLIS - 1).div_euclid(SECOND_MILLIS);
        state.last_millis = seconds * SECOND_MILLIS;
        Timestamp::from_millis(state.last_millis)
    }

    /// From now on, tables restored to a moment lack some rows of the last transaction before it: those whose number in
    /// the transaction has a bit here.
    pub fn cut_last_transaction(&self, rows: u64) {
        self.state().undone_rows = rows;
    }

    /// Refuses point-in-time recovery from now on, because calls reach the embedded DynamoDB past the journals.
    pub fn bypass(&self) {
        self.is_bypassed.store(true, Ordering::Release);
    }

    /// Returns whether any call needs more than the embedded DynamoDB.
    pub(in crate::aws) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Returns whether calls of this operation are answered here.
    pub(in crate::aws) fn serves(operation: &str) -> bool {
        operation.contains("Backup") || operation == "RestoreTableToPointInTime"
    }

    /// Notes what a write is about to replace, if it changes a table with a journal.
    pub(super) async fn begin(&self, tables: &Tables, operation: &str, request: &Value) -> Option<Pending<'_>> {
        if !self.is_used() || self.state().journals.is_empty() {
            return None;
        }
        let writes = match operation {
            "PutItem" | "UpdateItem" | "DeleteItem" => vec![Write::single(tables, operation, request)?],
            "TransactWriteItems" => Write::transaction(tables, request)?,
            _ => return None,
        };
        let writing = self.writing.lock().await;
        let rows = writes.iter().filter(|write| write.is_change());
        let rows = rows.map(|write| (write.table().to_owned(), (write.row(), write.stored(tables))));
        Some(Pending { recovery: self, rows: rows.collect(), _writing: writing })
    }

    /// Completes the answer to a call that is not answered here.
    pub(super) fn complete(&self, operation: &str, table: Option<&str>, answer: Answer) -> Answer {
        let Some(table) = table.filter(|_| self.is_used() && answer.status.is_success()) else { return answer };
        match operation {
            "DescribeTable" => self.state().describe(table, answer),
            "DeleteTable" => {
                let mut state = self.state();
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

impl Pending<'_> {
    /// Puts the write into the journals of its tables.
    pub(super) fn keep(self) {
        let mut state = self.recovery.state();
        let at = state.next_write();
        let mut by_table: HashMap<String, Vec<Undo>> = HashMap::new();
        for (table, undo) in self.rows {
            by_table.entry(table).or_default().push(undo);
        }
        for (table, rows) in by_table {
            if let Some(journal) = state.journals.get_mut(&table) {
                journal.add(at, rows);
            }
        }
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

    /// Adds to a table's description where the table comes from.
    fn describe(&mut self, table: &str, answer: Answer) -> Answer {
        let Some(origin) = self.origins.get_mut(table) else { return answer };
        let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return answer };
        let description = &mut body["Table"];
        let mut summary = json!({ "RestoreDateTime": origin.at.seconds(), "RestoreInProgress": !origin.is_described });
        if let Some(source) = &origin.source_table {
            summary["SourceTableArn"] = json!(table_arn(source));
        }
        if let Some(backup) = &origin.source_backup {
            summary["SourceBackupArn"] = json!(backup);
        }
        description["RestoreSummary"] = summary;
        if !origin.is_described {
            description["TableStatus"] = json!("CREATING");
            origin.is_described = true;
        }
        Answer::json(answer.status, &body)
    }
}

fn table_arn(name: &str) -> String {
    format!("arn:aws:dynamodb:{REGION}:{ACCOUNT_ID}:table/{name}")
}
