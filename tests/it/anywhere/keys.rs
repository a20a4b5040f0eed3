//! Keys, managed with `marketctl`.
//!
//! Changing a key's tier and limit with `marketctl keys update` (specification 8.1).

use std::collections::BTreeSet;

use admin::keys::MAX_LIMIT;
use auth::{KeyStatus, KeyText};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tests::{Program, Target, marketctl};
use types::ids::KeyId;
use types::scope::{Scope, Tier};
use types::timestamp::Timestamp;

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_listed_rotated_and_revoked() {
    let target = Target::new().await;
    let user = &target.uuid(1).to_string();
    let run = async |arguments: &[&str]| marketctl(&target.variables, arguments, "").await;

    let created = run(&[
        "--json",
        "keys",
        "create",
        "--user",
        user,
        "--name",
        "bot",
        "--scope",
        "wallet:read",
        "--scope",
        "catalog:read",
    ])
    .await;
    assert_eq!(created.code, 0, "{created:?}");
    let key = created.json();
    let fields: Vec<&str> = key.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "api_key",
        "created_at",
        "expires_at",
        "key_id",
        "last4",
        "last_used_at",
        "name",
        "rate_limit_per_minute",
        "scopes",
        "status",
        "tier",
        "user_id",
    ];
    assert_eq!(fields.into_iter().collect::<BTreeSet<_>>(), expected.into());
    assert_eq!(
        (&key["scopes"], &key["tier"], &key["status"]),
        (&json!(["catalog:read", "wallet:read"]), &json!("free"), &json!("active"))
    );
    let text = key["api_key"].as_str().unwrap();
    assert_eq!(target.client.get(text, "/v1/public/marketplaces").await.status, 200);

    let listed = run(&["--json", "keys", "list", "--user", user]).await;
    assert_eq!(listed.code, 0);
    assert_eq!(listed.json().as_array().unwrap().len(), 1);
    assert_eq!((&listed.json()[0]["key_id"], &listed.json()[0]["api_key"]), (&key["key_id"], &Value::Null));
    let last_used_at: Timestamp = listed.json()[0]["last_used_at"].as_str().unwrap().parse().unwrap();
    let age = target.now().millis() - last_used_at.millis();
    assert!(age == 0 || target.is_shared() && (0..60_000).contains(&age), "{age}");
    assert!(!run(&["keys", "list", "--user", user]).await.stdout.contains(text));

    let rotated = run(&["--json", "keys", "rotate", key["key_id"].as_str().unwrap()]).await.json();
    assert_eq!(target.client.get(text, "/v1/public/me").await.status, 401);
    let text = rotated["api_key"].as_str().unwrap();
    assert_eq!(target.client.get(text, "/v1/public/me").await.status, 200);
    let revoked = run(&["--json", "keys", "revoke", rotated["key_id"].as_str().unwrap()]).await;
    assert_eq!((revoked.code, &revoked.json()["status"]), (0, &json!("revoked")));
    assert_eq!(target.client.get(text, "/v1/public/me").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_replaced_with_an_overlap_once() {
    let target = Target::new().await;
    let (_, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    let old_id = record.key_id.to_string();
    let rotate = async |overlap: &str| {
        marketctl(&target.variables, &["--json", "keys", "rotate", &old_id, "--overlap", overlap], "").await
    };
    let refused = rotate("8d").await;
    let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((refused.code, &failure["error"]), (1, &json!("overlap: must be at most 7 days")));

    let rotated = rotate("7d").await;
    assert_eq!((rotated.code, &rotated.json()["in_doubt"]), (0, &json!(false)), "{rotated:?}");
    let rotated = rotated.json();
    let old = target.admin.keys().get(record.key_id).await.unwrap();
    assert_eq!((old.status, json!(old.expires_at)), (KeyStatus::Active, rotated["old_expires_at"].clone()));
    assert!(old.expires_at.is_some());

    let refused = rotate("0s").await;
    let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
    let successor = rotated["key_id"].as_str().unwrap();
    assert_eq!(failure["error"], json!(format!("key {old_id} was already replaced by key {successor}")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_with_its_use() {
    let target = Target::new().await;
    let (text, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    assert_eq!(target.client.get(&text, "/v1/public/marketplaces").await.status, 200);
    let key_id = record.key_id.to_string();
    let shown = marketctl(&target.variables, &["--json", "keys", "show", &key_id], "").await;
    assert_eq!(shown.code, 0, "{shown:?}");
    let key = shown.json();
    assert_eq!((&key["key_id"], &key["last4"]), (&json!(key_id), &json!(record.last4)));
    let days = key["usage"]["days"].as_array().unwrap();
    let of_catalog = days.iter().filter(|day| day["scope"] == "catalog:read");
    assert_eq!(of_catalog.map(|day| day["requests"].as_u64().unwrap()).sum::<u64>(), 1, "{days:?}");
    let for_people = marketctl(&target.variables, &["keys", "show", &key_id], "").await;
    assert!(for_people.stdout.contains("ALL SCOPES") && !for_people.stdout.contains(&text), "{for_people:?}");
    let unknown = target.uuid(2).to_string();
    assert_eq!(marketctl(&target.variables, &["keys", "show", &unknown], "").await.code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaked_text_is_identified_and_never_printed() {
    let target = Target::new().await;
    let (text, record) = target.key_of(target.uuid(1).into(), &[Scope::CatalogRead]).await;
    let identify = async |text: &str, json: bool| {
        let arguments = ["keys", "identify", "-", "--json"];
        let run = marketctl(&target.variables, &arguments[..if json { 4 } else { 3 }], text).await;
        assert!(!format!("{run:?}").contains(text.trim()), "the text is printed");
        run
    };
    let found = identify(&format!("{text}\n"), true).await;
    assert_eq!((found.code, found.json()), (0, json!(record)), "{}", found.stderr);
    let for_people = identify(&text, false).await.stdout;
    assert!(for_people.contains(&record.key_id.to_string()) && for_people.contains(&record.last4), "{for_people}");
    target.admin.keys().revoke(record.key_id).await.unwrap();
    assert_eq!(identify(&text, true).await.json()["status"], "revoked");

    let last = if text.ends_with('0') { "1" } else { "0" };
    let unknown = KeyText::from_bits(*b"a text that this stack never had");
    for (text, reason) in [
        (unknown.reveal(), "unknown"),
        (format!("{}{last}", &text[..text.len() - 1]).as_str(), "wrong_checksum"),
        (&text[..text.len() - 1], "not_a_key"),
    ] {
        let refused = identify(text, true).await;
        let failure: Value = serde_json::from_str(&refused.stderr).unwrap();
        assert_eq!((refused.code, &failure["reason"]), (1, &json!(reason)));
    }
    for arguments in [vec!["keys", "identify", &text], vec!["keys", "identify", "-", &text], vec!["keys", "identify"]] {
        let wrong = marketctl(&target.variables, &arguments, "").await;
        assert_eq!(wrong.code, 2, "{}", arguments.len());
        assert!(!format!("{wrong:?}").contains(&text), "the text is printed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_and_wrong_usage_have_different_exit_codes() {
    let target = Target::new().await;
    let (user, unknown) = (&target.uuid(1).to_string(), target.uuid(2).to_string());
    for (arguments, code) in [
        (vec!["keys", "create", "--user", user], 2),
        (vec!["keys", "create", "--user", "me", "--scope", "catalog:read"], 2),
        (vec!["keys", "create", "--user", user, "--scope", "catalog:write"], 2),
        (vec!["keys", "create", "--user", user, "--scope", "catalog:read", "--tier", "gold"], 2),
        (vec!["keys", "create", "--user", user, "--scope", "catalog:read", "--tier", "pro"], 1),
        (vec!["keys", "create", "--user", user, "--scope", "catalog:read", "--expires-at", "2001-01-01T00:00:00Z"], 1),
        (vec!["keys", "revoke", &unknown], 1),
        (vec!["keys", "rotate", &unknown], 1),
        (vec!["frobnicate"], 2),
        (vec![], 2),
        (vec!["import", "/nowhere/at/all"], 1),
        (vec!["keys", "create", "--user", user, "--scope", "catalog:read", "--tier", "pro", "--preview"], 0),
    ] {
        let run = marketctl(&target.variables, &arguments, "").await;
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        assert_eq!(run.stderr.is_empty(), code == 0, "{arguments:?}: {run:?}");
    }
    let refused = marketctl(&target.variables, &["--json", "keys", "revoke", &unknown], "").await;
    assert!(serde_json::from_str::<Value>(&refused.stderr).is_ok(), "{refused:?}");
}

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
