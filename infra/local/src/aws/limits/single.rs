//! Writes of one item: `PutItem`, `UpdateItem` and `DeleteItem`.

use tokio::time::sleep;

use super::answer::Answer;
use super::report::Reason;
use super::store::{Call, Store};
use super::writes::Write;

/// Writes if the partition and those of the indexes admit it, and no transaction holds the row.
pub(super) async fn write(store: &Store, call: Call) -> Answer {
    let Some(write) = Write::single(&store.tables, &call.operation, &call.request) else {
        return store.send(call).await;
    };
    let latency = store.limiter.begin(false);
    sleep(latency / 2).await;
    let answer = apply(store, call, &write).await;
    sleep(latency / 2).await;
    answer
}

async fn apply(store: &Store, call: Call, write: &Write) -> Answer {
    let limiter = &store.limiter;
    let _applying = limiter.flights.apply_single().await;
    let before = write.stored(&store.tables);
    let uses = [write.reserve(before.as_ref())];
    if let Err(refusals) = limiter.take(&call.operation, &uses) {
        return Answer::of_single(&refusals);
    }
    let held = limiter.flights.held_rows(&[write.row()]);
    if held.contains(&true) {
        return Answer::of_single(&limiter.refuse(&call.operation, &uses, &held, Reason::Conflict));
    }
    let answer = store.send(call).await;
    if answer.status.is_success() {
        limiter.settle(&write.settle(&store.tables, before.as_ref()));
    }
    answer
}
