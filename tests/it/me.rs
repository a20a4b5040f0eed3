//! `GET /v1/public/me`.

use serde_json::json;
use shared::scope::Scope;
use tests::Stack;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_learns_about_itself() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let user = tests::uuid(42);
    let (key, record) = stack.key_of(user.into(), &[Scope::WalletRead, Scope::CatalogRead]).await;
    let reply = running.client.get(&key, "/v1/public/me").await;
    assert_eq!(reply.status, 200);
    assert_eq!(
        reply.json(),
        json!({
            "api_key_id": record.key_id, "user_id": user, "tier": "free",
            "scopes": ["catalog:read", "wallet:read"], "rate_limit_per_minute": 60,
        })
    );
    assert_eq!(reply.rate(), (60, 59, 60));
    assert_eq!(reply.header("cache-control"), "private, no-cache");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_budget_is_its_own() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    for left in (0..60).rev() {
        assert_eq!(running.client.get(&key, "/v1/public/me").await.rate(), (60, left, 60));
    }
    let refused = running.client.get(&key, "/v1/public/me").await;
    assert_eq!(refused.status, 429);
    assert_eq!(
        refused.json(),
        json!({"error": {"code": "rate_limits.exceeded", "params": {"scope": "me", "limit": 60, "retry_after": 60}}})
    );
    assert_eq!(running.client.get(&key, "/v1/public/marketplaces").await.rate(), (60, 59, 60));
}
