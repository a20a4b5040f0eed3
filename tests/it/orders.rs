//! `GET /v1/public/orders` on a stack of its own: what pages and batches cost, and the hours of busy months.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use accounts::{Accounts, OrderPages};
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValue};
use common::clock::Clock;
use common::ids::UserId;
use common::paging::Paging;
use common::records::PublicOrder;
use common::resources::{Resources, Table};
use common::scope::Scope;
use common::store::Row;
use feed::ApplyOutcome::{Changed, Rejected, Unchanged};
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
async fn an_order_that_is_missing_keeps_its_user_from_inserting_and_nobody_else() {
    let stack = Stack::new().await;
    let [user, other] = [100, 200].map(|number| uuid(number).into());
    stack.feed(&[order(user, 1, "2026-11-20T10:00:00Z", 1)]).await;
    let position = format!("2026-11-20T10:00:00.000Z#{}", uuid(1));
    let key = [("pk", format!("orders#{user}")), ("sk", position)];
    let key = key.map(|(name, value)| (name.to_owned(), AttributeValue::S(value)));
    let delete = dynamodb(&stack).delete_item().table_name("marketplace-accounts").set_key(Some(key.into()));
    assert!(delete.return_values(ReturnValue::AllOld).send().await.unwrap().attributes.is_some());
    let messages: Vec<Value> = (2..=130).map(|n| order(user, n, "2026-11-21T10:00:00Z", 1)).collect();
    let messages = [messages, vec![order(other, 200, "2026-11-21T10:00:00Z", 1)]].concat();
    let outcomes = stack.try_to_feed(stack.admin.stores(), &messages).await;
    let (found, missing) = outcomes.split_last().unwrap();
    assert_eq!(found.as_ref().unwrap(), &Changed);
    for outcome in missing {
        let refusal = outcome.as_ref().unwrap_err().to_string();
        assert!(refusal.contains("marketctl repair"), "{refusal}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_into_a_busy_month_takes_a_read_and_a_transaction() {
    let (stack, user) = (Stack::new().await, uuid(100).into());
    let orders = busy_month(user, 400);
    stack.feed(&orders[..396]).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let stores = StackAdmin::new(&Variables::new(&proxy.url), stack.clock.clone()).unwrap().stores();
    // Others have made the latest insert, and then it was this process.
    for (batch, reads) in [(&orders[396..398], 2), (&orders[398..], 1)] {
        assert_eq!(stack.feed_through(stores.clone(), batch).await, vec![Changed; 2]);
        let calls: Vec<String> = proxy.take_calls().into_iter().map(|call| call.operation).collect();
        assert_eq!(calls, [vec!["BatchGetItem"; reads], vec!["TransactWriteItems"]].concat());
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
/// A page behind many others may read this many units more than the first one: those of the 128 orders that are read
/// over without a look at the hours.
const MAX_EXTRA_UNITS: f64 = 8.0;

/// Returns orders of one month, one in each minute. Of every ten, the oldest comes last.
fn busy_month(user: UserId, orders: u32) -> Vec<Value> {
    month_of(user, 0..orders, 1)
}

/// Returns orders of one month with these numbers, created every `minutes` minutes. Of every ten, the oldest comes last.
fn month_of(user: UserId, numbers: Range<u32>, minutes: u32) -> Vec<Value> {
    let minute = |n: u32| minutes * if n % 10 == 9 { n - 9 } else { n + 1 };
    let at = |n: u32| format!("2026-10-{:02}T{:02}:{:02}:00Z", 1 + n / 1_440, n / 60 % 24, n % 60);
    numbers.zip(0..).map(|(number, n)| order(user, number, &at(minute(n)), 1)).collect()
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

/// Asserts that a page took one Query and this many reads of single rows, and hardly more units than the first one.
fn assert_is_like(first: &Bill, bill: &Bill, rows: u64, what: &str) {
    let calls = |name: &str| bill.calls.get(name).copied().unwrap_or_default();
    assert_eq!((calls("Query"), calls("GetItem"), bill.all_calls()), (1, rows, 1 + rows), "{what}: {bill:?}");
    assert!(bill.read_units <= first.read_units + MAX_EXTRA_UNITS, "{what}: {bill:?}, and {first:?} for the first");
}

/// Asserts that every page shows what it should.
async fn assert_all_pages(pages: &OrderPages, user: UserId, orders: &[Value], page_size: usize, what: &str) {
    for (number, expected) in newest_first(orders).chunks(page_size).enumerate() {
        let found = pages.page(user, paging(number + 1, page_size)).await.unwrap();
        let expected = (expected.to_vec(), i64::try_from(orders.len()).unwrap());
        assert_eq!((ids(&found.items), found.total), expected, "{what}: page {}", number + 1);
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
    assert_is_like(&first, &first, 1, "the first page");
    let expected = newest_first(&orders);
    let last_page = expected.len() / PAGE_SIZE;
    pages.page(user, paging(last_page, PAGE_SIZE)).await.unwrap();
    assert_is_like(&first, &meter.take(), 2, "before the hours are remembered");
    for page in (1..=last_page).rev() {
        let found = pages.page(user, paging(page, PAGE_SIZE)).await.unwrap();
        assert_eq!(ids(&found.items), expected[(page - 1) * PAGE_SIZE..page * PAGE_SIZE], "page {page}");
        assert_is_like(&first, &meter.take(), 1, &format!("page {page}"));
    }
    for page in [12, 25, last_page] {
        let cold = OrderPages::new(accounts(&stack, &meter));
        let found = cold.page(user, paging(page, PAGE_SIZE)).await.unwrap();
        assert_eq!(ids(&found.items), expected[(page - 1) * PAGE_SIZE..page * PAGE_SIZE], "page {page}, cold");
        assert_is_like(&first, &meter.take(), 2, &format!("page {page}, cold"));
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

const TABLE: &str = "marketplace-accounts";

fn hours_key(user: UserId) -> Row {
    [("pk", format!("hours#{user}")), ("sk", "2026-10".to_owned())]
        .map(|(name, text)| (name.to_owned(), AttributeValue::S(text)))
        .into()
}

async fn hours_of(stack: &Stack, user: UserId) -> Row {
    let get = dynamodb(stack).get_item().table_name(TABLE).set_key(Some(hours_key(user)));
    get.consistent_read(true).send().await.unwrap().item.unwrap()
}

/// Gives a user the hours that another one had, or none.
async fn set_hours(stack: &Stack, user: UserId, hours: Option<&Row>) {
    let (client, key) = (dynamodb(stack), hours_key(user));
    match hours {
        Some(hours) => {
            let row = hours.clone().into_iter().chain(key).collect();
            client.put_item().table_name(TABLE).set_item(Some(row)).send().await.map(drop).unwrap();
        }
        None => client.delete_item().table_name(TABLE).set_key(Some(key)).send().await.map(drop).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_stay_exact_when_the_hours_are_missing_behind_or_ahead() {
    let stack = Stack::new().await;
    // The hours after each number of orders.
    let (mut hours, other, mut fed) = (BTreeMap::new(), uuid(99).into(), 0);
    for number in [40, 60, 83] {
        stack.feed(&month_of(other, 0..number, 20)[fed..]).await;
        hours.insert(number, hours_of(&stack, other).await);
        fed = number as usize;
    }
    // A summary names the latest 24 inserts, so hours that lack no more than these can catch up.
    for (number, what) in [(0_u32, "missing"), (40, "far behind"), (60, "behind"), (83, "ahead")] {
        let (user, first) = (uuid(100 + u128::from(number)).into(), 1_000 * (1 + number));
        let orders = month_of(user, first..first + 150, 20);
        let pages = || OrderPages::new(stack.admin.stores().accounts).with_max_read_over(4);
        stack.feed(&orders[..80]).await;
        let warm = pages();
        assert_all_pages(&warm, user, &orders[..80], 7, what).await;
        set_hours(&stack, user, hours.get(&number)).await;
        let mut fed = 80;
        for until in [80, 83, 84, 115, 149] {
            stack.feed(&orders[fed..until]).await;
            fed = until;
            for (pages, which) in [(&warm, "warm"), (&pages(), "cold")] {
                assert_all_pages(pages, user, &orders[..until], 7, &format!("{what}, {which}, at {until}")).await;
            }
        }
        stack.admin.stores().accounts.repair_orders(user, stack.clock.now(), false).await.unwrap();
        stack.feed(&orders[149..]).await;
        for (pages, which) in [(&warm, "warm"), (&pages(), "cold")] {
            assert_all_pages(pages, user, &orders, 7, &format!("{what}, {which}, repaired")).await;
        }
    }
    tests::assert_orders_are_dense(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_makes_the_hours_that_a_busy_month_lacks() {
    let (stack, meter, user) = (Stack::new().await, CostMeter::default(), uuid(100).into());
    stack.feed(&busy_month(user, 400)).await;
    set_hours(&stack, user, None).await;
    let mut units = Vec::new();
    for _ in 0..2 {
        let pages = OrderPages::new(accounts(&stack, &meter));
        for page in [1, 100, 100] {
            meter.take();
            assert_eq!(pages.page(user, paging(page, 4)).await.unwrap().total, 400);
        }
        units.push(meter.take().read_units);
        stack.admin.stores().accounts.repair_orders(user, stack.clock.now(), false).await.unwrap();
    }
    assert!(units[1] < units[0] / 3.0, "{units:?}");
}
