//! `GET /v1/public/orders` on a stack of its own: what pages and batches cost, and the marks of busy months.

use std::time::Duration;

use accounts::{Accounts, OrderPages};
use common::clock::Clock;
use common::ids::UserId;
use common::paging::Paging;
use common::records::PublicOrder;
use common::resources::{Resources, Table};
use common::scope::Scope;
use feed::ApplyOutcome::{Changed, Rejected, Unchanged};
use feed::{ApplyOutcome, Stores};
use local::environment::Variables;
use local::meter::{Bill, CostMeter};
use local::seed::StackAdmin;
use serde_json::{Value, json};
use tests::{AwsCall, Fault, Proxy, Stack, dynamodb, order, uuid};

async fn key(stack: &Stack, user: UserId) -> String {
    stack.key_of(user, &[Scope::OrdersRead]).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn any_page_costs_one_round_trip_once_the_user_is_known() {
    let stack = Stack::new().await;
    let user = uuid(100).into();
    let orders: Vec<_> =
        (0..130).map(|n| order(user, n, &format!("2026-{:02}-{:02}T10:00:00Z", 1 + n % 10, 1 + n % 28), 1)).collect();
    stack.feed(&orders).await;
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = key(&stack, user).await;
    running.client.get(&key, "/v1/public/orders").await;
    proxy.set_fault(tests::Fault::Slow(std::time::Duration::from_millis(25)));
    for page in (1..=20).rev() {
        proxy.take_calls();
        let reply = running.client.get(&key, &format!("/v1/public/orders?page_size=7&page={page}")).await;
        assert_eq!(AwsCall::round_trips(&proxy.take_calls()), 1, "page {page}");
        assert_eq!((reply.status, &reply.json()["total"]), (200, &json!(130)), "page {page}");
    }
    stack.feed(&[order(user, 500, "2026-11-01T00:00:00Z", 1)]).await;
    proxy.take_calls();
    let first = running.client.get(&key, "/v1/public/orders?page_size=1").await;
    assert_eq!((first.ids(), &first.json()["total"]), (vec![uuid(500).to_string()], &json!(131)));
    assert_eq!(AwsCall::round_trips(&proxy.take_calls()), 1, "although the summary moved");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_orders_of_a_user_in_one_batch_are_read_together_and_written_several_at_a_time() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let stores = || StackAdmin::new(&Variables::new(&proxy.url), stack.clock.clone()).unwrap().stores();
    let orders = |version| -> Vec<Value> {
        (1..=16).map(|n| order(uuid(100).into(), n, &format!("2026-{:02}-01T10:00:00Z", 1 + n % 10), version)).collect()
    };
    for (version, transactions) in [(1, 4), (2, 1)] {
        assert_eq!(stack.feed_through(stores(), &orders(version)).await, vec![Changed; 16]);
        let calls = proxy.take_calls();
        let count = |operation: &str| calls.iter().filter(|call| call.operation == operation).count();
        assert_eq!((count("BatchGetItem"), count("TransactWriteItems")), (1, transactions), "version {version}");
        assert_eq!(calls.len(), 1 + transactions, "{calls:?}");
    }
    tests::assert_orders_are_dense(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_messages_about_an_order_in_one_batch_the_newest_counts_and_a_contradiction_is_refused() {
    let stack = Stack::new().await;
    let (user, other) = (uuid(100).into(), uuid(101).into());
    let at = |user, number, hour: u32, version| order(user, number, &format!("2026-11-20T{hour}:00:00Z"), version);
    stack.feed(&[at(other, 3, 10, 1)]).await;
    let batch = [at(user, 1, 10, 1), at(user, 1, 10, 4), at(user, 1, 10, 3), at(user, 1, 11, 9), at(user, 3, 10, 9)];
    let outcomes = stack.feed_outcomes(&[batch.as_slice(), &[at(user, 2, 10, 1)]].concat()).await;
    assert!(
        matches!(outcomes.as_slice(), [Unchanged, Changed, Unchanged, Rejected(_), Rejected(_), Changed]),
        "{outcomes:?}"
    );
    let shown = stack.instance().await.client.get(&key(&stack, user).await, "/v1/public/orders").await;
    assert_eq!((shown.ids(), &shown.json()["total"]), (vec![uuid(2).to_string(), uuid(1).to_string()], &json!(2)));
    tests::assert_orders_are_dense(&stack).await;
}

const PAGE_SIZE: usize = 50;
/// A page behind many others may read this many units more than the first one: those of the 128 orders of a block.
const MAX_EXTRA_UNITS: f64 = 8.0;

/// Returns orders of one month, one in each minute. Of every ten, the oldest comes last.
fn busy_month(user: UserId, orders: u32) -> Vec<Value> {
    let minute = |n: u32| if n % 10 == 9 { n - 9 } else { n + 1 };
    let at = |n: u32| format!("2026-10-{:02}T{:02}:{:02}:00Z", 1 + n / 1_440, n / 60 % 24, n % 60);
    (0..orders).map(|n| order(user, n, &at(minute(n)), 1)).collect()
}

/// Returns the ids of orders, newest first.
fn newest_first(orders: &[Value]) -> Vec<String> {
    let text = |order: &Value, field: &str| order[field].as_str().unwrap().to_owned();
    let mut places: Vec<_> = orders.iter().map(|order| (text(order, "created_at"), text(order, "id"))).collect();
    places.sort_unstable_by(|a, b| b.cmp(a));
    places.into_iter().map(|(_, id)| id).collect()
}

fn ids(orders: &[PublicOrder]) -> Vec<String> {
    orders.iter().map(|order| order.id.to_string()).collect()
}

fn paging(page: usize, page_size: usize) -> Paging {
    Paging { page: i64::try_from(page).unwrap(), page_size: i64::try_from(page_size).unwrap() }
}

/// Returns the accounts table with its reads counted.
fn accounts(stack: &Stack, meter: &CostMeter) -> Accounts {
    let table = Resources::new(Resources::DEFAULT_STACK).table(Table::Accounts);
    Accounts::new(meter.attach(&dynamodb(stack)), table)
}

fn queries(bill: &Bill) -> u64 {
    bill.calls.get("Query").copied().unwrap_or_default()
}

/// Whether a page took one Query, and hardly more than the first one.
fn is_like(first: &Bill, bill: &Bill) -> bool {
    queries(bill) == 1 && bill.read_units <= first.read_units + MAX_EXTRA_UNITS
}

/// Asserts that every page shows what it should.
async fn assert_all_pages(pages: &OrderPages, user: UserId, orders: &[Value], page_size: usize) {
    for (number, expected) in newest_first(orders).chunks(page_size).enumerate() {
        let found = pages.page(user, paging(number + 1, page_size)).await.unwrap();
        let expected = (expected.to_vec(), i64::try_from(orders.len()).unwrap());
        assert_eq!((ids(&found.items), found.total), expected, "page {}", number + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_busy_month_costs_one_query_and_little_more_than_the_first() {
    let (stack, meter, user) = (Stack::new().await, CostMeter::default(), uuid(100).into());
    let orders = busy_month(user, 2_000);
    stack.feed(&orders).await;
    let pages = OrderPages::new(accounts(&stack, &meter));
    pages.page(user, paging(1, PAGE_SIZE)).await.unwrap();
    let first = meter.take();
    assert_eq!(queries(&first), 1);
    let expected = newest_first(&orders);
    let last_page = expected.len() / PAGE_SIZE;
    pages.page(user, paging(last_page, PAGE_SIZE)).await.unwrap();
    let bill = meter.take();
    assert!(is_like(&first, &bill), "before the marks are remembered: {bill:?}");
    for page in (1..=last_page).rev() {
        let found = pages.page(user, paging(page, PAGE_SIZE)).await.unwrap();
        assert_eq!(ids(&found.items), expected[(page - 1) * PAGE_SIZE..page * PAGE_SIZE], "page {page}");
        let bill = meter.take();
        assert!(is_like(&first, &bill), "page {page}: {bill:?}, and {first:?} for the first");
    }

    let (running, proxy) = stack.instance_behind_proxy().await;
    let (key, _) = stack.key_of(user, &[Scope::OrdersRead]).await;
    let path = format!("/v1/public/orders?page_size={PAGE_SIZE}&page={last_page}");
    running.client.get(&key, &path).await;
    proxy.set_fault(Fault::Slow(Duration::from_millis(25)));
    proxy.take_calls();
    assert_eq!(running.client.get(&key, &path).await.ids(), expected[(last_page - 1) * PAGE_SIZE..]);
    assert_eq!(AwsCall::round_trips(&proxy.take_calls()), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_exact_when_the_marks_lack_orders() {
    let (stack, user) = (Stack::new().await, uuid(100).into());
    let stores = |block_orders: u64| {
        let stores = stack.admin.stores();
        Stores { accounts: stores.accounts.with_block_orders(block_orders), ..stores }
    };
    let (marking, without_marks) = (stores(4), stores(u64::MAX));
    let orders = busy_month(user, 150);
    let pages = || OrderPages::new(marking.accounts.clone());
    let warm = pages();
    // A summary names the latest 24 inserts, so marks that lack no more than these can catch up.
    let mut inserted = 0;
    for (stores, until) in [
        (&without_marks, 30),
        (&marking, 70),
        (&without_marks, 75),
        (&marking, 80),
        (&without_marks, 120),
        (&marking, 121),
        (&marking, 150),
    ] {
        let outcomes = stack.feed_through(stores.clone(), &orders[inserted..until]).await;
        assert!(outcomes.iter().all(|outcome| *outcome == ApplyOutcome::Changed), "{outcomes:?}");
        inserted = until;
        for pages in [&warm, &pages()] {
            assert_all_pages(pages, user, &orders[..inserted], 7).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_makes_the_marks_that_a_busy_month_lacks() {
    let (stack, meter, user) = (Stack::new().await, CostMeter::default(), uuid(100).into());
    let (orders, later) = (busy_month(user, 400), order(user, 400, "2026-11-01T00:00:00Z", 1));
    let stores = stack.admin.stores();
    let without_marks = Stores { accounts: stores.accounts.with_block_orders(u64::MAX), ..stores };
    stack.feed_through(without_marks, &[&orders[..], &[later][..]].concat()).await;
    let accounts = accounts(&stack, &meter).with_block_orders(4);
    for unmarked in [1, 0] {
        let found = accounts.repair_orders(user, stack.clock.now(), false, false).await.unwrap();
        assert_eq!(found.unmarked_months, unmarked, "{found:?}");
    }

    let pages = OrderPages::new(accounts);
    let mut units = Vec::new();
    for page in [1, 101, 101] {
        meter.take();
        let found = pages.page(user, paging(page, 4)).await.unwrap();
        let bill = meter.take();
        assert_eq!((queries(&bill), found.total), (1, 401));
        units.push(bill.read_units);
    }
    assert!(units[2] <= units[0], "{units:?}");
}
