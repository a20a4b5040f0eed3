//! What an account sees of its own: `/me`, orders and balance.

use common::ids::UserId;
use common::scope::{Scope, Tier};
use feed::ApplyOutcome;
use serde_json::{Value, json};
use tests::{Target, balance};

const LIMIT: u32 = Tier::Free.limit();

#[tokio::test(flavor = "multi_thread")]
async fn a_key_learns_about_itself() {
    let target = Target::new().await;
    let user = target.uuid(42);
    let (key, record) = target.key_of(user.into(), &[Scope::WalletRead, Scope::CatalogRead]).await;
    let reply = target.client.get(&key, "/v1/public/me").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "api_key_id": record.key_id, "user_id": user, "tier": "free",
            "scopes": ["catalog:read", "wallet:read"], "rate_limit_per_minute": LIMIT,
        })
    );
    target.assert_rate(&reply, LIMIT, LIMIT - 1);
    assert_eq!(reply.header("cache-control"), "private, no-cache");
}

async fn key(target: &Target, user: UserId) -> String {
    target.key_of(user, &[Scope::OrdersRead]).await.0
}

/// Returns an order with the test's id of this number.
fn order(target: &Target, user: UserId, number: u32, created_at: &str, version: u64) -> Value {
    let mut order = tests::order(user, number, created_at, version);
    order["id"] = json!(target.uuid(number));
    order
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_own_orders_newest_first() {
    let target = Target::new().await;
    let (user, other) = (target.uuid(100).into(), target.uuid(200).into());
    let mut pending = order(&target, user, 3, "2026-11-20T10:00:00Z", 1);
    pending["delivered_at"] = json!(null);
    pending["status"] = json!("awaiting_delivery");
    pending["source"] = json!("buy_order");
    pending["items"][0]["item_id"] = json!(null);
    target
        .feed(&[
            order(&target, user, 1, "2026-10-31T23:59:59.999Z", 1),
            pending,
            order(&target, other, 9, "2026-11-20T11:00:00Z", 1),
            order(&target, user, 2, "2026-11-20T12:00:00+02:00", 1),
        ])
        .await;
    let reply = target.client.get(&key(&target, user).await, "/v1/public/orders?page_size=2").await;
    assert_eq!(reply.status, 200);
    let first = json!({
        "id": target.uuid(3), "status": "awaiting_delivery", "source": "buy_order", "total_usd": "12.50",
        "created_at": "2026-11-20T10:00:00.000Z", "delivered_at": null,
        "items": [{"listing_id": tests::uuid(9), "price_usd": "12.50", "item_id": null}],
    });
    let second = json!({
        "id": target.uuid(2), "status": "delivered", "source": "checkout", "total_usd": "12.50",
        "created_at": "2026-11-20T10:00:00.000Z", "delivered_at": "2026-11-20T10:00:00.000Z",
        "items": [{"listing_id": tests::uuid(9), "price_usd": "12.50", "item_id": "ak-47-redline"}],
    });
    assert_eq!(reply.json(), json!({"items": [first, second], "page": 1, "page_size": 2, "total": 3}));
    let none = target.client.get(&target.full_key().await, "/v1/public/orders").await;
    assert_eq!(none.json(), json!({"items": [], "page": 1, "page_size": 50, "total": 0}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_updated_in_place_and_never_moves() {
    let target = Target::new().await;
    let user = target.uuid(100).into();
    let created = "2026-11-20T10:00:00Z";
    target.feed(&[order(&target, user, 1, created, 1), order(&target, user, 2, created, 1)]).await;
    let mut refunded = order(&target, user, 1, "2026-11-20T11:00:00+01:00", 2);
    refunded["status"] = json!("refunded");
    let late = order(&target, user, 1, created, 1);
    assert_eq!(target.feed_outcomes(&[refunded]).await, [ApplyOutcome::Changed]);
    assert_eq!(target.feed_outcomes(&[late]).await, [ApplyOutcome::Unchanged]);
    for (message, field) in [
        (order(&target, target.uuid(200).into(), 1, created, 3), "account_id"),
        (order(&target, user, 1, "2026-11-20T10:00:00.001Z", 3), "created_at"),
    ] {
        let outcome = target.feed_outcomes(&[message]).await;
        assert!(matches!(&outcome[..], [ApplyOutcome::Rejected(rejection)] if rejection.field == field), "{outcome:?}");
    }
    let body = target.client.get(&key(&target, user).await, "/v1/public/orders").await.json();
    assert_eq!((&body["total"], &body["items"][1]["status"]), (&json!(2), &json!("refunded")));
}

const PATH: &str = "/v1/public/wallet/balance";

#[tokio::test(flavor = "multi_thread")]
async fn a_user_sees_their_own_balance_and_zeros_before_the_first() {
    let target = Target::new().await;
    let (rich, poor) = (target.uuid(1), target.uuid(2));
    target.feed(&[balance(rich.into(), "10.00", "5.5", "15.50", 1)]).await;
    let key = async |user: uuid::Uuid| target.key_of(user.into(), &[Scope::WalletRead]).await.0;
    let reply = target.client.get(&key(rich).await, PATH).await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({"available_usd": "15.50", "store_usd": "10.00", "trade_usd": "5.50", "withdrawable_usd": "10.00",
            "held_usd": "2.50", "escrow_usd": "0.00"})
    );
    let zeros = target.client.get(&key(poor).await, PATH).await;
    assert_eq!(
        zeros.json(),
        json!({"available_usd": "0.00", "store_usd": "0.00", "trade_usd": "0.00", "withdrawable_usd": "0.00",
            "held_usd": "0.00", "escrow_usd": "0.00"})
    );
}
