//! `GET /v1/public/orders`.

use serde_json::json;
use shared::feed::Applied;
use shared::ids::UserId;
use shared::scope::Scope;
use tests::{Call, Stack, order, uuid};

async fn key(stack: &Stack, user: UserId) -> String {
    stack.key_of(user, &[Scope::OrdersRead]).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_own_orders_newest_first() {
    let stack = Stack::new().await;
    let (user, other) = (uuid(100).into(), uuid(200).into());
    let mut pending = order(user, 3, "2026-11-20T10:00:00Z", 1);
    pending["delivered_at"] = json!(null);
    pending["status"] = json!("awaiting_delivery");
    pending["source"] = json!("buy_order");
    pending["items"][0]["item_id"] = json!(null);
    stack
        .feed(&[
            order(user, 1, "2026-10-31T23:59:59.999Z", 1),
            pending,
            order(other, 9, "2026-11-20T11:00:00Z", 1),
            order(user, 2, "2026-11-20T12:00:00+02:00", 1),
        ])
        .await;
    let running = stack.instance().await;
    let reply = running.client.get(&key(&stack, user).await, "/v1/public/orders?page_size=2").await;
    assert_eq!(reply.status, 200);
    let first = json!({
        "id": uuid(3), "status": "awaiting_delivery", "source": "buy_order", "total_usd": "12.50",
        "created_at": "2026-11-20T10:00:00.000Z", "delivered_at": null,
        "items": [{"listing_id": uuid(9), "price_usd": "12.50", "item_id": null}],
    });
    let second = json!({
        "id": uuid(2), "status": "delivered", "source": "checkout", "total_usd": "12.50",
        "created_at": "2026-11-20T10:00:00.000Z", "delivered_at": "2026-11-20T10:00:00.000Z",
        "items": [{"listing_id": uuid(9), "price_usd": "12.50", "item_id": "ak-47-redline"}],
    });
    assert_eq!(reply.json(), json!({"items": [first, second], "page": 1, "page_size": 2, "total": 3}));
    let none = running.client.get(&stack.full_key().await, "/v1/public/orders").await;
    assert_eq!(none.json(), json!({"items": [], "page": 1, "page_size": 50, "total": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_updated_in_place_and_never_moves() {
    let stack = Stack::new().await;
    let user = uuid(100).into();
    let created = "2026-11-20T10:00:00Z";
    stack.feed(&[order(user, 1, created, 1), order(user, 2, created, 1)]).await;
    let mut refunded = order(user, 1, "2026-11-20T11:00:00+01:00", 2);
    refunded["status"] = json!("refunded");
    let late = order(user, 1, created, 1);
    assert_eq!(stack.feed_outcomes(&[refunded]).await, [Applied::Changed]);
    assert_eq!(stack.feed_outcomes(&[late]).await, [Applied::Unchanged]);
    for (message, field) in [
        (order(uuid(200).into(), 1, created, 3), "account_id"),
        (order(user, 1, "2026-11-20T10:00:00.001Z", 3), "created_at"),
    ] {
        let outcome = stack.feed_outcomes(&[message]).await;
        assert!(matches!(&outcome[..], [Applied::Rejected(rejection)] if rejection.field == field), "{outcome:?}");
    }
    let running = stack.instance().await;
    let body = running.client.get(&key(&stack, user).await, "/v1/public/orders").await.json();
    assert_eq!((&body["total"], &body["items"][1]["status"]), (&json!(2), &json!("refunded")));
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
    proxy.set(tests::Fault::Slow(std::time::Duration::from_millis(25)));
    for page in (1..=20).rev() {
        proxy.take_calls();
        let reply = running.client.get(&key, &format!("/v1/public/orders?page_size=7&page={page}")).await;
        assert_eq!(Call::round_trips(&proxy.take_calls()), 1, "page {page}");
        let from = (page - 1) * 7;
        let ids: Vec<_> = expected.iter().skip(from).take(7).map(|(_, id)| id.clone()).collect();
        assert_eq!((reply.ids(), &reply.json()["total"]), (ids, &json!(130)), "page {page}");
    }
    stack.feed(&[order(user, 500, "2026-11-01T00:00:00Z", 1)]).await;
    proxy.take_calls();
    let first = running.client.get(&key, "/v1/public/orders?page_size=1").await;
    assert_eq!((first.ids(), &first.json()["total"]), (vec![uuid(500).to_string()], &json!(131)));
    assert_eq!(Call::round_trips(&proxy.take_calls()), 1, "the first page does not mind a summary that moved");
}
