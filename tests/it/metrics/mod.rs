//! The metrics that functions publish: one line per request, batch or run, read as CloudWatch reads it.
//! The tests here read what the functions' binaries log for requests.

mod workers;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use api::routes::ROUTES;
use common::scope::Scope;
use local::environment::Variables;
use local::runtime_api::http_event;
use serde_json::{Value, json};
use tests::{Fault, LogLine, Proxy, RuntimeApi, Stack, Template, minute_with, set_limit};

/// Returns the metrics of a line without the ones in `times`, whose values depend on time. Asserts that these are
/// there and not negative.
fn timeless_metrics<'a>(line: &'a LogLine, function: &str, times: &[&'a str]) -> BTreeMap<&'a str, &'a Value> {
    let mut metrics = line.metrics(function);
    for name in times {
        let value = metrics.remove(name).unwrap_or_else(|| panic!("no {name}: {}", line.json));
        let samples = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        assert!(samples.iter().all(|sample| sample.as_f64().unwrap() >= 0.0), "{name}: {value}");
    }
    metrics
}

#[track_caller]
fn assert_metrics(found: &BTreeMap<&str, &Value>, expected: &Value) {
    assert_eq!(json!(found), *expected);
}

const ME: &str = "/v1/public/me";

fn get(path: &str, key: &str) -> Value {
    http_event(path, path, "", &json!({"authorization": format!("Bearer {key}")}))
}

/// Returns the lines of requests only: on a busy machine the instance may also have logged that it is not ready yet.
fn requests(running: &RuntimeApi) -> Vec<LogLine> {
    let mut lines = running.lines();
    lines.retain(|line| line.json["message"] == "request");
    lines
}

/// How long requests that are alike wait for a line.
const WINDOW: Duration = Duration::from_secs(1);

