//! Transactions that are throttled.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::transact_get_items::TransactGetItemsError;
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;
use aws_sdk_dynamodb::types::{CancellationReason, Get, Put, TransactGetItem, TransactWriteItem};
use local::aws::limits::{Limits, Units};
use platform::store::StoreError;
use tests::Stack;

use super::{MARKET, client, get, key, partitions, row};

/// Makes a transaction that puts a small row with this sort key into each of the partitions.
fn puts(pks: &[&str], sk: &str) -> Vec<TransactWriteItem> {
    let put = |pk: &&str| Put::builder().table_name(MARKET).set_item(Some(row(pk, sk, 1))).build().unwrap();
    pks.iter().map(|pk| TransactWriteItem::builder().put(put(pk)).build()).collect()
}

/// Writes, and returns the codes with which a transaction was cancelled.
async fn write(client: &Client, writes: Vec<TransactWriteItem>) -> Result<(), Vec<String>> {
    let written = client.transact_write_items().set_transact_items(Some(writes)).send().await;
    let Err(error) = written else { return Ok(()) };
    let TransactWriteItemsError::TransactionCanceledException(cancelled) = error.into_service_error() else {
        panic!("not cancelled");
    };
    Err(codes(cancelled.cancellation_reasons()))
}

fn codes(reasons: &[CancellationReason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.code().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_transaction_names_the_item_and_writes_nothing() {
    let stack = Stack::with_limits(partitions(0.0, 2.0)).await;
    let client = client(&stack);
    // An item of a transaction costs twice what a single write costs.
    write(&client, puts(&["a"], "1")).await.unwrap();
    let refused = write(&client, puts(&["b", "a", "c"], "2")).await.unwrap_err();
    assert_eq!(refused, ["None", "ThrottlingError", "None"]);

    let report = stack.aws.limits().take_report();
    assert_eq!(report.units(MARKET, "a"), Units { read: 0.0, write: 2.0 });
    assert_eq!(report.total(), Units { read: 0.0, write: 2.0 }, "a refused transaction costs nothing");
    let refused: Vec<_> = report.refused.iter().map(|refusal| refusal.partition.as_deref()).collect();
    assert_eq!(refused, [Some("a")]);
    stack.aws.limits().lift();
    assert_eq!(get(&client, "b", "2").await.unwrap().item, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_service_takes_a_throttled_transaction_for_one_to_repeat() {
    let stack = Stack::with_limits(partitions(0.0, 0.0)).await;
    let request = client(&stack).transact_write_items().set_transact_items(Some(puts(&["a"], "1")));
    let sent = platform::transaction::send(request).await;
    assert!(matches!(sent, Err(StoreError::Conflict)), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reading_transaction_is_throttled_like_a_writing_one() {
    let stack = Stack::with_limits(partitions(2.0, 0.0)).await;
    let client = client(&stack);
    let read = |pks: &[&str]| {
        let get = |pk: &&str| Get::builder().table_name(MARKET).set_key(Some(key(pk, "1"))).build().unwrap();
        let gets = pks.iter().map(|pk| TransactGetItem::builder().get(get(pk)).build()).collect();
        client.transact_get_items().set_transact_items(Some(gets)).send()
    };
    assert_eq!(read(&["a"]).await.unwrap().responses().len(), 1);
    let refused = read(&["b", "a"]).await.unwrap_err().into_service_error();
    let TransactGetItemsError::TransactionCanceledException(cancelled) = refused else { panic!("not cancelled") };
    assert_eq!(codes(cancelled.cancellation_reasons()), ["None", "ThrottlingError"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_costs_twice_the_size_of_its_rows() {
    let stack = Stack::with_limits(Limits::unlimited()).await;
    let client = client(&stack);
    let put = Put::builder().table_name(MARKET).set_item(Some(row("a", "1", 2_500))).build().unwrap();
    let mut writes = puts(&["b"], "1");
    writes.push(TransactWriteItem::builder().put(put).build());
    write(&client, writes).await.unwrap();
    let report = stack.aws.limits().take_report();
    assert_eq!(report.units(MARKET, "a"), Units { read: 0.0, write: 6.0 });
    assert_eq!(report.units(MARKET, "b"), Units { read: 0.0, write: 2.0 });
}
