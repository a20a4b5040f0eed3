//! Keys, scopes and the token bucket (specification 5.3, 5.4, 7.2 and 8.1 to 8.4).

use admin::keys::NewKey;
use api::auth::KeyText;
use common::scope::{Budget, Scope, Tier};
use futures_util::{StreamExt, stream};
use serde_json::json;
use tests::{HttpReply, PATHS, Target, item, new_key};

use super::manners::{assert_told, assert_untold};

#[tokio::test(flavor = "multi_thread")]
async fn no_key_or_another_scheme_is_missing_the_rest_is_invalid_and_no_budget_is_told() {
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
    for (path, _) in PATHS.iter() {
        for (authorization, code) in &cases {
            let headers: Vec<_> = authorization.iter().map(|value| ("authorization", value.as_str())).collect();
            let reply = target.client.send("GET", path, &headers).await;
            assert_eq!(reply.status, 401, "{path} {authorization:?}");
            assert_eq!(reply.json(), json!({"error": {"code": code, "params": {}}}));
            assert_eq!(reply.header("www-authenticate"), "Bearer");
            assert_eq!(reply.header("cache-control"), "no-store");
            target.assert_rate(&reply, 0, 0);
            assert_untold(&reply);
        }
    }
    for scheme in ["Bearer", "bearer", "BEARER"] {
        let authorization = format!("{scheme} {good}");
        let reply = target.client.send("GET", "/v1/public/me", &[("authorization", &authorization)]).await;
        assert_eq!(reply.status, 200, "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_opens_what_its_scopes_name_and_nothing_else() {
    let target = Target::new().await;
    for held in Scope::ALL {
        let key = target.key(&[held]).await;
        for (path, needed) in PATHS.iter() {
            let reply = target.client.get(&key, path).await;
            match needed {
                Some(scope) if *scope != held => {
                    assert_eq!(reply.status, 403, "{path} with {held}");
                    assert_eq!(
                        reply.json(),
                        json!({"error": {"code": "api_keys.scope_missing", "params": {"scope": scope}}})
                    );
                    target.assert_rate(&reply, Tier::Free.limit(), Tier::Free.limit());
                    assert_told(&reply, Budget::Scope(*scope));
                }
                _ => assert!([200, 404].contains(&reply.status), "{path} with {held}: {}", reply.status),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_refused_on_its_next_request_everywhere() {
    let target = Target::new().await;
    let instances = target.instances().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &Scope::ALL).await;
    let everywhere = || PATHS.iter().flat_map(|(path, _)| instances.iter().map(move |client| (path, client)));
    for (path, client) in everywhere() {
        assert_ne!(client.get(&key, path).await.status, 401, "{path}");
    }
    target.admin.keys().revoke(record.key_id).await.unwrap();
    for (path, client) in everywhere() {
        let reply = client.get(&key, path).await;
        assert_eq!(reply.status, 401, "{path}");
        assert_eq!(reply.json(), json!({"error": {"code": "api_keys.invalid", "params": {}}}));
        target.assert_rate(&reply, 0, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_with_its_expiry() {
    let target = Target::new().await;
    let expires_at = Some(target.now().plus_millis(15_000));
    let scopes = Scope::ALL.into_iter().collect();
    let new = NewKey { scopes, expires_at, ..new_key(target.uuid(1).into(), &[]) };
    let (key, _) = target.key_with(new).await;
    target.wait(9).await;
    assert_eq!(target.client.get(&key, "/v1/public/me").await.status, 200);
    target.wait(6).await;
    let reply = target.client.get(&key, "/v1/public/me").await;
    assert_eq!(reply.status, 401);
    target.assert_rate(&reply, 0, 0);
}

const PATH: &str = "/v1/public/marketplaces";
/// The budget of the keys that these tests use, in requests per minute.
const LIMIT: u32 = Tier::Free.limit();

/// Sends this many requests with a new key to two instances, some at a time. Returns the key and the answers. A request
/// that had to be repeated may have taken two tokens, so then everything begins again with another key.
async fn crowd(target: &Target, requests: u32) -> (String, Vec<HttpReply>) {
    let instances = target.instances().await;
    // If all came at once, a slow machine would answer some with 503.
    let concurrency = if target.is_shared() { 8 } else { 40 };
    for _ in 0..5 {
        let key = target.full_key().await;
        target.minute_with(40).await;
        let replies = stream::iter(0..requests).map(|n| instances[n as usize % 2].get(&key, PATH));
        let replies: Vec<_> = replies.buffer_unordered(concurrency).collect().await;
        if replies.iter().all(|reply| reply.repeats == 0) {
            return (key, replies);
        }
    }
    panic!("in each of five crowds some request was answered with 503");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_over_two_instances_is_admitted_exactly_up_to_the_limit_until_the_next_utc_minute() {
    let target = Target::new().await;
    // Not the whole minute is left.
    target.wait(7).await;
    let (key, replies) = crowd(&target, 2 * LIMIT).await;
    let mut remaining: Vec<u32> = replies.iter().filter(|r| r.status == 200).map(|r| r.rate().1).collect();
    remaining.sort_unstable();
    assert_eq!(remaining, (0..LIMIT).collect::<Vec<_>>());
    for refused in replies.iter().filter(|reply| reply.status != 200) {
        assert_eq!(refused.status, 429);
        target.assert_rate(refused, LIMIT, 0);
        let reset = refused.rate().2;
        assert_eq!((refused.header("retry-after"), refused.header("cache-control")), (&*reset.to_string(), "no-store"));
        let params = json!({"scope": "catalog:read", "limit": LIMIT, "retry_after": reset});
        assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
        assert_told(refused, Budget::Scope(Scope::CatalogRead));
    }
    let refused = replies.iter().find(|reply| reply.status == 429).unwrap();
    target.wait(refused.rate().2.into()).await;
    target.assert_rate(&target.client.get(&key, PATH).await, LIMIT, LIMIT - 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn scopes_have_budgets_of_their_own() {
    let target = Target::new().await;
    let key = target.full_key().await;
    target.minute_with(20).await;
    target.assert_rate(&target.client.get(&key, "/v1/public/catalog").await, LIMIT, LIMIT - 1);
    target.assert_rate(&target.client.get(&key, PATH).await, LIMIT, LIMIT - 2);
    for path in ["/v1/public/listings", "/v1/public/orders", "/v1/public/wallet/balance", "/v1/public/me"] {
        target.assert_rate(&target.client.get(&key, path).await, LIMIT, LIMIT - 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_but_403_takes_one_token() {
    let target = Target::new().await;
    let key = target.key(&[Scope::CatalogRead]).await;
    let own = &format!("/v1/public/catalog?kind={}", target.word());
    target.feed(&[item(&target.word(), "skin", None, 1)]).await;
    let authorization = format!("Bearer {key}");
    target.minute_with(20).await;
    let first = target.client.get(&key, own).await;
    let tag = first.header("etag").to_owned();
    let send = async |method, path, extra: &[(&str, &str)]| {
        let mut headers = vec![("authorization", authorization.as_str())];
        headers.extend_from_slice(extra);
        let reply = target.client.send(method, path, &headers).await;
        (reply.status, reply.rate().1)
    };
    assert_eq!(send("HEAD", own, &[]).await, (200, LIMIT - 2));
    assert_eq!(send("GET", own, &[("if-none-match", &tag)]).await, (304, LIMIT - 3));
    assert_eq!(send("GET", "/v1/public/catalog?page=0", &[]).await, (400, LIMIT - 4));
    assert_eq!(send("GET", "/v1/public/items/none", &[]).await, (404, LIMIT - 5));
    assert_eq!(send("GET", "/v1/public/listings", &[]).await, (403, LIMIT));
    assert_eq!(send("GET", "/v1/public/listings", &[]).await, (403, LIMIT));
    assert_eq!(send("GET", PATH, &[]).await, (200, LIMIT - 6));
    // The prices of a few variants take no token of their own.
    let item = &format!("/v1/public/items/{}?include=prices", target.word());
    assert_eq!(send("GET", item, &[]).await, (200, LIMIT - 7));
}
