//! `GET /v1/public/orders`.

use serde_json::json;
use tests::{AwsCall, Stack, order, uuid};
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
