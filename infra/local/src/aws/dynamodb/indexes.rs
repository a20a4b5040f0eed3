//! Global secondary indexes that follow their tables late, as those of AWS do: each write shows after a time of its own,
//! so entries appear late, disappear late, and not in the order of the writes.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use dynoxide::actions::delete_item::DeleteItemRequest;
use dynoxide::actions::list_tables::ListTablesRequest;
use dynoxide::actions::put_item::PutItemRequest;
use dynoxide::{Database, Item};
use fastrand::Rng;
use serde_json::Value;
use tokio::time::Instant;

use super::recovery::Copied;
use super::tables::{Answer, Tables};
use super::writes::{RowKey, Write};

/// Answers queries of indexes from a copy of the tables, which each write reaches late. At first there is none.
#[derive(Default)]
pub(super) struct LateIndexes(Mutex<Option<Copy>>);

struct Copy {
    tables: Tables,
    lag: RangeInclusive<Duration>,
    random: Rng,
    written: u64,
    /// By the time at which they show.
    waiting: BTreeMap<(Instant, u64), (RowKey, RowVersion)>,
    /// The latest write of each row that the copy has.
    shown: HashMap<RowKey, u64>,
}

/// A row after a write.
struct RowVersion {
    table: String,
    key: Item,
    item: Option<Item>,
}

impl LateIndexes {
    /// Lets each write reach the indexes after a time within `lag` from now on. What was written before shows at once.
    pub(super) fn delay(&self, tables: &Tables, lag: RangeInclusive<Duration>, seed: u64) -> Result<(), String> {
        let mut copy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(copy) = copy.as_mut() {
            copy.lag = lag;
            return Ok(());
        }
        let copied = Tables(Database::memory().map_err(|error| error.to_string())?);
        let listed = tables.0.list_tables(ListTablesRequest::default()).map_err(|error| error.to_string())?;
        for table in listed.table_names {
            Copied::from_table(tables, &table)?.into_table(&copied, &table)?;
        }
        let (waiting, shown) = (BTreeMap::new(), HashMap::new());
        *copy = Some(Copy { tables: copied, lag, random: Rng::with_seed(seed), written: 0, waiting, shown });
        Ok(())
    }

    /// Answers a call. `answer` does so from the tables.
    pub(super) fn answer(
        &self,
        tables: &Tables,
        operation: &str,
        body: &[u8],
        answer: impl FnOnce() -> Answer,
    ) -> Answer {
        let mut copy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(copy) = copy.as_mut() else { return answer() };
        let request: Value = serde_json::from_slice(body).unwrap_or_default();
        if request["IndexName"].is_string() {
            copy.show();
            return copy.tables.answer(operation, body);
        }
        let answer = answer();
        if answer.status.is_success() {
            let writes = Write::from_request(tables, operation, &request).unwrap_or_default();
            writes.iter().filter(|write| write.is_change()).for_each(|write| copy.note(tables, write));
        }
        answer
    }
}

impl Copy {
    fn note(&mut self, tables: &Tables, write: &Write) {
        self.written += 1;
        let (least, most) = (*self.lag.start(), *self.lag.end());
        let at = Instant::now() + least + most.saturating_sub(least).mul_f64(self.random.f64());
        let version = RowVersion { table: write.table.clone(), key: write.key.clone(), item: write.stored(tables) };
        self.waiting.insert((at, self.written), (write.row(), version));
    }

    /// Makes the writes whose time has come.
    fn show(&mut self) {
        let later = self.waiting.split_off(&(Instant::now(), u64::MAX));
        for ((_, number), (row, RowVersion { table, key, item })) in std::mem::replace(&mut self.waiting, later) {
            if self.shown.get(&row).is_some_and(|shown| *shown > number) {
                continue;
            }
            self.shown.insert(row, number);
            let database = &self.tables.0;
            let shown = if let Some(item) = item {
                let put = PutItemRequest { table_name: table, item, ..PutItemRequest::default() };
                database.put_item(put).map(drop)
            } else {
                let delete = DeleteItemRequest { table_name: table, key, ..DeleteItemRequest::default() };
                database.delete_item(delete).map(drop)
            };
            if let Err(error) = shown {
                tracing::error!(%error, "an index cannot follow its table");
            }
        }
    }
}