/// Sends a request, if need be after a second, so that it does not share its line. Returns the status and the line.
async fn ask(running: &mut RuntimeApi, event: Value) -> (u64, LogLine) {
    let before = requests(running).len();
    if before > 0 {
        tokio::time::sleep(WINDOW).await;
    }
    let answer = running.invoke(event).await;
    let mut lines = requests(running).split_off(before);
    let line = lines.pop().expect("a line");
    assert!(lines.is_empty(), "more than one line");
    let status = answer["statusCode"].as_u64().unwrap();
    assert_eq!(line.json["status"], status);
    (status, line)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_refusals_and_calls_of_the_store_are_counted() {
    let stack = Stack::new().await;
    let (key, record) = stack.key_of(tests::uuid(5).into(), &Scope::ALL).await;
    set_limit(&stack, &key, 2).await;
    let mut me = RuntimeApi::run("me", &Variables::new(&stack.aws.endpoint_url)).await;
    let invented = api::auth::KeyText::from_bits([9; 32]);
    minute_with(20).await;
    // All but the first 429, and the second 401 of the invented key, come from memory, without a call.
    let sent = [(&*key, 200), ("no-key", 401), (&*key, 200), (&*key, 429), (&*key, 429), (&*key, 429)];
    for (key, status) in sent.into_iter().chain([(invented.reveal(), 401); 2]) {
        assert_eq!(me.invoke(get(ME, key)).await["statusCode"], status);
    }
    tokio::time::sleep(WINDOW).await;
    me.invoke(get(ME, "no-key")).await;
    let lines = requests(&me);
    let mut told = BTreeMap::<u64, [u64; 3]>::new();
    for line in &lines {
        let number = |name: &str| line.json[name].as_u64().unwrap_or_default();
        let status = number("status");
        let expected = if status == 429 { json!({"RateLimited": number("requests")}) } else { json!({}) };
        assert_metrics(&line.metrics("me"), &expected);
        assert_eq!(line.json["key_id"].is_string(), matches!(status, 200 | 429), "{}", line.json);
        for (sum, name) in told.entry(status).or_default().iter_mut().zip(["requests", "store_calls", "RateLimited"]) {
            *sum += number(name);
        }
    }
    assert_eq!(told, BTreeMap::from([(200, [2, 2, 0]), (401, [4, 1, 0]), (429, [3, 1, 3])]), "{}", me.log());

    let begins = |line: &LogLine| line.json["init_ms"].is_u64() && line.json["max_memory_mb"].is_u64();
    assert!(begins(&lines[0]), "the first line tells of the init phase");
    assert!(lines[1..].iter().all(|line| line.json["init_ms"].is_null()), "{}", me.log());
    let (line, log) = (&lines[0].json, me.log());
    let expected = json!({
        "level": "INFO", "message": "request", "request_id": "gateway-request-1", "requests": 1, "method": "GET",
        "route": format!("ANY {ME}"), "status": 200, "key_id": record.key_id,
        "lambda_request_id": "invocation-1", "trace_id": "1-5bef4de7-ad49b0e87f6ef6c87fc2e700",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&line[name], value, "{name}");
    }
    let document = lines.iter().find(|line| line.json["status"] == 429).unwrap();
    let at: common::timestamp::Timestamp = document.json["timestamp"].as_str().unwrap().parse().unwrap();
    assert!((at.millis() - document.json["_aws"]["Timestamp"].as_i64().unwrap()).abs() < 1_000);
    assert!(!log.contains(&key[3..]) && !log.contains("no-key"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_are_alike_share_lines_which_name_each_of_them() {
    let stack = Stack::new().await;
    let (key, record) = stack.key_of(tests::uuid(5).into(), &Scope::ALL).await;
    set_limit(&stack, &key, 100_000).await;
    let mut me = RuntimeApi::run("me", &Variables::new(&stack.aws.endpoint_url)).await;
    let mut posted = get(ME, &key);
    posted["requestContext"]["http"]["method"] = json!("POST");
    let kinds = [(get(ME, &key), 200), (get(ME, "no-key"), 401), (posted, 405)];
    let mut sent = BTreeMap::new();
    for (number, (event, status)) in kinds.iter().cycle().take(375).enumerate() {
        let (id, mut event) = (format!("id-{number}"), event.clone());
        event["requestContext"]["requestId"] = json!(id);
        assert_eq!(me.invoke(event).await["statusCode"], *status);
        sent.insert(id, *status);
    }
    // Any later request brings along what still waits.
    tokio::time::sleep(WINDOW).await;
    me.invoke(http_event(ME, ME, "", &json!({}))).await;
    let (lines, mut told) = (requests(&me), BTreeMap::new());
    for LogLine { json: line } in &lines {
        let ids: Vec<&str> = line["request_id"].as_str().unwrap().split(' ').collect();
        let latencies = line["latency_ms"].as_array().map_or(1, Vec::len);
        assert_eq!((ids.len(), json!(ids.len())), (latencies, line["requests"].clone()), "{line}");
        let (key_id, calls) = if line["status"] == 200 { (json!(record.key_id), ids.len()) } else { (Value::Null, 0) };
        assert_eq!((&line["key_id"], &line["store_calls"]), (&key_id, &json!(calls)), "{line}");
        for id in ids.into_iter().filter(|id| id.starts_with("id-")) {
            assert_eq!(told.insert(id.to_owned(), line["status"].as_u64().unwrap()), None, "{id} is told twice");
        }
    }
    assert_eq!(told, sent);
    assert!(lines.len() < 75, "{}", me.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_from_a_replica_tell_its_age_and_the_memory() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    for route in ROUTES.iter().filter(|route| Template::read().functions[route.function].has_replica()) {
        let (path, function) = (route.path, route.function);
        let mut running = RuntimeApi::run(function, &variables).await;
        let (status, line) = ask(&mut running, get(path, &key)).await;
        assert_eq!(status, 200);
        assert_metrics(&timeless_metrics(&line, function, &["MemoryUsed", "ReplicaLag"]), &json!({}));
        assert!(line.json["ReplicaLag"].as_f64().unwrap() < 2_000.0, "{}", line.json);
        // Counts the key write, and a Query of the log if a second has passed, but no calls of loading.
        assert!((1..=2).contains(&line.json["store_calls"].as_u64().unwrap()), "{}", line.json);
        let (status, line) = ask(&mut running, get(path, "no-key")).await;
        assert_eq!(status, 401);
        assert_metrics(&line.metrics(function), &json!({}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_instance_that_cannot_follow_its_log_tells_how_old_its_state_is() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    set_limit(&stack, &key, 100_000).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
    let mut catalog = RuntimeApi::run("catalog", &variables).await;
    catalog.ready().await;
    proxy.plan(|operation| if operation == "Query" { Fault::Error("ThrottlingException") } else { Fault::None });
    let begun = Instant::now();
    let line = loop {
        let (status, line) = ask(&mut catalog, get("/v1/public/catalog", &key)).await;
        if status != 200 {
            assert_eq!(status, 503);
            break line;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "it still answers from a state that is a minute old");
    };
    let metrics = timeless_metrics(&line, "catalog", &["StoreRetries"]);
    assert!(metrics["ReplicaLag"].as_f64().unwrap() >= 2_000.0, "{}", line.json);
    let mut malformed = get("/v1/public/catalog", &key);
    malformed["rawQueryString"] = json!("page=0");
    let (status, line) = ask(&mut catalog, malformed).await;
    assert_eq!((status, line.json.get("ReplicaLag")), (400, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_away_counts_as_our_error_with_every_retry() {
    let stack = Stack::new().await;
    let key = stack.full_key().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut me =
        RuntimeApi::run("me", &Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url))
            .await;
    me.ready().await;
    proxy.set_fault(Fault::Error("ThrottlingException"));
    let (status, line) = ask(&mut me, get(ME, &key)).await;
    assert_eq!((status, &line.json["level"]), (503, &json!("ERROR")));
    assert!(line.json["cause"].as_str().unwrap().contains("ThrottlingException"), "{}", line.json);
    assert_metrics(&line.metrics("me"), &json!({"StoreRetries": 2}));
    assert_eq!(line.json["store_calls"], 1);

    // A successful retry is counted as well, and the next request starts at zero.
    let mut calls = 0;
    proxy.plan(move |_| {
        calls += 1;
        if calls == 1 { Fault::Error("ThrottlingException") } else { Fault::None }
    });
    let (status, line) = ask(&mut me, get(ME, &key)).await;
    assert_eq!(status, 200);
    assert_metrics(&line.metrics("me"), &json!({"StoreRetries": 1}));
    let (_, line) = ask(&mut me, get(ME, &key)).await;
    assert_metrics(&line.metrics("me"), &json!({}));
}
