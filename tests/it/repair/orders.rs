//! Orders whose last transaction was cut in two.

use std::collections::{BTreeMap, BTreeSet};

use accounts::OrderPages;
use aws_sdk_dynamodb::types::AttributeValue;
use common::ids::UserId;
use common::paging::Paging;
use common::resources::Table;
use futures_util::{StreamExt, stream};
use marketctl::repair::Repair;
use serde_json::{Value, json};
use tests::{Stack, assert_orders_are_dense, dynamodb, order, uuid};

use super::{Rows, changed, delete, put_back, repair_orders, rows};

pub(super) const TABLE: &str = "marketplace-accounts";
/// How many orders of a month are read over here without a look at its hours.
const MAX_READ_OVER: usize = 1;
/// The rows of an insert of two orders: two authorities, two records, the summary, and the hours of two months.
const INSERT_ROWS: usize = 7;
/// The rows of an update: authority and record.
const UPDATE_ROWS: usize = 2;
/// The orders before the transaction that is cut.
const OLD_ORDERS: u32 = 11;
/// How many users are looked at at the same time.
const CONCURRENT_USERS: usize = 32;

fn pages(stack: &Stack) -> OrderPages {
    OrderPages::new(stack.admin.stores().accounts).with_max_read_over(MAX_READ_OVER)
}

fn user(number: u32) -> UserId {
    uuid(1_000_000 + u128::from(number)).into()
}

/// Returns a user's order with this number from 0. Every fourth one was created in the month before.
fn order_of(number: u32, index: u32) -> Value {
    let month = if index % 4 == 3 { 10 } else { 11 };
    order(user(number), number * 100 + index + 1, &format!("2026-{month}-{:02}T10:00:00Z", 1 + index * 5 % 19), 1)
}

/// Returns the ids of orders, newest first.
fn newest_first(orders: &[Value]) -> Vec<String> {
    let text = |order: &Value, name: &str| order[name].as_str().unwrap().to_owned();
    let mut places: Vec<_> = orders.iter().map(|order| (text(order, "created_at"), text(order, "id"))).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.into_iter().map(|(_, id)| id).collect()
}

/// Asserts that each page is an error or belongs to one of these states. Returns whether there was no error.
async fn assert_pages(pages: &OrderPages, user: UserId, states: &[&[Value]], what: &str) -> bool {
    let mut is_whole = true;
    for (page, size) in [(1, 3), (2, 3), (3, 3), (4, 2), (1, 100)] {
        let Ok(found) = pages.page(user, Paging { page, page_size: size }).await else {
            is_whole = false;
            continue;
        };
        let ids: Vec<String> = found.items.iter().map(|order| order.id.to_string()).collect();
        let (page, size) = (usize::try_from(page).unwrap(), usize::try_from(size).unwrap());
        let is_state = |orders: &&[Value]| {
            let expected = newest_first(orders).into_iter().skip((page - 1) * size).take(size);
            usize::try_from(found.total) == Ok(orders.len()) && expected.eq(ids.iter().cloned())
        };
        assert!(states.iter().any(is_state), "{what}: page {page} of {size} is {ids:?} of {}", found.total);
    }
    is_whole
}

/// Returns the user whose row this is.
fn owner(rows: &Rows, key: &[String; 2]) -> UserId {
    let account = rows[key].get("account_id").map(|account| account.as_s().unwrap().as_str());
    account.or_else(|| key[0].split_once('#').map(|(_, user)| user)).unwrap().parse().unwrap()
}

/// Makes the rows of each user's transaction old that the user's number has a bit for.
async fn cut(stack: &Stack, before: &Rows, users: u32, rows_each: usize) {
    let after = rows(stack, TABLE).await;
    let mut written = BTreeMap::<UserId, Vec<[String; 2]>>::new();
    for key in changed(before, &after) {
        written.entry(owner(&after, &key)).or_default().push(key);
    }
    for number in 0..users {
        let keys = &written[&user(number)];
        assert_eq!(keys.len(), rows_each, "{keys:?}");
        for (_, key) in keys.iter().enumerate().filter(|(index, _)| (number >> index) & 1 == 1) {
            put_back(stack, TABLE, before, key).await;
        }
    }
}

