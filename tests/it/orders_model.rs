//! Pages of orders under concurrent inserts: each page and its total belong to one state that was current
//! while the page was read.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tests::{Stack, order, uuid};

/// The history: order n is the n-th insert. Times jump about, so that inserts land on every page.
fn history(user: shared::ids::UserId) -> Vec<Value> {
    (0..160u32)
        .map(|n| {
            let (month, day) = (1 + (n * 7) % 6, 1 + (n * 11) % 28);
            order(user, n + 1, &format!("2026-{month:02}-{day:02}T10:00:00Z"), 1)
        })
        .collect()
}

/// What a page shows when the first `total` inserts have been made.
fn expected(history: &[Value], total: usize, page: usize, size: usize) -> Vec<String> {
    let mut orders: Vec<(&str, &str)> = history[..total]
        .iter()
        .map(|order| (order["created_at"].as_str().unwrap(), order["id"].as_str().unwrap()))
        .collect();
    orders.sort_by(|a, b| b.cmp(a));
    orders.into_iter().skip((page - 1) * size).take(size).map(|(_, id)| id.to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn page_and_total_are_of_one_state_while_orders_arrive() {
    let stack = Stack::new().await;
    let user = uuid(1_000).into();
    let history = history(user);
    let (one, other) = (stack.instance().await, stack.instance().await);
    let done = AtomicUsize::new(0);
    let write = async {
        for message in &history {
            stack.feed(std::slice::from_ref(message)).await;
            done.fetch_add(1, Ordering::SeqCst);
        }
    };
    let read = async |client: tests::Client| {
        let mut seen = 0;
        for round in 0.. {
            let (page, size) = ([1, 1, 2, 3, 9][round % 5], [10, 50, 7, 3][round % 4]);
            let before = done.load(Ordering::SeqCst);
            let (key, _) = stack.key_of(user, &[shared::scope::Scope::OrdersRead]).await;
            let reply = client.get(&key, &format!("/v1/public/orders?page={page}&page_size={size}")).await;
            let again = client.get(&key, &format!("/v1/public/orders?page={page}&page_size={size}")).await;
            for reply in [reply, again] {
                assert_eq!(reply.status, 200, "{:?}", reply.json());
                let total = usize::try_from(reply.json()["total"].as_u64().unwrap()).unwrap();
                assert!(total >= before.max(seen), "{total} after {before} were acknowledged and {seen} seen");
                assert_eq!(reply.ids(), expected(&history, total, page, size), "page {page} of {size} at {total}");
                seen = total;
            }
            if before == history.len() {
                break;
            }
        }
    };
    tokio::join!(write, read(one.client.clone()), read(other.client.clone()));
}
