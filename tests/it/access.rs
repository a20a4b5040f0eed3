//! Keys and scopes (specification, sections 5 and 7).

use serde_json::json;
use shared::keys::NewKey;
use shared::scope::{Scope, Tier};
use tests::Stack;

/// A path of every route behind a key, and the scope it needs.
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
    let routes = shared::routes::ROUTES.iter().filter(|route| route.function != shared::routes::DEFAULT);
    for route in routes {
        assert!(PATHS.iter().any(|(path, _)| route.matches(path).is_some()), "{}", route.path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_or_another_scheme_is_missing_and_the_rest_is_invalid() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let unknown = shared::keys::KeyText::from_bits([3; 32]);
    let good = stack.full_key().await;
    let mut broken = good.clone();
    broken.replace_range(10..11, if &good[10..11] == "A" { "B" } else { "A" });
    let cases = [
        (None, "api_keys.missing"),
        (Some("Basic dTpw".to_owned()), "api_keys.missing"),
        (Some(good.clone()), "api_keys.missing"),
        (Some("Bearer".to_owned()), "api_keys.invalid"),
        (Some("Bearer nonsense".to_owned()), "api_keys.invalid"),
        (Some(format!("Bearer {broken}")), "api_keys.invalid"),
        (Some(format!("bEARER {}", unknown.reveal())), "api_keys.invalid"),
        (Some(format!("Bearer {good} {good}")), "api_keys.invalid"),
        (Some("Bearer café".to_owned()), "api_keys.invalid"),
        (Some("Bearer\tx".to_owned()), "api_keys.invalid"),
    ];
    for (path, _) in PATHS {
        for (authorization, code) in &cases {
            let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
            let reply = running.client.send("GET", path, &headers).await;
            assert_eq!(reply.status, 401, "{path} {authorization:?}");
            assert_eq!(reply.json(), json!({"error": {"code": code, "params": {}}}));
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(reply.header("cache-control"), "no-store");
            assert_eq!(reply.rate(), (0, 0, 60));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheme_may_be_of_any_case() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let key = stack.full_key().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let authorization = format!("{scheme} {key}");
        let reply = running.client.send("GET", "/v1/public/me", &[("authorization", &authorization)]).await;
        assert_eq!(reply.status, 200, "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_its_scopes_name_and_nothing_else() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    for held in Scope::ALL {
        let key = stack.key(&[held]).await;
        for (path, needed) in PATHS {
            let reply = running.client.get(&key, path).await;
            match needed {
                Some(scope) if scope != held => {
                    assert_eq!(reply.status, 403, "{path} with {held}");
                    assert_eq!(
                        reply.json(),
                        json!({"error": {"code": "api_keys.scope_missing", "params": {"scope": scope}}})
                    );
                    assert_eq!(reply.rate(), (60, 60, 60));
                }
                _ => assert!([200, 404].contains(&reply.status), "{path} with {held}: {}", reply.status),
            }
        }
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
    let expires_at = Some(tests::NOON.parse::<shared::timestamp::Timestamp>().unwrap().plus_millis(10_000));
    let scopes = Scope::ALL.into_iter().collect();
    let new = NewKey { user_id: tests::uuid(1).into(), name: None, tier: Tier::Free, scopes, expires_at };
    let (key, _) = stack.key_with(new).await;
    running.wait(9);
    assert_eq!(running.client.get(&key, "/v1/public/me").await.status, 200);
    running.wait(1);
    let reply = running.client.get(&key, "/v1/public/me").await;
    assert_eq!((reply.status, reply.rate()), (401, (0, 0, 50)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_gives_way_to_one_like_it() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let (old, record) = stack.key_of(tests::uuid(1).into(), &[Scope::OrdersRead]).await;
    let (new, rotated) = stack.admin.keys().rotate(record.key_id).await.unwrap();
    assert_eq!((rotated.user_id, &rotated.scopes, rotated.tier), (record.user_id, &record.scopes, record.tier));
    assert_eq!(running.client.get(&old, "/v1/public/orders").await.status, 401);
    assert_eq!(running.client.get(new.reveal(), "/v1/public/orders").await.status, 200);
    assert!(stack.admin.keys().rotate(record.key_id).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_key_creates_no_item() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let unknown = shared::keys::KeyText::from_bits([9; 32]);
    assert_eq!(running.client.get(unknown.reveal(), "/v1/public/me").await.status, 401);
    let scan = tests::dynamodb(&stack).scan().table_name("marketplace-keys").send().await.unwrap();
    assert_eq!(scan.items().len(), 0);
}
