//! Transactions that are throttled.

use aws_sdk_dynamodb::types::{Put, TransactWriteItem};
use local::aws::limits::{Limits, Units};
use platform::store::StoreError;
use tests::Stack;

use super::{MARKET, client, get, partitions, puts, read, row, write};

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
    read(&client, &["a"], "1").await.unwrap();
    let refused = read(&client, &["b", "a"], "1").await.unwrap_err();
    assert_eq!(refused, ["None", "ThrottlingError"]);
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
