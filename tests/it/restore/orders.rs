//! The table of accounts.

use accounts::OrderPages;
use common::ids::UserId;
use common::paging::Paging;
use futures_util::future::join_all;
use serde_json::Value;
use tests::{Stack, assert_orders_are_dense, order, uuid};

use super::{assert_settings, deploy_settings, feed_is_on, restore};

const TABLE: &str = "marketplace-accounts";

fn user() -> UserId {
    uuid(1_000).into()
}

/// Returns the user's order with this number. A later one is newer.
fn order_of(number: u32) -> Value {
    order(user(), number, &format!("2026-11-20T10:{number:02}:00Z"), 1)
}

/// Returns the ids of the orders that the service shows, newest first.
async fn shown(stack: &Stack) -> Vec<String> {
    let pages = OrderPages::new(stack.admin.stores().accounts);
    let page = pages.page(user(), Paging { page: 1, page_size: 100 }).await.unwrap();
    assert_eq!(page.total, i64::try_from(page.items.len()).unwrap());
    page.items.iter().map(|order| order.id.to_string()).collect()
}

/// Returns the ids of the orders with these numbers, newest first.
fn ids(numbers: impl DoubleEndedIterator<Item = u32>) -> Vec<String> {
    numbers.rev().map(|number| uuid(u128::from(number)).to_string()).collect()
}

/// Restores a table whose last transaction lacks these rows.
async fn restored(undone_rows: u64) {
    let (stack, what) = (Stack::new().await, format!("rows {undone_rows:06b} old"));
    deploy_settings(&stack, TABLE).await;
    stack.feed(&[1, 2, 3].map(order_of)).await;
    stack.feed(&[4, 5].map(order_of)).await;
    let moment = stack.aws.recovery().moment();
    stack.aws.recovery().cut_last_transaction(undone_rows);
    stack.feed(&[6, 7].map(order_of)).await;
    assert_eq!(shown(&stack).await, ids(1..=7));

    let program = restore(&stack, "accounts", moment, &[]).await;
    assert_eq!(program.code, 0, "{what}: {program:?}");
    let orders = shown(&stack).await;
    let is_known = |id: &String| ids(1..=5).contains(id);
    assert!(orders.iter().all(is_known) && ids(1..=3).iter().all(|id| orders.contains(id)), "{what}: {orders:?}");
    assert_orders_are_dense(&stack).await;
    assert_settings(&stack, TABLE).await;
    assert!(feed_is_on(&stack));

    // The marketplace sends again what it sent since then.
    stack.feed_outcomes(&[4, 5, 6, 7, 8].map(order_of)).await;
    assert_eq!(shown(&stack).await, ids(1..=8), "{what}");
    assert_orders_are_dense(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_right_again_whichever_rows_their_last_transaction_lacks() {
    join_all([0, 0b1, 0b10, 0b1_0000, 0b10_0000, 0b1101].map(restored)).await;
}
