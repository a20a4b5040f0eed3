//! Changing a key's tier and limit with `marketctl keys update` (specification 8.1).

use admin::keys::MAX_LIMIT;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tests::{Program, Target, marketctl};
use types::ids::KeyId;
use types::scope::{Scope, Tier};

const PATH: &str = "/v1/public/marketplaces";
const ME: &str = "/v1/public/me";
const FREE: u32 = Tier::Free.limit();
const PRO: u32 = Tier::Pro.limit();

/// Runs `marketctl keys update` with these options.
async fn update(target: &Target, key_id: KeyId, options: &[&str]) -> Program {
    let key_id = key_id.to_string();
    let arguments = ["--json", "keys", "update", &key_id].into_iter().chain(options.iter().copied());
    marketctl(&target.variables, &arguments.collect::<Vec<_>>(), "").await
}

/// Changes a key, and returns it as `marketctl` shows it afterwards.
async fn updated(target: &Target, key_id: KeyId, options: &[&str]) -> Value {
    let run = update(target, key_id, options).await;
    assert_eq!(run.code, 0, "{options:?}: {run:?}");
    run.json()
}

/// Asserts that a key's next request is counted against this limit, and shows this tier.
async fn assert_limit(target: &Target, key: &str, tier: Tier, limit: u32) {
    let reply = target.client.get(key, ME).await;
    let me = reply.json();
    assert_eq!((&me["tier"], &me["rate_limit_per_minute"]), (&json!(tier), &json!(limit)));
    assert_eq!(reply.rate().0, limit);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tier_holds_from_the_next_request_and_what_was_used_stays_used() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    target.minute_with(50).await;
    target.assert_rate(&target.client.get(&key, PATH).await, FREE, FREE - 1);

    let changed = updated(&target, record.key_id, &["--tier", "pro", "--preview"]).await;
    assert_eq!((&changed["tier"], &changed["rate_limit_per_minute"]), (&json!("pro"), &json!(PRO)));
    target.assert_rate(&target.client.get(&key, PATH).await, PRO, PRO - 2);
    assert_limit(&target, &key, Tier::Pro, PRO).await;
    let requests = stream::iter(0..FREE).map(|_| target.client.get(&key, PATH));
    let replies: Vec<_> = requests.buffer_unordered(8).collect().await;
    assert!(replies.iter().all(|reply| reply.status == 200));

    updated(&target, record.key_id, &["--tier", "free"]).await;
    let refused = target.client.get(&key, PATH).await;
    assert_eq!((refused.status, &refused.json()["error"]["params"]["limit"]), (429, &json!(FREE)));
    target.assert_rate(&refused, FREE, 0);
    assert_limit(&target, &key, Tier::Free, FREE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_its_own_outlasts_a_change_of_tier_and_a_rotation() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    updated(&target, record.key_id, &["--limit", "7"]).await;
    assert_limit(&target, &key, Tier::Free, 7).await;
    updated(&target, record.key_id, &["--tier", "pro", "--preview"]).await;
    assert_limit(&target, &key, Tier::Pro, 7).await;

    let old = record.key_id.to_string();
    let rotated = marketctl(&target.variables, &["--json", "keys", "rotate", &old], "").await.json();
    let key = rotated["api_key"].as_str().unwrap();
    assert_limit(&target, key, Tier::Pro, 7).await;
    let key_id = rotated["key_id"].as_str().unwrap().parse().unwrap();
    updated(&target, key_id, &["--follow-tier"]).await;
    assert_limit(&target, key, Tier::Pro, PRO).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_of_zero_refuses_every_request() {
    let target = Target::new().await;
    let (key, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!(target.client.get(&key, PATH).await.status, 200);
    updated(&target, record.key_id, &["--limit", "0"]).await;
    for (path, scope) in [(PATH, "catalog:read"), (ME, "me")] {
        let refused = target.client.get(&key, path).await;
        assert_eq!(refused.status, 429, "{path}");
        target.assert_rate(&refused, 0, 0);
        assert_eq!(refused.header("ratelimit-policy"), format!("\"{scope}\";q=0;w=60"));
        let params = json!({"scope": scope, "limit": 0, "retry_after": refused.rate().2});
        assert_eq!(refused.json(), json!({"error": {"code": "rate_limits.exceeded", "params": params}}));
    }
    updated(&target, record.key_id, &["--follow-tier"]).await;
    target.get_until(&key, PATH, |reply| reply.status == 200).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_refused_or_wrong_usage_changes_nothing() {
    let target = Target::new().await;
    let user = target.uuid(1).into();
    let (_, record) = target.key_of(user, &[Scope::CatalogRead]).await;
    let above = (MAX_LIMIT + 1).to_string();
    for (options, error) in [
        (["--limit", above.as_str()], "limit: must be at most 60,000"),
        (["--name", ""], "name: must have 1 to 128 bytes"),
        (["--tier", "business"], "the tier business is coming soon"),
    ] {
        let refused = update(&target, record.key_id, &options).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        let document: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!(document["error"], error, "{options:?}");
    }
    for options in ["", "--preview", "--limit 1 --follow-tier", "--limit many", "--tier gold"] {
        let wrong = update(&target, record.key_id, &options.split_whitespace().collect::<Vec<_>>()).await;
        assert_eq!(wrong.code, 2, "{options}: {wrong:?}");
    }
    assert_eq!(target.admin.keys().list(user).await.unwrap().readable, [record]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_or_unknown_is_not_changed() {
    let target = Target::new().await;
    let (_, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    target.admin.keys().revoke(record.key_id).await.unwrap();
    let unknown = KeyId::from(target.uuid(2));
    for (key_id, error) in [
        (record.key_id, format!("key {} is revoked or expired; create a new one instead", record.key_id)),
        (unknown, format!("no key has the id {unknown}")),
    ] {
        let refused = update(&target, key_id, &["--follow-tier"]).await;
        assert_eq!(refused.code, 1, "{refused:?}");
        let document: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!(document["error"], error);
    }
}
