//! The program `local`, as scripts use it.

use std::collections::HashMap;
use std::process::Stdio;

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::join_all;
use local::environment::Variables;
use platform::aws::{Environment, Patience};
use serde_json::{Value, json};
use tests::{Client, FeedQueue, binary, listing, local};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

const OWN_AWS: [&str; 2] = ["--aws-listen", "127.0.0.1:0"];

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_market_is_kept_in_a_folder_and_made_only_once() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--data", folder.path().to_str().unwrap()];
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (mut child, ready) = local(&[&OWN_AWS[..], &data].concat()).await;
        let names: Vec<&str> = ready.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["api_key", "aws_endpoint_url", "base_url", "env", "user_id", "version"]);
        let client = Client::new(ready["base_url"].as_str().unwrap());
        let key = ready["api_key"].as_str().unwrap().to_owned();
        let get = async |path: &str| client.get(&key, path).await.json();
        assert_eq!(get("/v1/public/me").await["user_id"], ready["user_id"]);
        assert!(get("/v1/public/catalog").await["total"].as_u64().unwrap() >= 2_000);
        assert_eq!(get("/v1/public/listings").await["total"], 20_000);
        assert_eq!(get("/v1/public/orders").await["total"], 300);
        assert_eq!(get("/v1/public/marketplaces").await.as_array().unwrap().len(), 5);
        assert_ne!(get("/v1/public/wallet/balance").await["available_usd"], "0.00");
        keys.push(key);
        child.kill().await.unwrap();
    }
    assert_ne!(keys[0], keys[1], "each start makes a new key");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_aws_side_alone_serves_a_second_process() {
    let (_aws, ready) = local(&[&OWN_AWS[..], &["--aws-only", "--empty"]].concat()).await;
    assert_eq!((&ready["base_url"], &ready["api_key"], &ready["user_id"]), (&Value::Null, &Value::Null, &Value::Null));
    let endpoint = ready["aws_endpoint_url"].as_str().unwrap();
    assert_eq!(ready["env"]["AWS_ENDPOINT_URL"], endpoint);
    for name in
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "KEYS_TABLE", "MARKET_TABLE", "FEED_QUEUE_URL"]
    {
        assert!(ready["env"][name].is_string(), "{name}");
    }
    let (_functions, second) =
        local(&["--aws-endpoint", endpoint, "--clock-offset-s", "-30", "--store-latency-ms", "1"]).await;
    assert_eq!((&second["api_key"], &second["user_id"]), (&Value::Null, &Value::Null));
    let client = Client::new(second["base_url"].as_str().unwrap());
    let reply = client.send("GET", "/v1/public/me", &[]).await;
    assert_eq!((reply.status, reply.json()["error"]["code"].clone()), (401, json!("api_keys.missing")));
}

#[tokio::test(flavor = "multi_thread")]
async fn contradicting_arguments_are_wrong_usage() {
    let pairs: [&[&str]; 4] = [
        &["--demo", "--empty"],
        &["--data", "x", "--memory"],
        &["--aws-only", "--aws-endpoint", "http://x"],
        &["--aws-limits", "--aws-endpoint", "http://x"],
    ];
    for arguments in pairs {
        let mut program = Command::new(binary("local"));
        program.args(["--listen", "127.0.0.1:0"]).args(OWN_AWS).args(arguments).kill_on_drop(true);
        let output = tokio::time::timeout(std::time::Duration::from_secs(20), program.output()).await.unwrap().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_in_the_feed_are_applied_before_the_process_ends() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&OWN_AWS[..], &["--data", folder.path().to_str().unwrap(), "--empty"]].concat();
    let (mut child, ready) = local(&arguments).await;
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let messages: Vec<_> = (1..=500).map(|n| listing(n, "1.00", "2026-11-20T10:00:00Z", 1).to_string()).collect();
    let queue = FeedQueue::from_variables(&variables);
    queue.send(&messages).await;
    assert!(queue.backlog.count().await.unwrap() > 0, "there is something to drain");
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().await.unwrap().success());
    assert_eq!(child.wait().await.unwrap().code(), Some(0));

    let (_child, ready) = local(&arguments).await;
    let create = ["--json", "keys", "create", "--user", &tests::uuid(1).to_string(), "--scope", "listings:read"];
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let key = tests::marketctl(&variables, &create, "").await.json();
    let client = Client::new(ready["base_url"].as_str().unwrap());
    let listings = client.get(key["api_key"].as_str().unwrap(), "/v1/public/listings").await.json();
    assert_eq!(listings["total"], 500);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_the_limits_of_aws_it_prints_what_dynamodb_refuses() {
    let mut program = Command::new(binary("local"));
    program.args(OWN_AWS).args(["--aws-only", "--empty", "--json", "--aws-limits"]);
    let mut child = program.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let ready = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap().unwrap();
    let ready: Value = serde_json::from_str(&ready).unwrap();
    let variables = Variables::new(ready["aws_endpoint_url"].as_str().unwrap());
    let client = Environment::read(&|name| variables.get(name)).unwrap().dynamodb(Patience::Request);
    // Each costs about 300 of the 1,000 units that the partition has per second. Together they leave it in debt.
    let put = |sk: usize| {
        let s = AttributeValue::S;
        let row = [("pk", s("big#1".to_owned())), ("sk", s(sk.to_string())), ("text", s("x".repeat(300_000)))];
        let row: HashMap<String, AttributeValue> = row.map(|(name, value)| (name.to_owned(), value)).into();
        client.put_item().table_name("marketplace-market").set_item(Some(row)).send()
    };
    join_all((0..12).map(put)).await;
    let _ = put(12).await;
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let expected = "PutItem in marketplace-market big: over the write units of the partition";
    while !lines.next_line().await.unwrap().expect("a line about the refusal").contains(expected) {}
}
