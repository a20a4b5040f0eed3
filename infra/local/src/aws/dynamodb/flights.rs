//! Transactions that are under way, the calls that meet them, and the reads that may see half of one.
//!
//! AWS calls `Query`, `Scan` and `BatchGetItem` read-committed: each row is the one before or after a transaction, but
//! not all rows need be from the same side. `GetItem` is isolated from transactions: it sees all of one as soon as it
//! is applied. A Query that follows may still see rows as they were before, until the transaction is acknowledged. A
//! row that a transaction deletes is gone at once. Eventually consistent queries and scans may lag a while longer.
//!
//! The change of each row shows at a time of its own, and from then on another transaction may take that row. So several
//! transactions that follow each other in one row may all be half visible elsewhere.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dynoxide::Item;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::tables::{Answer, KeyNames, Tables};
use super::writes::RowKey;

/// Transactions hold each of their rows from their arrival until its change shows, or at last until their answer leaves.
#[derive(Default)]
pub(super) struct Flights(Mutex<State>);

#[derive(Default)]
struct State {
    begun: u64,
    rows: HashMap<RowKey, Flight>,
    /// What eventually consistent reads still see of rows that a transaction has changed.
    lagging: HashMap<RowKey, Disguise>,
}

/// What one row has to do with a transaction that is under way.
struct Flight {
    transaction: u64,
    token: Option<String>,
    disguise: Option<Disguise>,
}

impl Flight {
    fn is_held(&self, now: Instant) -> bool {
        self.disguise.as_ref().is_none_or(|disguise| now < disguise.until)
    }
}

/// What reads see of a row that a transaction changes, until its change shows: the row as it was, if it was there.
struct Disguise {
    before: Option<Item>,
    until: Instant,
}

/// A transaction that holds its rows until it ends.
pub(super) struct Transaction(u64);

/// Why a transaction cannot begin.
pub(super) enum Met {
    /// Other transactions hold the rows for which this says so.
    Others(Vec<bool>),
    /// It is itself under way already.
    Itself,
}

impl Flights {
    /// Gives these rows to a transaction, unless another one holds one of them. A token names a transaction that may be
    /// sent several times.
    pub(super) fn take_off(&self, rows: &[RowKey], token: Option<&str>) -> Result<Transaction, Met> {
        let (mut state, now) = (self.state(), Instant::now());
        let holder = |row| state.rows.get(row).filter(|flight| flight.is_held(now));
        let holders: Vec<Option<&Flight>> = rows.iter().map(holder).collect();
        if token.is_some() && holders.iter().flatten().any(|holder| holder.token.as_deref() == token) {
            return Err(Met::Itself);
        }
        if holders.iter().any(Option::is_some) {
            return Err(Met::Others(holders.iter().map(Option::is_some).collect()));
        }
        state.begun += 1;
        let transaction = state.begun;
        for row in rows {
            state.rows.insert(row.clone(), Flight { transaction, token: token.map(str::to_owned), disguise: None });
        }
        Ok(Transaction(transaction))
    }

    /// Disguises a row that a transaction holds as it was before, just before the transaction is applied.
    pub(super) fn disguise(&self, row: &RowKey, before: Option<&Item>, until: Instant) {
        if let Some(flight) = self.state().rows.get_mut(row) {
            flight.disguise = Some(Disguise { before: before.cloned(), until });
        }
    }

    /// Gives a transaction's rows back. Eventually consistent reads go on to see each as it was until `lags_until`, which
    /// is asked for every row.
    pub(super) fn land(&self, transaction: &Transaction, lags_until: impl Fn() -> Option<Instant>) {
        let State { rows, lagging, .. } = &mut *self.state();
        let now = Instant::now();
        lagging.retain(|_, disguise| now < disguise.until);
        let mut landed: Vec<_> = rows.extract_if(|_, flight| flight.transaction == transaction.0).collect();
        // In an order of their own, so that the same seed makes the same rows lag.
        landed.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        for (row, flight) in landed {
            if let (Some(disguise), Some(until)) = (flight.disguise, lags_until()) {
                lagging.insert(row, Disguise { until, ..disguise });
            }
        }
    }

    /// Returns whether a transaction holds a row.
    pub(super) fn is_held(&self, row: &RowKey) -> bool {
        self.state().rows.get(row).is_some_and(|flight| flight.is_held(Instant::now()))
    }

    /// Changes the answer to a call to what it sees of the transactions that are under way. Reads of an index show what
    /// is stored.
    pub(super) fn show(&self, tables: &Tables, operation: &str, request: &Value, answer: Answer) -> Answer {
        if operation == "GetItem" || request["IndexName"].is_string() || !self.has_disguises() {
            return answer;
        }
        answer.changed(|body| {
            if operation == "BatchGetItem" {
                for (table, rows) in body.get_mut("Responses")?.as_object_mut()? {
                    let is_whole = request["RequestItems"][table]["ProjectionExpression"].is_null();
                    self.show_rows(table, &tables.schema(table)?.keys, rows.as_array_mut()?, true, is_whole);
                }
                return Some(());
            }
            let table = request["TableName"].as_str()?;
            let is_consistent = request["ConsistentRead"] == json!(true);
            let restricting = ["ProjectionExpression", "FilterExpression", "Select"];
            let is_whole = restricting.iter().all(|name| request[name].is_null());
            let rows = body.get_mut("Items")?.as_array_mut()?;
            self.show_rows(table, &tables.schema(table)?.keys, rows, is_consistent, is_whole);
            let count = rows.len();
            body["Count"] = json!(count);
            Some(())
        })
    }

    /// `is_whole` says whether the read returns whole rows, and all that it finds.
    fn show_rows(&self, table: &str, keys: &KeyNames, rows: &mut Vec<Value>, is_consistent: bool, is_whole: bool) {
        let State { rows: held, lagging, .. } = &*self.state();
        let now = Instant::now();
        rows.retain_mut(|row| {
            let Some(key) = keys.key_of_json(row).map(|key| RowKey::new(table, &key)) else { return true };
            let lagging = lagging.get(&key).filter(|disguise| !is_consistent && now < disguise.until);
            let disguise = held.get(&key).and_then(|flight| flight.disguise.as_ref());
            match lagging.or(disguise.filter(|disguise| now < disguise.until)) {
                None => true,
                Some(Disguise { before: None, .. }) => false,
                Some(Disguise { before: Some(before), .. }) => {
                    if is_whole {
                        *row = json!(before);
                    }
                    true
                }
            }
        });
    }

    fn has_disguises(&self) -> bool {
        let state = self.state();
        !state.lagging.is_empty() || state.rows.values().any(|flight| flight.disguise.is_some())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
