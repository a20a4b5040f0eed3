//! `GET /v1/public/orders`.

use feed::ApplyOutcome::{Changed, Rejected, Unchanged};
use local::environment::Variables;
use local::seed::StackAdmin;
use serde_json::{Value, json};
use tests::{AwsCall, Proxy, Stack, order, uuid};
use types::ids::UserId;
use types::scope::Scope;

async fn key(stack: &Stack, user: UserId) -> String {
    stack.key_of(user, &[Scope::OrdersRead]).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn any_page_is_reached_and_costs_one_round_trip_once_the_user_is_known() {
    let stack = Stack::new().await;
    let user = uuid(100).into();
    let orders: Vec<_> =
        (0..130).map(|n| order(user, n, &format!("2026-{:02}-{:02}T10:00:00Z", 1 + n % 10, 1 + n % 28), 1)).collect();
    stack.feed(&orders).await;
    let mut expected: Vec<(String, String)> = orders
        .iter()
        .map(|order| (order["created_at"].as_str().unwrap().to_owned(), order["id"].as_str().unwrap().to_owned()))
        .collect();
    expected.sort_by(|a, b| b.cmp(a));
    let (running, proxy) = stack.instance_behind_proxy().await;
    let key = key(&stack, user).await;
    running.client.get(&key, "/v1/public/orders").await;
    proxy.set_fault(tests::Fault::Slow(std::time::Duration::from_millis(25)));
    for page in (1..=20).rev() {
        proxy.take_calls();
        let reply = running.client.get(&key, &format!("/v1/public/orders?page_size=7&page={page}")).await;
        assert_eq!(AwsCall::round_trips(&proxy.take_calls()), 1, "page {page}");
        let from = (page - 1) * 7;
        let ids: Vec<_> = expected.iter().skip(from).take(7).map(|(_, id)| id.clone()).collect();
        assert_eq!((reply.ids(), &reply.json()["total"]), (ids, &json!(130)), "page {page}");
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
