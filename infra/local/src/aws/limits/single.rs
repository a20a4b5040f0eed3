//! Writes of one item: `PutItem`, `UpdateItem` and `DeleteItem`.

use tokio::time::sleep;

use super::answer::Answer;
use super::store::{Call, Store};
use super::writes::Write;

/// Writes if the partition and those of the indexes admit it.
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
    let before = write.stored(&store.tables);
    if let Err(refusals) = store.limiter.take(&call.operation, &[write.reserve(before.as_ref())]) {
        return Answer::of_single(&refusals);
    }
    let answer = store.send(call).await;
    if answer.status.is_success() {
        store.limiter.settle(&write.settle(&store.tables, before.as_ref()));
    }
    answer
}
