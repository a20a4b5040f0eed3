//! Pages of orders under concurrent inserts and updates. Each page and its total belong to one state that was current
//! while the page was read, and that includes everything acknowledged before.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use accounts::{MAX_RECENT_INSERTS, OrderPages};
use aws_sdk_dynamodb::types::AttributeValue;
use common::aws::Patience;
use common::ids::UserId;
use common::paging::Paging;
use futures_util::future::join_all;
use local::aws::limits::{Latency, Limits};
use serde_json::{Value, json};
use tests::{Administrator, Adversaries, HttpReply, Simulation, Stack, histories, order, uuid};
use tokio::time::sleep;

const ORDERS: u32 = 160;
/// How many orders of a month are read over here without a look at its hours.
const MAX_READ_OVER: usize = 4;

/// Returns the orders in the order in which they are inserted. Their times jump about, so that inserts land on every
/// page.
fn history(user: UserId) -> Vec<Value> {
    (0..ORDERS)
        .map(|n| {
            let (month, day) = (1 + (n * 7) % 6, 1 + (n * 11) % 28);
            order(user, n + 1, &format!("2026-{month:02}-{day:02}T10:00:00Z"), 1)
        })
        .collect()
}

/// Returns what a page shows after the first `total` inserts.
fn expected(history: &[Value], total: usize, page: usize, size: usize) -> Vec<String> {
    let mut orders: Vec<(&str, &str)> = history[..total]
        .iter()
        .map(|order| (order["created_at"].as_str().unwrap(), order["id"].as_str().unwrap()))
        .collect();
    orders.sort_by(|a, b| b.cmp(a));
    orders.into_iter().skip((page - 1) * size).take(size).map(|(_, id)| id.to_owned()).collect()
}

/// Returns the update with this number: it refunds the order of the same number. One update follows every second
/// insert.
fn update(user: UserId, number: usize) -> Value {
    let mut update = history(user)[number].clone();
    (update["status"], update["version"]) = (json!("refunded"), json!(2));
    update
}

/// Asserts for each order on the page: it is refunded if its update was acknowledged before the request, and not
/// refunded if its update had not begun when the answer came.
fn assert_statuses(reply: &HttpReply, acknowledged: usize, begun: usize) {
    for order in reply.json()["items"].as_array().unwrap() {
        let number = u128::from_str_radix(&order["id"].as_str().unwrap().replace('-', ""), 16).unwrap() as usize - 1;
        let refunded = order["status"] == "refunded";
        assert!(refunded || number >= acknowledged, "update {number} of {acknowledged} acknowledged is missing");
        assert!(!refunded || number < begun, "update {number} shows, but only {begun} had begun");
    }
}

/// Returns limits that admit everything, with latencies that differ much. Reads see half of slow inserts.
fn slow() -> Limits {
    let latency = Latency { median: Duration::from_millis(4), p99: Duration::from_millis(60) };
    let transaction_latency = Latency { median: Duration::from_millis(15), p99: Duration::from_millis(90) };
    Limits { latency, transaction_latency, ..Limits::unlimited() }
}

#[tokio::test(flavor = "multi_thread")]
async fn page_and_total_belong_to_one_state_though_queries_see_half_of_an_insert() {
    insert_and_change(&Stack::with_limits(slow()).await).await;
}

