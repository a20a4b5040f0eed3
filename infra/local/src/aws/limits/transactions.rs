//! Transactions: `TransactWriteItems` and `TransactGetItems`.

use std::time::Duration;

use dynoxide::Item;
use dynoxide::types::{TRANSACTIONAL_CAPACITY_FACTOR, item_size, read_capacity_units};
use serde_json::Value;
use tokio::time::sleep;

use super::answer::Answer;
use super::report::Refusal;
use super::store::{Call, Store};
use super::tables::{Tables, item};
use super::usage::{Access, Resource, Use};
use super::writes::Write;

/// Writes if the partitions of all items admit it.
pub(super) async fn write(store: &Store, call: Call) -> Answer {
    let Some(writes) = Write::transaction(&store.tables, &call.request) else { return store.send(call).await };
    let latency = store.limiter.begin(true);
    let before: Vec<Option<Item>> = writes.iter().map(|write| write.stored(&store.tables)).collect();
    let reserved: Vec<Vec<Use>> =
        writes.iter().zip(&before).map(|(write, before)| write.reserve(before.as_ref())).collect();
    if let Err(refusals) = store.limiter.take(&call.operation, &reserved) {
        return refuse(&refusals, latency).await;
    }
    sleep(latency / 2).await;
    let answer = store.send(call).await;
    if answer.status.is_success() {
        for (write, before) in writes.iter().zip(&before) {
            store.limiter.settle(&write.settle(&store.tables, before.as_ref()));
        }
    }
    sleep(latency / 2).await;
    answer
}

/// Reads if the partitions of all items admit it.
pub(super) async fn read(store: &Store, call: Call) -> Answer {
    let Some(uses) = uses(&store.tables, &call.request) else { return store.send(call).await };
    let latency = store.limiter.begin(true);
    if let Err(refusals) = store.limiter.take(&call.operation, &uses) {
        return refuse(&refusals, latency).await;
    }
    sleep(latency / 2).await;
    let answer = store.send(call).await;
    sleep(latency / 2).await;
    answer
}

async fn refuse(refusals: &[Option<Refusal>], latency: Duration) -> Answer {
    sleep(latency).await;
    Answer::cancelled(refusals)
}

/// Returns what each item of a `TransactGetItems` costs, or `None` if the request cannot be understood.
fn uses(tables: &Tables, request: &Value) -> Option<Vec<Vec<Use>>> {
    let parts = request["TransactItems"].as_array()?;
    parts.iter().map(|part| Some(vec![read_use(tables, &part["Get"])?])).collect()
}

fn read_use(tables: &Tables, get: &Value) -> Option<Use> {
    let table = get["TableName"].as_str()?;
    let key = item(&get["Key"])?;
    let size = tables.item(table, &key).as_ref().map_or(0, item_size);
    let units = TRANSACTIONAL_CAPACITY_FACTOR * read_capacity_units(size);
    let partition = tables.schema(table)?.keys.partition_of(&key);
    Some(Use { resource: Resource::table(table), partition, access: Access::Read, units })
}