/// Returns which of a user's orders have a record.
fn kept(rows: &Rows, number: u32) -> Vec<Value> {
    let partition = format!("orders#{}", user(number));
    let records = rows.keys().filter(|[pk, _]| *pk == partition);
    let ids: BTreeSet<&str> = records.map(|[_, sk]| sk.split_once('#').unwrap().1).collect();
    history(number).into_iter().filter(|order| ids.contains(order["id"].as_str().unwrap())).collect()
}

/// Returns a user's orders: those from before the transaction, and the two of it.
fn history(number: u32) -> Vec<Value> {
    (0..OLD_ORDERS + 2).map(|index| order_of(number, index)).collect()
}

/// Does the same for every user, for many at the same time: a page that belongs to no state is read again for a while.
async fn for_each_user(users: u32, act: impl AsyncFn(u32)) {
    stream::iter(0..users).for_each_concurrent(CONCURRENT_USERS, |number| act(number)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_in_line_again_whichever_rows_of_the_last_insert_a_restore_has() {
    let (stack, users) = (Stack::new().await, 1_u32 << INSERT_ROWS);
    let old = OLD_ORDERS as usize;
    let everybodys_old: Vec<Value> = (0..users).flat_map(|number| history(number)[..old].to_vec()).collect();
    stack.feed(&everybodys_old).await;
    let (before, warm) = (rows(&stack, TABLE).await, pages(&stack));
    for_each_user(users, async |number| {
        assert!(assert_pages(&warm, user(number), &[&history(number)[..old]], "before").await);
        stack.feed(&history(number)[old..]).await;
    })
    .await;
    cut(&stack, &before, users, INSERT_ROWS).await;

    let cold = pages(&stack);
    for_each_user(users, async |number| {
        let (history, what) = (history(number), format!("rows {number:07b} old"));
        for pages in [&warm, &cold] {
            assert_pages(pages, user(number), &[&history[..old], &history], &what).await;
        }
    })
    .await;
    let before = rows(&stack, TABLE).await;
    let mut look = Repair::new(stack.clock.clone(), true);
    look.accounts(&stack.admin.stores().accounts).await.unwrap();
    assert_eq!(rows(&stack, TABLE).await, before);
    let done = repair_orders(&stack, stack.admin.stores()).await.unwrap();
    assert_eq!(done.count("users"), (users.into(), users.into()));
    assert!(done.unreadable.is_empty() && look.done.counts == done.counts, "{:?} {done:?}", look.done);
    assert_orders_are_dense(&stack).await;
    let repaired = rows(&stack, TABLE).await;
    for_each_user(users, async |number| {
        let (mut orders, what) = (kept(&repaired, number), format!("rows {number:07b} old"));
        let fresh = pages(&stack);
        for pages in [&warm, &cold, &fresh] {
            assert!(assert_pages(pages, user(number), &[&orders], &what).await, "{what}: an error after the repair");
        }
        // What the restore undid comes again, and then something new.
        let missing = history(number).into_iter().filter(|order| !orders.contains(order));
        let next: Vec<Value> = missing.chain([order_of(number, OLD_ORDERS + 2)]).collect();
        stack.feed(&next).await;
        orders.extend(next);
        for pages in [&warm, &cold, &fresh] {
            assert!(assert_pages(pages, user(number), &[&orders], &what).await, "{what}: an error after a write");
        }
    })
    .await;
    assert_orders_are_dense(&stack).await;
    let again = repair_orders(&stack, stack.admin.stores()).await.unwrap();
    assert_eq!(again.count("orders").1, 0, "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_change_again_whichever_rows_of_the_last_update_a_restore_has() {
    let (stack, users) = (Stack::new().await, 1_u32 << UPDATE_ROWS);
    let update = |number: u32, version: u64| {
        let mut update = order_of(number, 0);
        (update["status"], update["version"]) = (json!("refunded"), json!(version));
        update
    };
    for number in 0..users {
        stack.feed(&[order_of(number, 0)]).await;
    }
    let before = rows(&stack, TABLE).await;
    for number in 0..users {
        stack.feed(&[update(number, 2)]).await;
    }
    cut(&stack, &before, users, UPDATE_ROWS).await;
    let done = repair_orders(&stack, stack.admin.stores()).await.unwrap();
    assert_eq!((done.count("orders").1, done.unreadable.len()), (2, 0), "{done:?}");
    for number in 0..users {
        // The same message completes an update that was undone, and changes nothing otherwise.
        stack.feed_outcomes(&[update(number, 2)]).await;
        stack.feed(&[update(number, 3)]).await;
        let pages = pages(&stack);
        let page = pages.page(user(number), Paging { page: 1, page_size: 1 }).await.unwrap();
        assert_eq!(page.items[0].status.as_str(), "refunded");
    }
    assert_eq!(repair_orders(&stack, stack.admin.stores()).await.unwrap().count("orders").1, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_that_remember_orders_that_a_restore_undid_read_them_again() {
    let (stack, number) = (Stack::new().await, 1);
    let index = |index: u32| order_of(number, index);
    stack.feed(&[0, 1, 2, 4, 5, 6].map(index)).await;
    let before = rows(&stack, TABLE).await;
    stack.feed(&[8, 9, 10, 12].map(index)).await;
    let warm = pages(&stack);
    let all = [0, 1, 2, 4, 5, 6, 8, 9, 10, 12].map(index);
    for _ in 0..2 {
        assert!(assert_pages(&warm, user(number), &[&all], "before the restore").await);
    }
    for key in changed(&before, &rows(&stack, TABLE).await) {
        put_back(&stack, TABLE, &before, &key).await;
    }
    assert_eq!(repair_orders(&stack, stack.admin.stores()).await.unwrap().count("orders"), (6, 0));
    // As many orders as were undone, in the same month.
    stack.feed(&[13, 14, 16, 17].map(index)).await;
    let all = [0, 1, 2, 4, 5, 6, 13, 14, 16, 17].map(index);
    assert!(assert_pages(&warm, user(number), &[&all], "after the restore").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_month_gets_hours_if_it_has_orders_and_loses_them_if_not() {
    let (stack, user) = (Stack::new().await, uuid(1_000).into());
    let orders: Vec<Value> = (1..10).map(|number| order(user, number, "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&orders).await;
    let before = rows(&stack, TABLE).await;
    let hours = |month: &str| [format!("hours#{user}"), month.to_owned()];
    let mut of_no_orders = before[&hours("2026-11")].clone();
    of_no_orders.insert("sk".to_owned(), AttributeValue::S("2026-10".to_owned()));
    delete(&stack, TABLE, &hours("2026-11")).await;
    dynamodb(&stack).put_item().table_name(TABLE).set_item(Some(of_no_orders)).send().await.unwrap();

    repair_orders(&stack, stack.admin.stores()).await.unwrap();
    let after = rows(&stack, TABLE).await;
    assert_eq!(changed(&before, &after), [[format!("summary#{user}"), "summary".to_owned()]]);
    assert!(before.keys().eq(after.keys()), "{:?}", after.keys());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_contradicts_its_order_is_replaced() {
    let stack = Stack::new().await;
    stack.feed(&[order_of(1, 0), order_of(2, 0)]).await;
    let before = rows(&stack, TABLE).await;
    let authority = [format!("order#{}", order_of(1, 0)["id"].as_str().unwrap()), "authority".to_owned()];
    tests::set_row_number(&stack, Table::Accounts, [&authority[0], &authority[1]], "created_at", 7).await;
    let done = repair_orders(&stack, stack.admin.stores()).await.unwrap();
    assert_eq!((done.count("authorities without an order"), done.count("orders")), ((1, 1), (2, 1)), "{done:?}");
    let after = rows(&stack, TABLE).await;
    assert!(changed(&before, &after).iter().all(|[pk, _]| pk.starts_with("summary#")), "but for their eras");
}
