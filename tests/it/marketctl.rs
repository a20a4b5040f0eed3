//! The operator's command line.

use local::environment::Variables;
use serde_json::{Value, json};
use shared::aws::{Environment, Patience};
use tests::{Stack, item, listing, marketctl, marketplace, uuid};

const USER: &str = "6f9619ff-8b86-d011-b42d-00c04fc964ff";

fn variables(stack: &Stack) -> Variables {
    Variables::at(&stack.aws.endpoint_url)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_created_listed_rotated_and_revoked() {
    let stack = Stack::new().await;
    let running = stack.instance().await;
    let variables = variables(&stack);
    let run = async |arguments: &[&str]| marketctl(&variables, arguments, "").await;

    let created = run(&[
        "--json",
        "keys",
        "create",
        "--user",
        USER,
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
    let mut expected = vec![
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
    expected.sort_unstable();
    assert_eq!(
        {
            let mut sorted = fields;
            sorted.sort_unstable();
            sorted
        },
        expected
    );
    assert_eq!(
        (&key["scopes"], &key["tier"], &key["status"]),
        (&json!(["catalog:read", "wallet:read"]), &json!("free"), &json!("active"))
    );
    let text = key["api_key"].as_str().unwrap();
    assert_eq!(running.client.get(text, "/v1/public/marketplaces").await.status, 200);

    let listed = run(&["--json", "keys", "list", "--user", USER]).await;
    assert_eq!(listed.code, 0);
    assert_eq!(listed.json().as_array().unwrap().len(), 1);
    assert_eq!((&listed.json()[0]["key_id"], &listed.json()[0]["api_key"]), (&key["key_id"], &Value::Null));
    assert_eq!(listed.json()[0]["last_used_at"], tests::NOON);
    assert!(!run(&["keys", "list", "--user", USER]).await.stdout.contains(text));

    let rotated = run(&["--json", "keys", "rotate", key["key_id"].as_str().unwrap()]).await.json();
    assert_eq!(running.client.get(text, "/v1/public/me").await.status, 401);
    let text = rotated["api_key"].as_str().unwrap();
    assert_eq!(running.client.get(text, "/v1/public/me").await.status, 200);
    let revoked = run(&["--json", "keys", "revoke", rotated["key_id"].as_str().unwrap()]).await;
    assert_eq!((revoked.code, &revoked.json()["status"]), (0, &json!("revoked")));
    assert_eq!(running.client.get(text, "/v1/public/me").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_and_what_is_wrong_usage_have_codes_of_their_own() {
    let stack = Stack::new().await;
    let variables = variables(&stack);
    let unknown = uuid(1).to_string();
    for (arguments, code) in [
        (vec!["keys", "create", "--user", USER], 2),
        (vec!["keys", "create", "--user", "me", "--scope", "catalog:read"], 2),
        (vec!["keys", "create", "--user", USER, "--scope", "catalog:write"], 2),
        (vec!["keys", "create", "--user", USER, "--scope", "catalog:read", "--tier", "gold"], 2),
        (vec!["keys", "create", "--user", USER, "--scope", "catalog:read", "--tier", "pro"], 1),
        (vec!["keys", "create", "--user", USER, "--scope", "catalog:read", "--expires-at", "2001-01-01T00:00:00Z"], 1),
        (vec!["keys", "revoke", &unknown], 1),
        (vec!["keys", "rotate", &unknown], 1),
        (vec!["frobnicate"], 2),
        (vec![], 2),
        (vec!["import", "/nowhere/at/all"], 1),
        (vec!["keys", "create", "--user", USER, "--scope", "catalog:read", "--tier", "pro", "--preview"], 0),
    ] {
        let run = marketctl(&variables, &arguments, "").await;
        assert_eq!(run.code, code, "{arguments:?}: {run:?}");
        assert_eq!(run.stderr.is_empty(), code == 0, "{arguments:?}: {run:?}");
    }
    let refused = marketctl(&variables, &["--json", "keys", "revoke", &unknown], "").await;
    assert!(serde_json::from_str::<Value>(&refused.stderr).is_ok(), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn import_keeps_good_lines_and_reports_bad_ones() {
    let stack = Stack::new().await;
    let mut bad = listing(2, "1.00", "2026-11-20T10:00:00Z", 1);
    bad["price_usd"] = json!("1.234");
    let lines = [
        item("ak-47-redline", "skin", Some("AK-47 | Redline"), 1).to_string(),
        listing(1, "1.00", "2026-11-20T10:00:00Z", 1).to_string(),
        bad.to_string(),
        "not json".to_owned(),
        marketplace("one", true, 1).to_string(),
        item("ak-47-redline", "skin", Some("Older"), 1).to_string(),
        json!({"type": "balance", "account_id": uuid(1), "available_usd": "1", "store_usd": "1", "trade_usd": "1",
            "withdrawable_usd": "0", "held_usd": "0", "escrow_usd": "0", "version": 1})
        .to_string(),
        json!({"type": "event", "id": uuid(1), "event": "order.refunded", "account_id": uuid(1),
            "created_at": "2026-11-20T10:00:00Z", "data": {"order_id": uuid(1), "total_usd": "1"}})
        .to_string(),
    ];
    let run = marketctl(&variables(&stack), &["--json", "import", "-"], &lines.join("\n")).await;
    assert_eq!(run.code, 1, "{run:?}");
    let report = run.json();
    assert_eq!((&report["applied"], &report["unchanged"]), (&json!(3), &json!(1)));
    let refused: Vec<_> = report["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["line"].as_u64().unwrap(), r["field"].as_str().unwrap()))
        .collect();
    assert_eq!(refused, [(3, "price_usd"), (4, ""), (7, "available_usd"), (8, "type")]);
    assert_eq!(report["refused"][3]["reason"], "events go through the feed queue: use `marketctl feed send`");
    let again = marketctl(&variables(&stack), &["--json", "import", "-"], &lines[..2].join("\n")).await;
    assert_eq!((again.code, again.json()), (0, json!({"applied": 0, "unchanged": 2, "refused": []})));
    let running = stack.instance().await;
    let key = stack.full_key().await;
    assert_eq!(running.client.get(&key, "/v1/public/listings").await.json()["total"], 1);
    assert_eq!(running.client.get(&key, "/v1/public/items/ak-47-redline").await.json()["name"], "AK-47 | Redline");
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_send_takes_everything_that_sqs_takes_and_names_the_rest_by_line() {
    const SQS_TAKES: usize = 262_144;
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    let good = listing(1, "1.00", "2026-11-20T10:00:00Z", 1).to_string();
    let bad = ["nonsense".to_owned(), " ".to_owned(), "x".repeat(201 * 1_024), "y".repeat(SQS_TAKES)];
    let lines = [&[good.clone(), String::new()], &bad[..], &["z".repeat(SQS_TAKES + 1), good.clone()]].concat();
    let run = marketctl(&variables(&stack), &["--json", "feed", "send", "-"], &lines.join("\n")).await;
    assert_eq!(run.code, 1, "{run:?}");
    let refused = json!([
        {"line": 2, "reason": "must not be an empty line"},
        {"line": 7, "reason": "must have at most 262144 bytes"},
    ]);
    assert_eq!(run.json(), json!({"sent": 6, "refused": refused}));
    assert_eq!(serde_json::from_str::<Value>(&run.stderr).unwrap()["refused"], refused);
    assert_eq!(queue.backlog.count().await, Ok(6));

    let _workers = stack.workers().await;
    queue.emptied().await;
    let mut bodies: Vec<_> = queue.take_dead_letters().await.into_iter().map(|letter| letter.body).collect();
    bodies.sort();
    let mut expected = bad.to_vec();
    expected.sort();
    assert!(bodies == expected, "{} dead letters", bodies.len());
    let running = stack.instance().await;
    assert_eq!(running.client.get(&stack.full_key().await, "/v1/public/listings").await.json()["total"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_send_says_when_there_is_no_queue_and_sends_long_files() {
    let stack = Stack::new().await;
    let lines = vec!["{}"; 10_000].join("\n");
    let run = marketctl(&variables(&stack), &["feed", "send", "-"], &lines).await;
    assert_eq!((run.code, run.stdout.trim()), (0, "10000 sent."), "{run:?}");
    assert_eq!(stack.feed_queue().backlog.count().await, Ok(10_000));
    let run = marketctl(&variables(&stack), &["--stack", "other", "feed", "send", "-"], &lines).await;
    assert_eq!((run.code, run.stdout.trim()), (1, "Nothing was sent."), "{run:?}");
    assert!(run.stderr.contains("nothing was sent: queue other-feed does not exist"), "{run:?}");
    let run = marketctl(&variables(&stack), &["feed", "send"], "").await;
    assert_eq!(run.code, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn check_names_what_is_missing() {
    let stack = Stack::new().await;
    let good = marketctl(&variables(&stack), &["--json", "check"], "").await;
    assert_eq!((good.code, &good.json()["ok"]), (0, &json!(true)), "{good:?}");
    let checks = good.json()["checks"].as_array().unwrap().clone();
    assert_eq!(checks.len(), 4 + 6 + 1);
    assert_eq!(checks[0], json!({"kind": "table", "name": "marketplace-keys", "ok": true, "error": null}));
    let other = marketctl(&variables(&stack), &["--stack", "other", "--json", "check"], "").await;
    assert_eq!((other.code, &other.json()["ok"]), (1, &json!(false)));
    for check in other.json()["checks"].as_array().unwrap() {
        assert!(check["error"].as_str().unwrap().contains(check["name"].as_str().unwrap()), "{check}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn check_looks_into_the_keyring_and_at_indexes() {
    let stack = Stack::new().await;
    let variables = variables(&stack);
    let error_of = async |name: &str, stack: &str| {
        let report = marketctl(&variables, &["--stack", stack, "--json", "check"], "").await.json();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["name"] == name).unwrap()["error"].clone()
    };
    assert_eq!(error_of("marketplace-webhooks", "marketplace").await, Value::Null);
    assert_eq!(error_of("marketplace-keyring", "marketplace").await, Value::Null);

    let secrets = Environment::read(&|name| variables.get(name)).unwrap().secrets(Patience::Bulk);
    let put = secrets.put_secret_value().secret_id("marketplace-keyring");
    put.secret_string(r#"{"current":"a","keys":[{"id":"a","key":"c2VjcmV0"}]}"#).send().await.unwrap();
    let error = error_of("marketplace-keyring", "marketplace").await;
    let expected = "secret marketplace-keyring holds no keyring (a key must be the base64 of 32 bytes)";
    assert!(error.as_str().unwrap().starts_with(expected), "{error}");

    tests::table_without_indexes(&stack, "bare-webhooks").await;
    let error = error_of("bare-webhooks", "bare").await;
    assert!(error.as_str().unwrap().starts_with("table bare-webhooks lacks its index deliveries"), "{error}");
}
