//! Keys and scopes (specification 5.4, 5.5 and 7.2).

use admin::keys::NewKey;
use serde_json::json;
use tests::Stack;
use types::scope::{Scope, Tier};

/// A path of each route that needs a key, and the scope it needs.
pub(crate) const PATHS: [(&str, Option<Scope>); 8] = [
    ("/v1/public/me", None),
    ("/v1/public/catalog", Some(Scope::CatalogRead)),
    ("/v1/public/items/ak-47-redline", Some(Scope::CatalogRead)),
    ("/v1/public/prices/00000000-0000-0000-0000-000000000007", Some(Scope::CatalogRead)),
    ("/v1/public/marketplaces", Some(Scope::CatalogRead)),
    ("/v1/public/listings", Some(Scope::ListingsRead)),
    ("/v1/public/orders", Some(Scope::OrdersRead)),
    ("/v1/public/wallet/balance", Some(Scope::WalletRead)),
];

#[test]
fn no_route_is_left_out() {
    let routes = api::routes::ROUTES.iter().filter(|route| route.function != api::routes::DEFAULT);
    for route in routes {
        assert!(PATHS.iter().any(|(path, _)| route.matches(path).is_some()), "{}", route.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_on_its_next_request_everywhere() {
    let stack = Stack::new().await;
    let (one, other) = (stack.instance().await, stack.instance().await);
    let (key, record) = stack.key_of(tests::uuid(1).into(), &Scope::ALL).await;
    for (path, _) in PATHS {
        assert_ne!(one.client.get(&key, path).await.status, 401);
        assert_ne!(other.client.get(&key, path).await.status, 401);
    }
    stack.admin.keys().revoke(record.key_id).await.unwrap();
    for (path, _) in PATHS {
        for client in [&one.client, &other.client] {
            let reply = client.get(&key, path).await;
            assert_eq!(reply.status, 401, "{path}");
            assert_eq!(reply.json(), json!({"error": {"code": "api_keys.invalid", "params": {}}}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_with_its_expiry() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let expires_at = Some(tests::NOON.parse::<types::timestamp::Timestamp>().unwrap().plus_millis(10_000));
    let scopes = Scope::ALL.into_iter().collect();
    let new = NewKey {
        user_id: tests::uuid(1).into(),
        name: None,
        tier: Tier::Free,
        limit_override: None,
        scopes,
        expires_at,
    };
    let (key, _) = stack.key_with(new).await;
    running.wait(9);
    assert_eq!(running.client.get(&key, "/v1/public/me").await.status, 200);
    running.wait(1);
    let reply = running.client.get(&key, "/v1/public/me").await;
    assert_eq!((reply.status, reply.rate()), (401, (0, 0, 50)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_creates_no_item() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let unknown = auth::KeyText::from_bits([9; 32]);
    assert_eq!(running.client.get(unknown.reveal(), "/v1/public/me").await.status, 401);
    let scan = tests::dynamodb(&stack).scan().table_name("marketplace-keys").send().await.unwrap();
    assert_eq!(scan.items().len(), 0);
}
