//! Keys and scopes (specification 5.3, 5.4 and 7.2).

use std::time::Duration;

use admin::keys::NewKey;
use auth::KeyText;
use serde_json::json;
use tests::Target;
use types::scope::{Scope, Tier};

use crate::access::PATHS;

#[tokio::test(flavor = "multi_thread")]
async fn no_key_or_another_scheme_is_missing_and_the_rest_is_invalid() {
    let target = Target::new().await;
    let unknown = KeyText::from_bits([3; 32]);
    let good = target.full_key().await;
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
            let reply = target.client.send("GET", path, &headers).await;
            assert_eq!(reply.status, 401, "{path} {authorization:?}");
            assert_eq!(reply.json(), json!({"error": {"code": code, "params": {}}}));
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(reply.header("cache-control"), "no-store");
            target.assert_rate(&reply, 0, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_scheme_may_be_of_any_case() {
    let target = Target::new().await;
    let key = target.full_key().await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let authorization = format!("{scheme} {key}");
        let reply = target.client.send("GET", "/v1/public/me", &[("authorization", &authorization)]).await;
        assert_eq!(reply.status, 200, "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_its_scopes_name_and_nothing_else() {
    let target = Target::new().await;
    for held in Scope::ALL {
        let key = target.key(&[held]).await;
        for (path, needed) in PATHS {
            let reply = target.client.get(&key, path).await;
            match needed {
                Some(scope) if scope != held => {
                    assert_eq!(reply.status, 403, "{path} with {held}");
                    assert_eq!(
                        reply.json(),
                        json!({"error": {"code": "api_keys.scope_missing", "params": {"scope": scope}}})
                    );
                    target.assert_rate(&reply, Tier::Free.limit(), Tier::Free.limit());
                }
                _ => assert!([200, 404].contains(&reply.status), "{path} with {held}: {}", reply.status),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_on_its_next_request() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &Scope::ALL).await;
    for (path, _) in PATHS {
        assert_ne!(target.client.get(&key, path).await.status, 401);
    }
    target.admin.keys().revoke(record.key_id).await.unwrap();
    for (path, _) in PATHS {
        let reply = target.client.get(&key, path).await;
        assert_eq!(reply.status, 401, "{path}");
        assert_eq!(reply.json(), json!({"error": {"code": "api_keys.invalid", "params": {}}}));
        target.assert_rate(&reply, 0, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_key_is_refused() {
    let target = Target::new().await;
    let expires_at = Some(target.now().plus_millis(15_000));
    let scopes = Scope::ALL.into_iter().collect();
    let new = NewKey {
        user_id: target.uuid(1).into(),
        name: None,
        tier: Tier::Free,
        limit_override: None,
        scopes,
        expires_at,
    };
    let (key, _) = target.key_with(new).await;
    assert_eq!(target.client.get(&key, "/v1/public/me").await.status, 200);
    target.wait(15).await;
    assert_eq!(target.client.get(&key, "/v1/public/me").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_gives_way_to_one_like_it() {
    let target = Target::new().await;
    let (old, record) = target.key_of(target.uuid(1).into(), &[Scope::OrdersRead]).await;
    let new = target.admin.keys().rotate(record.key_id, Duration::ZERO).await.unwrap();
    let rotated = new.record;
    assert_eq!((rotated.user_id, &rotated.scopes, rotated.tier), (record.user_id, &record.scopes, record.tier));
    assert_eq!(target.client.get(&old, "/v1/public/orders").await.status, 401);
    assert_eq!(target.client.get(new.text.reveal(), "/v1/public/orders").await.status, 200);
    assert!(target.admin.keys().rotate(record.key_id, Duration::ZERO).await.is_err());
}
