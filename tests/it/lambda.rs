//! The functions' binaries under the Lambda Runtime API.

use std::process::Stdio;

use local::environment::Variables;
use serde_json::{Value, json};
use tests::{RuntimeApi, Stack, binary, item, minute_with, order, uuid};
use types::scope::Tier;

fn event(route: &str, path: &str, query: &str, key: &str) -> Value {
    RuntimeApi::event(route, path, query, &json!({"authorization": format!("Bearer {key}"), "accept": "*/*"}))
}

fn body(answer: &Value) -> Value {
    serde_json::from_str(answer["body"].as_str().unwrap_or_else(|| panic!("no body in {answer}"))).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn me_catalog_and_orders_answer_gateway_events() {
    let stack = Stack::new().await;
    let user = uuid(5);
    stack.feed(&[item("ak", "skin", Some("AK"), 1), order(user.into(), 1, "2026-11-20T10:00:00Z", 1)]).await;
    let (key, record) = stack.key_of(user.into(), &types::scope::Scope::ALL).await;
    let variables = Variables::new(&stack.aws.endpoint_url);

    let mut me = RuntimeApi::run("me", &variables).await;
    let path = "/v1/public/me";
    minute_with(20).await;
    let answer = me.invoke(event(path, path, "", &key)).await;
    assert_eq!((&answer["statusCode"], &answer["isBase64Encoded"]), (&json!(200), &json!(false)), "{answer}");
    assert_eq!(body(&answer)["api_key_id"], json!(record.key_id));
    assert_eq!(answer["headers"]["x-request-id"], "gateway-request-1");
    assert_eq!(answer["headers"]["x-ratelimit-remaining"], (Tier::Free.limit() - 1).to_string());
    let again = me.invoke(event(path, path, "", &key)).await;
    assert_eq!(again["headers"]["x-ratelimit-remaining"], (Tier::Free.limit() - 2).to_string());

    let mut catalog = RuntimeApi::run("catalog", &variables).await;
    let path = "/v1/public/catalog";
    let answer = catalog.invoke(event(path, path, "q=ak&page_size=10", &key)).await;
    assert_eq!((&answer["statusCode"], &body(&answer)["total"]), (&json!(200), &json!(1)), "{answer}");
    let refused = catalog.invoke(event(path, path, "page=0&page=1", &key)).await;
    assert_eq!(refused["statusCode"], 400);

    let mut orders = RuntimeApi::run("orders", &variables).await;
    let path = "/v1/public/orders";
    let answer = orders.invoke(event(path, path, "", &key)).await;
    assert_eq!((&answer["statusCode"], &body(&answer)["total"]), (&json!(200), &json!(1)), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_function_answers_and_logs_one_line_without_key_or_query() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let functions: std::collections::BTreeSet<_> = api::routes::ROUTES.iter().map(|route| route.function).collect();
    for function in functions {
        let mut running = RuntimeApi::run(function, &variables).await;
        let answer = running.invoke(event("/x", "/v1/openapi.json", "q=hush", &key)).await;
        assert!([200, 400].contains(&answer["statusCode"].as_u64().unwrap()), "{function}: {answer}");
        let (log, lines) = (running.log(), running.lines());
        let [line] = &lines[..] else { panic!("{function}: {log}") };
        assert!(line.metrics(function).contains_key("Latency"), "{log}");
        let line = &line.json;
        assert_eq!(
            (&line["request_id"], &line["method"], &line["status"]),
            (&json!("gateway-request-1"), &json!("GET"), &answer["statusCode"])
        );
        assert!(line["key_id"].is_string() || function == "openapi", "{log}");
        assert!(line["init_ms"].is_u64() && line["max_memory_mb"].as_u64() > Some(0), "{log}");
        assert!(!log.contains(&key[3..]) && !log.contains("hush"), "{log}");
    }
}

/// Builds a batch as Lambda hands it over.
fn batch(bodies: &[String]) -> Value {
    let records = bodies.iter().enumerate().map(|(index, body)| {
        json!({
            "messageId": format!("message-{index}"), "receiptHandle": "AQEB", "body": body, "md5OfBody": "x",
            "attributes": {"ApproximateReceiveCount": "1", "SentTimestamp": "1795176000000", "SenderId": "AIDA",
                "ApproximateFirstReceiveTimestamp": "1795176000001"},
            "messageAttributes": {}, "eventSource": "aws:sqs", "awsRegion": "us-east-1",
            "eventSourceARN": "arn:aws:sqs:us-east-1:123456789012:marketplace-feed",
        })
    });
    json!({"Records": records.collect::<Vec<_>>()})
}

#[tokio::test(flavor = "multi_thread")]
async fn ingest_takes_batches_and_logs_counts_and_refusals_without_bodies() {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let mut ingest = RuntimeApi::run("ingest", &variables).await;
    let good = item("ak", "skin", Some("AK"), 1).to_string();
    let bad = json!({"type": "item", "id": "hush", "kind": 7, "version": 1}).to_string();
    let answer = ingest.invoke(batch(&[good.clone(), bad.clone(), good])).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));
    let letters = stack.feed_queue().take_dead_letters().await;
    assert_eq!(letters.iter().map(|letter| &letter.body).collect::<Vec<_>>(), [&bad]);

    // A message is not acknowledged if its copy cannot be sent. Here the dead-letter queue is gone.
    let queue = stack.feed_queue();
    queue.client.delete_queue().queue_url(&queue.dead_url).send().await.unwrap();
    let answer = ingest.invoke(batch(&[item("m4", "skin", None, 1).to_string(), bad])).await;
    assert_eq!(answer, json!({"batchItemFailures": [{"itemIdentifier": "message-1"}]}));

    let log = ingest.log();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [refused, first, failed, second] = &lines[..] else { panic!("{log}") };
    assert_eq!((&refused["message_id"], &refused["field"]), (&json!("message-1"), &json!("kind")));
    assert_eq!((&failed["level"], &failed["message_id"]), (&json!("ERROR"), &json!("message-1")));
    let counts = |line: &Value| {
        ["received", "Changed", "Unchanged", "Refused", "Postponed", "Failed"].map(|name| line[name].as_u64().unwrap())
    };
    assert_eq!((counts(first), counts(second)), ([3, 1, 1, 1, 0, 0], [2, 1, 0, 0, 0, 1]));
    assert!(!log.contains("hush") && !log.contains("AK"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_variable_ends_the_function_with_a_line_that_names_it() {
    let output = tokio::process::Command::new(binary("catalog"))
        .env_clear()
        .env("AWS_REGION", "us-east-1")
        .env("AWS_ACCESS_KEY_ID", "x")
        .env("AWS_SECRET_ACCESS_KEY", "x")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .await
        .unwrap();
    assert!(!output.status.success());
    assert_eq!(output.stderr, b"");
    let log = String::from_utf8(output.stdout).unwrap();
    let line: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&line["level"], &line["error"]),
        (&json!("ERROR"), &json!("environment variables not set: MARKET_TABLE"))
    );
    assert_eq!(log.lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_its_invocation_and_leaves_one_line_without_what_it_was_about() {
    let stack = Stack::new().await;
    let mut faulty = RuntimeApi::run("faulty", &Variables::new(&stack.aws.endpoint_url)).await;
    let request = |path| event(path, path, "", "");
    let answer = faulty.invoke(request("/panic/hush")).await;
    assert!(answer["errorType"].is_string(), "{answer}");
    let answer = faulty.invoke(request("/fine")).await;
    assert!(answer["statusCode"].is_number(), "{answer}");
    let log = faulty.log();
    let line: Value = serde_json::from_str(&log).unwrap_or_else(|error| panic!("not one line ({error}): {log}"));
    assert_eq!((&line["level"], &line["message"]), (&json!("ERROR"), &json!("panicked")));
    assert_eq!(line["lambda_request_id"], "invocation-1");
    assert!(line["place"].as_str().unwrap().starts_with("tests/src/bin/faulty.rs:"), "{line}");
    assert!(!log.contains("hush"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_cannot_be_read_costs_its_invocation_and_shows_nothing_of_itself() {
    let stack = Stack::new().await;
    let (key, variables) = (stack.full_key().await, Variables::new(&stack.aws.endpoint_url));
    let path = "/v1/public/me";
    let mut me = RuntimeApi::run("me", &variables).await;
    // A header with a control character cannot be read.
    let refused = me.invoke(event(path, path, "", &format!("{key}\u{7f}"))).await;
    let error = refused["errorMessage"].as_str().unwrap();
    assert!(error.starts_with("the event cannot be read: line 1, column "), "{refused}");
    let lines = me.lines();
    let [line] = &lines[..] else { panic!("not one line: {}", me.log()) };
    assert_eq!((&line.json["level"], &line.json["message"]), (&json!("ERROR"), &json!("the event cannot be read")));
    assert_eq!(me.invoke(event(path, path, "", &key)).await["statusCode"], 200);
    assert!(!me.log().contains(&key[3..]) && !refused.to_string().contains(&key[3..]), "{}", me.log());
}
