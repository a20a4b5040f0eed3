//! Reads that may see half of a transaction. AWS calls `Query`, `Scan` and `BatchGetItem` read-committed: each row is
//! the one before or after a transaction, but not all rows need be from the same side. `GetItem` and
//! `TransactGetItems` are isolated from transactions.
//!
//! A `GetItem` sees all of a transaction as soon as it is applied. A Query that follows may still see rows as they were
//! before, until the transaction is acknowledged. A row that a transaction deletes is gone at once. Eventually
//! consistent queries and scans may lag a while longer.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::Answer;
use super::flights::{RowKey, Seen};
use super::store::{Call, Store};
use super::tables::KeyNames;

/// A `Query` or `Scan` of a table that may see half of a transaction.
pub(super) struct Half {
    table: String,
    is_consistent: bool,
    /// Whether the read returns whole rows, and all that it finds.
    is_whole: bool,
}

impl Half {
    /// Returns `None` if the read sees every transaction as a whole. Reads of an index show what is stored.
    pub(super) fn from_call(call: &Call) -> Option<Self> {
        let request = &call.request;
        if call.operation == "GetItem" || request["IndexName"].is_string() {
            return None;
        }
        let is_whole =
            ["ProjectionExpression", "FilterExpression", "Select"].iter().all(|name| request[name].is_null());
        let is_consistent = request["ConsistentRead"] == json!(true);
        Some(Self { table: request["TableName"].as_str()?.to_owned(), is_consistent, is_whole })
    }

    /// Changes an answer to what the read sees of the transactions that are under way.
    pub(super) fn show(&self, store: &Store, answer: Answer) -> Answer {
        change(store, answer, |body| {
            let keys = store.tables.schema(&self.table)?.keys;
            let rows = body.get_mut("Items")?.as_array_mut()?;
            self.show_rows(store, &keys, rows);
            let count = rows.len();
            body["Count"] = json!(count);
            Some(())
        })
    }

    fn show_rows(&self, store: &Store, keys: &KeyNames, rows: &mut Vec<Value>) {
        let now = Instant::now();
        rows.retain_mut(|row| {
            let Some(key) = keys.key_of_json(row) else { return true };
            match store.limiter.flights.seen(&RowKey::new(&self.table, &key), self.is_consistent, now) {
                Seen::Stored => true,
                Seen::Before(before) => {
                    if self.is_whole {
                        *row = json!(before);
                    }
                    true
                }
                Seen::Nothing => false,
            }
        });
    }
}

/// Changes the answer to a `BatchGetItem` in the same way, as if it were strongly consistent.
pub(super) fn show_batch(store: &Store, is_whole: bool, answer: Answer) -> Answer {
    change(store, answer, |body| {
        for (table, rows) in body.get_mut("Responses")?.as_object_mut()? {
            let keys = store.tables.schema(table)?.keys;
            let batch = Half { table: table.clone(), is_consistent: true, is_whole };
            batch.show_rows(store, &keys, rows.as_array_mut()?);
        }
        Some(())
    })
}

/// Changes an answer, if there are transactions under way.
fn change(store: &Store, answer: Answer, change: impl FnOnce(&mut Value) -> Option<()>) -> Answer {
    if !answer.status.is_success() || !store.limiter.flights.has_disguises() {
        return answer;
    }
    let Ok(mut body) = serde_json::from_slice::<Value>(&answer.body) else { return answer };
    match change(&mut body) {
        Some(()) => Answer::json(answer.status, &body),
        None => answer,
    }
}