/// Inserts and updates orders while two instances answer requests for pages.
async fn insert_and_change(stack: &Stack) {
    let user = uuid(1_000).into();
    let history = history(user);
    let (one, other) = (stack.instance().await, stack.instance().await);
    let (inserted, begun, updated) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let write = async {
        let mut rest = history.as_slice();
        // Orders that come in one batch are written several in a transaction.
        for size in [1, 9, 2, 5].into_iter().cycle() {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            stack.feed(batch).await;
            let done = inserted.fetch_add(batch.len(), Ordering::SeqCst) + batch.len();
            let newer: Vec<Value> =
                (begun.swap(done / 2, Ordering::SeqCst)..done / 2).map(|n| update(user, n)).collect();
            stack.feed(&newer).await;
            updated.store(done / 2, Ordering::SeqCst);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    };
    let read = async |client: tests::Client| {
        let mut seen = 0;
        for round in 0.. {
            let (page, size) = ([1, 1, 2, 3, 9][round % 5], [10, 50, 7, 3][round % 4]);
            let before = inserted.load(Ordering::SeqCst);
            let (key, _) = stack.key_of(user, &[common::scope::Scope::OrdersRead]).await;
            for _ in 0..2 {
                let acknowledged = updated.load(Ordering::SeqCst);
                let reply = client.get(&key, &format!("/v1/public/orders?page={page}&page_size={size}")).await;
                assert_eq!(reply.status, 200, "{:?}", reply.json());
                let total = usize::try_from(reply.json()["total"].as_u64().unwrap()).unwrap();
                assert!(total >= before.max(seen), "{total} after {before} were acknowledged and {seen} seen");
                assert_eq!(reply.ids(), expected(&history, total, page, size), "page {page} of {size} at {total}");
                assert_statuses(&reply, acknowledged, begun.load(Ordering::SeqCst));
                seen = total;
            }
            if before == history.len() {
                break;
            }
        }
    };
    tokio::join!(write, read(one.client.clone()), read(other.client.clone()));
}

/// Returns orders of one month, in the order in which they are inserted. Several share each time.
fn busy_month(user: UserId) -> Vec<Value> {
    (0..ORDERS).map(|n| order(user, n + 1, &format!("2026-11-20T{:02}:30:00Z", (n * 37) % 23), 1)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_busy_month_belong_to_one_state_while_they_are_inserted() {
    let stack = Stack::new().await;
    Box::pin(fill_a_busy_month(&stack, None)).await;
}

#[tokio::test(start_paused = true)]
async fn pages_of_a_busy_month_belong_to_one_state_though_queries_see_half_of_an_insert() {
    let simulation = Simulation::new().await;
    simulation.aws.limits().set(slow());
    Box::pin(fill_a_busy_month(&simulation, None)).await;
}

/// What is inserted at the same time is in an order that only the rows tell. So the pages are looked at in the end.
#[tokio::test(start_paused = true)]
async fn pages_belong_to_one_state_though_several_writers_insert_at_once() {
    // A slow transaction may show in the summary, and others after it, before its orders show.
    let transaction_latency = Latency { median: Duration::from_millis(15), p99: Duration::from_millis(900) };
    for seed in 20..20 + histories(HISTORIES / 2) {
        let simulation = Simulation::new().await;
        simulation.aws.limits().set(Limits { seed: seed.into(), transaction_latency, ..slow() });
        let user = uuid(1_000).into();
        let (orders, accounts) = (busy_month(user), simulation.admin.stores().accounts);
        let left = AtomicUsize::new(WRITERS);
        let write = async |orders: &[Value]| {
            for batch in orders.chunks(4) {
                while simulation.try_to_feed(simulation.admin.stores(), batch).await.iter().any(Result::is_err) {}
            }
            left.fetch_sub(1, Ordering::SeqCst);
        };
        let read = async |pages: OrderPages| {
            let mut seen = Vec::new();
            while left.load(Ordering::SeqCst) > 0 {
                let size = [100, 7, 30][seen.len() % 3];
                if let Ok(page) = pages.page(user, Paging { page: 1, page_size: size }).await {
                    let ids: Vec<String> = page.items.iter().map(|order| order.id.to_string()).collect();
                    seen.push((usize::try_from(page.total).unwrap(), usize::try_from(size).unwrap(), ids));
                }
                sleep(Duration::from_millis(7)).await;
            }
            seen
        };
        let writes = join_all(orders.chunks(orders.len().div_ceil(WRITERS)).map(write));
        let pages = || OrderPages::new(accounts.clone());
        let (_, one, other) = tokio::join!(writes, read(pages()), read(pages()));
        let history = in_order(&simulation, user, orders).await;
        assert!(one.len() + other.len() > 20, "few pages were answered with the seed {seed}");
        for (total, size, ids) in one.into_iter().chain(other) {
            assert_eq!(ids, expected(&history, total, 1, size), "{total} orders, with the seed {seed}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_lacks_no_order_of_a_slow_transaction_though_many_fast_ones_follow() {
    let (slow, answered) = (Duration::from_secs(2), Cell::new(0));
    for seed in 0..histories(HISTORIES) {
        let simulation = Simulation::new().await;
        let limits = Limits { seed: seed.into(), ..Limits::unlimited() };
        simulation.aws.limits().set(Limits { transaction_latency: Latency::always(slow), ..limits });
        let user = uuid(1_000).into();
        let orders = busy_month(user);
        let (first, later) = orders.split_at(4);
        let insert_later = async {
            sleep(slow * 3 / 4).await;
            simulation.aws.limits().set(limits);
            for batch in later[..MAX_RECENT_INSERTS * 2].chunks(4) {
                while simulation.try_to_feed(simulation.admin.stores(), batch).await.iter().any(Result::is_err) {}
            }
        };
        let is_written = Cell::new(false);
        let write = async {
            tokio::join!(simulation.feed(first), insert_later);
            is_written.set(true);
        };
        let read = async {
            let pages = OrderPages::new(simulation.admin.stores().accounts);
            while !is_written.get() {
                if let Ok(page) = pages.page(user, Paging { page: 1, page_size: 30 }).await {
                    let ids: Vec<String> = page.items.iter().map(|order| order.id.to_string()).collect();
                    let total = usize::try_from(page.total).unwrap();
                    assert_eq!(ids, expected(&orders, total, 1, 30), "{total} orders, with the seed {seed}");
                    answered.set(answered.get() + 1);
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::join!(write, read);
    }
    assert!(answered.get() > 20, "few pages were answered: {}", answered.get());
}

/// Returns these orders in the order in which they were inserted.
async fn in_order(simulation: &Simulation, user: UserId, orders: Vec<Value>) -> Vec<Value> {
    let query =
        simulation.aws.environment().unwrap().dynamodb(Patience::Bulk).query().table_name("marketplace-accounts");
    let query = query.key_condition_expression("pk = :pk").consistent_read(true);
    let query = query.expression_attribute_values(":pk", AttributeValue::S(format!("orders#{user}")));
    let rows: Vec<_> = query.into_paginator().items().send().collect::<Result<_, _>>().await.unwrap();
    let ordinal = |order: &Value| {
        let id = order["id"].as_str().unwrap();
        let row = rows.iter().find(|row| row["sk"].as_s().unwrap().ends_with(id)).unwrap();
        row["ordinal"].as_n().unwrap().parse::<u64>().unwrap()
    };
    let mut orders = orders;
    orders.sort_by_cached_key(ordinal);
    orders
}

/// How many insert at the same time.
const WRITERS: usize = 4;
/// How many histories of a busy month are played.
const HISTORIES: u32 = 8;

#[tokio::test(start_paused = true)]
async fn pages_of_a_busy_month_belong_to_one_state_whatever_holds_up_those_who_read_them() {
    for seed in 0..histories(HISTORIES) {
        let (simulation, adversaries) =
            (Simulation::new().await, Adversaries::new(seed.into(), "marketplace-accounts"));
        simulation.aws.limits().set(adversaries.limits);
        let pages = Box::pin(fill_a_busy_month(&simulation, Some(&RefCell::new(adversaries)))).await;
        assert!(pages > 0, "no page was answered with the seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_waits_until_a_slow_insert_shows() {
    let slow = Duration::from_millis(400);
    for seed in 0..8 {
        let simulation = Simulation::new().await;
        let user = uuid(1_000).into();
        let transaction_latency = Latency::always(slow);
        simulation.aws.limits().set(Limits { transaction_latency, seed, ..Limits::unlimited() });
        let message = order(user, 1, "2026-11-20T10:00:00Z", 1);
        // The page is asked for just after the insert was applied. The summary shows, but perhaps not yet the order.
        let page = async {
            sleep(slow / 2 + Duration::from_millis(5)).await;
            OrderPages::new(simulation.admin.stores().accounts).page(user, Paging { page: 1, page_size: 10 }).await
        };
        let (page, ()) = tokio::join!(page, simulation.feed(std::slice::from_ref(&message)));
        let page = page.unwrap();
        assert_eq!((page.total, page.items.len()), (1, 1), "with the seed {seed}");
    }
}

/// Inserts the orders of a month while two instances read pages. With adversaries, a read may fail. Returns how many
/// pages were answered.
async fn fill_a_busy_month(administrator: &Administrator, adversaries: Option<&RefCell<Adversaries>>) -> u32 {
    let user = uuid(1_000).into();
    let history = busy_month(user);
    let stores = administrator.admin.stores();
    let inserted = AtomicUsize::new(0);
    let write = async {
        let mut rest = history.as_slice();
        // Up to four orders come in one transaction, and more of a batch in the next.
        for size in [1, 4, 2, 7, 1, 4, 3].into_iter().cycle() {
            let (batch, later) = rest.split_at(size.min(rest.len()));
            // What is refused comes again, as from the queue.
            while administrator.try_to_feed(stores.clone(), batch).await.iter().any(Result::is_err) {
                assert!(adversaries.is_some());
                sleep(Duration::from_secs(1)).await;
            }
            inserted.fetch_add(batch.len(), Ordering::SeqCst);
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
    };
    let read = async |pages: OrderPages| {
        let (mut seen, mut answered) = (0, 0);
        for round in 0.. {
            let (page, size) = ([1, 9, 2, 14, 5][round % 5], [3, 10, 7, 6][round % 4]);
            let before = inserted.load(Ordering::SeqCst);
            let paging = Paging { page: i64::try_from(page).unwrap(), page_size: i64::try_from(size).unwrap() };
            let asked = pages.page(user, paging);
            let asked = match adversaries {
                None => asked.await,
                Some(adversaries) => {
                    let asked = adversaries.borrow_mut().run(asked);
                    sleep(Duration::from_millis(500)).await;
                    asked.await
                }
            };
            let found = match asked {
                Ok(found) => found,
                Err(_) if adversaries.is_some() => continue,
                Err(error) => panic!("{error}"),
            };
            answered += 1;
            let total = usize::try_from(found.total).unwrap();
            assert!(total >= before.max(seen), "{total} after {before} were acknowledged and {seen} seen");
            let ids: Vec<String> = found.items.iter().map(|order| order.id.to_string()).collect();
            assert_eq!(ids, expected(&history, total, page, size), "page {page} of {size} at {total}");
            seen = total;
            if before == history.len() {
                break;
            }
        }
        answered
    };
    let pages = || OrderPages::new(stores.accounts.clone()).with_max_read_over(MAX_READ_OVER);
    let ((), one, other) = tokio::join!(write, read(pages()), read(pages()));
    one + other
}
