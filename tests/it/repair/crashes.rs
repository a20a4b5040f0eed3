//! Repairs that die at any step. Answers stay right, and the next repair completes the work.

use admin::keys::KeyAdmin;
use aws_sdk_dynamodb::Client;
use common::aws::{Environment, Patience};
use common::ids::UserId;
use common::paging::Paging;
use common::records::PublicListing;
use common::resources::Resources;
use feed::Stores;
use local::environment::Variables;
use serde_json::Value;
use tests::{Fault, Proxy, Receiver, Stack, assert_orders_are_dense, compaction, listing, order, uuid};
use webhooks::store::WebhookStore;

use super::endpoints::{CutRemoval, TABLE, look, repair_endpoints};
use super::{changed, delete, keys, orders, put_back, repair_market, repair_orders, rows, streams};

const AT: &str = "2026-11-20T10:00:00Z";
/// How many calls more each repair makes before it dies.
const CALLS_MORE: usize = 9;
/// More orders than one transaction has place for.
const MANY_ORDERS: u32 = 110;

/// Returns the stores behind a proxy. Their time-outs are short, so a failure comes soon.
fn stores_behind(proxy: &Proxy) -> Stores {
    Stores::new(&client_behind(proxy), &Resources::new(Resources::DEFAULT_STACK))
}

fn client_behind(proxy: &Proxy) -> Client {
    let variables = Variables::new(&proxy.url);
    Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request)
}

/// Lets this many calls through, and refuses all others.
fn die_after(proxy: &Proxy, calls: usize) {
    let mut left = calls;
    proxy.plan(move |_| {
        if left == 0 {
            return Fault::Refuse;
        }
        left -= 1;
        Fault::None
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_of_a_stream_may_die_at_any_step() {
    let stack = Stack::new().await;
    stack.feed(&[1, 2, 3].map(|number| listing(number, "1.00", AT, 1))).await;
    compaction::<PublicListing>(&stack.aws.endpoint_url, stack.clock.clone()).run().await.unwrap();
    let (before, old) = (streams::entities(&stack).await, rows(&stack, streams::TABLE).await);
    stack.feed(&[listing(1, "2.00", AT, 2), listing(4, "1.00", AT, 1)]).await;
    let after = streams::entities(&stack).await;
    for key in changed(&old, &rows(&stack, streams::TABLE).await) {
        // The head moved, and nothing else did but one entity.
        if key[1] != "head" && key[1] != uuid(4).to_string() {
            put_back(&stack, streams::TABLE, &old, &key).await;
        }
    }
    let kept = streams::entities(&stack).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut calls = 0;
    loop {
        die_after(&proxy, calls);
        let outcome = repair_market(&stack, stores_behind(&proxy)).await;
        let shown = streams::shown(&stack, &streams::Reader::start(&stack).await).await;
        streams::assert_right(shown.as_ref(), &before, &after, &format!("{outcome:?} after {calls} calls"));
        if outcome.is_ok() {
            assert_eq!(shown, Some(kept));
            break;
        }
        calls += CALLS_MORE;
    }
    assert!(calls > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_of_keys_may_die_at_any_step() {
    let stack = Stack::new().await;
    let rotations = keys::cut_rotations(&stack).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let (mut calls, clock) = (0, stack.clock.clone());
    loop {
        die_after(&proxy, calls);
        let admin = KeyAdmin::new(client_behind(&proxy), keys::TABLE.to_owned(), clock.clone());
        if keys::repair_keys(&stack, admin, false).await.is_ok() {
            break;
        }
        calls += 1;
    }
    assert!(calls > 4, "it died {calls} times");
    let again = keys::repair_keys(&stack, stack.admin.keys(), false).await.unwrap();
    assert!(again.changed_keys.is_empty(), "{again:?}");
    let running = stack.instance().await;
    for rotation in rotations {
        rotation.assert_is_safe(&stack, &running).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_of_endpoints_may_die_at_any_step() {
    let receiver = Receiver::answering(200).await;
    // Each removal has a stack of its own. Otherwise what was done of others would hide steps.
    for subset in 0..CutRemoval::SUBSETS {
        let stack = Stack::new().await;
        let removal = CutRemoval::new(&stack, &receiver.url, subset).await;
        let proxy = Proxy::start(&stack.aws.endpoint_url).await;
        let mut calls = 0;
        loop {
            die_after(&proxy, calls);
            let store = WebhookStore::new(client_behind(&proxy), TABLE.to_owned());
            if repair_endpoints(&stack, store, false).await.is_ok() {
                break;
            }
            removal.assert_is_found_until_it_ends(&stack, &look(&stack).await).await;
            calls += 1;
        }
        assert!(calls > 2, "it died {calls} times");
        assert!(look(&stack).await.is_empty());
        removal.assert_is_made(&stack).await;
    }
    assert_eq!(receiver.so_far().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_of_many_orders_may_die_at_any_step() {
    let (stack, user): (_, UserId) = (Stack::new().await, uuid(1_000).into());
    let at = |number: u32| format!("2026-11-20T{:02}:{:02}:00Z", number / 60, number % 60);
    let orders: Vec<Value> = (0..MANY_ORDERS).map(|number| order(user, number, &at(number), 1)).collect();
    stack.feed(&orders).await;
    // Without the first order, every other has a wrong number.
    let record = [format!("orders#{user}"), format!("2026-11-20T00:00:00.000Z#{}", uuid(0))];
    delete(&stack, orders::TABLE, &record).await;
    let newest_first: Vec<String> =
        orders.iter().rev().map(|order| order["id"].as_str().unwrap().to_owned()).take(100).collect();

    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let (mut calls, mut errors) = (0, 0);
    loop {
        die_after(&proxy, calls);
        let outcome = repair_orders(&stack, stores_behind(&proxy)).await;
        let pages = accounts::OrderPages::new(stack.admin.stores().accounts);
        match pages.page(user, Paging { page: 1, page_size: 100 }).await {
            Err(_) => errors += 1,
            Ok(page) => {
                let ids: Vec<String> = page.items.iter().map(|order| order.id.to_string()).collect();
                assert_eq!(ids, newest_first, "{outcome:?} after {calls} calls");
                let total = u32::try_from(page.total).unwrap();
                assert!(total == MANY_ORDERS || total == MANY_ORDERS - 1, "{total} after {calls} calls");
            }
        }
        if outcome.is_ok() {
            break;
        }
        calls += 1;
    }
    // At least once it died while the summary was closed.
    assert!(errors > 0);
    assert_orders_are_dense(&stack).await;
    stack.feed(&[orders[0].clone()]).await;
    assert_orders_are_dense(&stack).await;
}
