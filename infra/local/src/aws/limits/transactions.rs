//! Transactions: `TransactWriteItems` and `TransactGetItems`.

use std::time::Duration;

use dynoxide::Item;
use dynoxide::types::{TRANSACTIONAL_CAPACITY_FACTOR, item_size, read_capacity_units};
use serde_json::Value;
use tokio::time::sleep;

use super::answer::Answer;
use super::flights::{Disguise, Met, RowKey, Transaction};
use super::report::Reason;
use super::store::{Call, Store};
use super::tables::{Tables, item};
use super::usage::{Access, Resource, Use};
use super::writes::Write;

/// Writes if the partitions of all items admit it, and no other transaction holds one of the rows. From now on this
/// transaction holds them, until its answer leaves. Once it is applied, each of its changes shows to queries, scans
/// and batches in its own time.
pub(super) async fn write(store: &Store, call: Call) -> Answer {
    let Some(writes) = Write::transaction(&store.tables, &call.request) else { return store.send(call).await };
    let latency = store.limiter.begin(true);
    let (transaction, before) = match begin(store, &call, &writes).await {
        Ok(begun) => begun,
        Err(refused) => return late(refused, latency).await,
    };
    sleep(latency / 2).await;
    let disguises = writes.iter().zip(&before).map(|(write, before)| {
        let until = store.limiter.shows_at(latency / 2);
        (write.row(), Disguise { before: before.clone(), until })
    });
    store.limiter.flights.disguise(disguises);
    let answer = store.send(call).await;
    if answer.status.is_success() {
        for (write, before) in writes.iter().zip(&before) {
            store.limiter.settle(&write.settle(&store.tables, before.as_ref()));
        }
    }
    sleep(latency / 2).await;
    store.limiter.flights.wait_for_release().await;
    store.limiter.flights.land(&transaction, || store.limiter.lags_until());
    answer
}

/// Begins a transaction. Returns it with the stored items that it is about to change.
async fn begin(store: &Store, call: &Call, writes: &[Write]) -> Result<(Transaction, Vec<Option<Item>>), Answer> {
    let Store { limiter, tables, .. } = store;
    let _beginning = limiter.flights.begin_transaction().await;
    let before: Vec<Option<Item>> = writes.iter().map(|write| write.stored(tables)).collect();
    let uses: Vec<_> = writes.iter().zip(&before).map(|(write, before)| write.reserve(before.as_ref())).collect();
    limiter.take(&call.operation, &uses).map_err(|refusals| Answer::cancelled(&refusals))?;
    let rows: Vec<RowKey> = writes.iter().map(Write::row).collect();
    let begun = limiter.flights.take_off(&rows, call.request["ClientRequestToken"].as_str());
    let transaction = begun.map_err(|met| match met {
        Met::Others(rows) => Answer::cancelled(&limiter.refuse(&call.operation, &uses, &rows, Reason::Conflict)),
        Met::Itself => Answer::of_single(&limiter.refuse(&call.operation, &uses, &[true], Reason::InProgress)),
    })?;
    Ok((transaction, before))
}

/// Reads if the partitions of all items admit it, and no transaction holds one of the rows.
pub(super) async fn read(store: &Store, call: Call) -> Answer {
    let Some(reads) = reads(&store.tables, &call.request) else { return store.send(call).await };
    let latency = store.limiter.begin(true);
    let (rows, uses): (Vec<RowKey>, Vec<Vec<Use>>) = reads.into_iter().unzip();
    if let Err(refusals) = store.limiter.take(&call.operation, &uses) {
        return late(Answer::cancelled(&refusals), latency).await;
    }
    sleep(latency / 2).await;
    let held = store.limiter.flights.held_rows(&rows);
    let answer = if held.contains(&true) {
        Answer::cancelled(&store.limiter.refuse(&call.operation, &uses, &held, Reason::Conflict))
    } else {
        store.send(call).await
    };
    sleep(latency / 2).await;
    answer
}

async fn late(answer: Answer, latency: Duration) -> Answer {
    sleep(latency).await;
    answer
}

/// Returns the rows of a `TransactGetItems` and what each costs, or `None` if the request cannot be understood.
fn reads(tables: &Tables, request: &Value) -> Option<Vec<(RowKey, Vec<Use>)>> {
    let parts = request["TransactItems"].as_array()?;
    parts.iter().map(|part| read_one(tables, &part["Get"])).collect()
}

fn read_one(tables: &Tables, get: &Value) -> Option<(RowKey, Vec<Use>)> {
    let table = get["TableName"].as_str()?;
    let key = item(&get["Key"])?;
    let size = tables.item(table, &key).as_ref().map_or(0, item_size);
    let units = TRANSACTIONAL_CAPACITY_FACTOR * read_capacity_units(size);
    let partition = tables.schema(table)?.keys.partition_of(&key);
    let used = Use { resource: Resource::table(table), partition, access: Access::Read, units };
    Some((RowKey::new(table, &key), vec![used]))
}
