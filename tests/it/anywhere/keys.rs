//! Keys, managed with `marketctl`.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tests::{Target, marketctl};
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
