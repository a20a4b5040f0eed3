//! Commands of `marketctl` whose tests need a stack of their own.

use local::environment::Variables;
use platform::aws::{Environment, Patience};
use serde_json::{Value, json};
use tests::{Stack, listing, marketctl};

fn variables(stack: &Stack) -> Variables {
    Variables::new(&stack.aws.endpoint_url)
}

#[tokio::test(flavor = "multi_thread")]
async fn feed_send_takes_everything_that_sqs_takes_and_names_the_rest_by_line() {
    const SQS_MAX_BYTES: usize = 262_144;
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    let good = listing(1, "1.00", "2026-11-20T10:00:00Z", 1).to_string();
    let bad = ["nonsense".to_owned(), " ".to_owned(), "x".repeat(201 * 1_024), "y".repeat(SQS_MAX_BYTES)];
    let lines = [&[good.clone(), String::new()], &bad[..], &["z".repeat(SQS_MAX_BYTES + 1), good.clone()]].concat();
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
    queue.wait_until_empty().await;
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

    let secrets = secrets::client(&Environment::read(&|name| variables.get(name)).unwrap(), Patience::Bulk);
    let put = secrets.put_secret_value().secret_id("marketplace-keyring");
    put.secret_string(r#"{"current":"a","keys":[{"id":"a","key":"c2VjcmV0"}]}"#).send().await.unwrap();
    let error = error_of("marketplace-keyring", "marketplace").await;
    let expected = "secret marketplace-keyring holds no keyring (a key must be the base64 of 32 bytes)";
    assert!(error.as_str().unwrap().starts_with(expected), "{error}");

    tests::table_without_indexes(&stack, "bare-webhooks").await;
    let error = error_of("bare-webhooks", "bare").await;
    assert!(error.as_str().unwrap().starts_with("table bare-webhooks lacks its index deliveries"), "{error}");
}
