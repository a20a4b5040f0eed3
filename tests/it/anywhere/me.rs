//! `GET /v1/public/me`.

use serde_json::json;
use tests::Target;
use types::scope::{Scope, Tier};

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

#[tokio::test(flavor = "multi_thread")]
async fn its_budget_is_its_own() {
    let target = Target::new().await;
    let key = target.full_key().await;
    target.minute_with(40).await;
    for left in (0..LIMIT).rev() {
        target.assert_rate(&target.client.get(&key, "/v1/public/me").await, LIMIT, left);
    }
    let refused = target.client.get(&key, "/v1/public/me").await;
    assert_eq!(refused.status, 429);
    let params = json!({"scope": "me", "limit": LIMIT, "retry_after": refused.rate().2});
    assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
    assert_eq!(refused.header("retry-after"), refused.rate().2.to_string());
    target.assert_rate(&refused, LIMIT, 0);
    target.assert_rate(&target.client.get(&key, "/v1/public/marketplaces").await, LIMIT, LIMIT - 1);
}
