//! What a function does under the Lambda Runtime API if a variable is missing, if it panics, or if an event cannot be
//! read.

use std::process::Stdio;

use local::environment::Variables;
use serde_json::{Value, json};
use tests::{RuntimeApi, Stack, binary};

fn event(route: &str, path: &str, query: &str, key: &str) -> Value {
    RuntimeApi::event(route, path, query, &json!({"authorization": format!("Bearer {key}"), "accept": "*/*"}))
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
