//! The binary of every function does its work under the Lambda Runtime API. `infra/arm64/run` runs these tests on the
//! binaries for the architecture that is deployed by default.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use account::CommandName;
use api::routes::{ME, ROUTES};
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use common::clock::{Clock, SystemClock};
use common::records::PublicListing;
use common::resources::Queue;
use common::scope::{Scope, Tier};
use local::environment::Variables;
use local::runtime_api::http_event;
use pretraffic::{STACK_VARIABLE, VERSIONS_VARIABLE};
use serde_json::{Map, Value, json};
use tests::webhooks_cli::{OWNER, text};
use tests::{
    Administrator, AwsCall, Fault, PATHS, Proxy, Receiver, RuntimeApi, SignatureValidity, Stack, Template,
    assert_base_is_exact, base_bucket, item, listing, market, marketplace, minute_with, quote, redirect_library, sale,
    uuid,
};
use webhooks::delivery::Status;
use webhooks::delivery_id;

use crate::pretraffic::{REPORT, Scene, WAITS, version_count};

/// A public address that leads nowhere. The sender's connections to it are led to this machine.
const NOWHERE: &str = "192.0.1.1";

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_api_answer_as_in_process_and_log_a_line_without_key_or_query() {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    stack.feed(&market(user)).await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    feed_fresh_quote(&variables).await;
    let (key, record) = stack.key_of(user, &Scope::ALL).await;
    let in_process = stack.instance().await;
    in_process.clock.set_wall(SystemClock::new().now());
    for route in ROUTES {
        let function = route.function;
        let mut running = RuntimeApi::run(function, &variables).await;
        let keyed = PATHS.iter().map(|(path, _)| path.as_str());
        let parts = |asked: &'static str| asked.split_once('?').unwrap_or((asked, ""));
        let asked = keyed.chain([route.path]).find(|asked| route.matches(parts(asked).0).is_some()).unwrap();
        let (path, query) = parts(asked);
        let mut event = http_event(route.path, path, query, &json!({"authorization": format!("Bearer {key}")}));
        // Headers that nobody reads fail no request, whatever is in them.
        for (name, value) in [
            ("host", json!(in_process.instance.base_url.strip_prefix("http://"))),
            ("user-agent", json!("Bot ★ é")),
            ("x-delete", json!("\u{7f}")),
            ("x-line-end", json!("a\r\nb")),
            ("x-null", Value::Null),
            ("no name", json!("a")),
        ] {
            event["headers"][name] = value;
        }
        let parameters = route.matches(path).unwrap().into_iter();
        event["pathParameters"] =
            parameters.map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>().into();
        if route == ME {
            minute_with(20).await;
        }
        let answer = running.invoke(event.clone()).await;
        assert_eq!((&answer["statusCode"], &answer["isBase64Encoded"]), (&json!(200), &json!(false)), "{answer}");
        let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
        assert_eq!(body, in_process.client.get(&key, asked).await.json(), "{function}");
        let headers = &answer["headers"];
        assert_eq!(headers["x-request-id"], "gateway-request-1");
        if route == ME {
            assert_eq!(body["api_key_id"], json!(record.key_id));
            assert_eq!(headers["x-ratelimit-remaining"], (Tier::Free.limit() - 1).to_string());
        }
        event["rawQueryString"] = json!("q=hush&page=0&page=1");
        if route.budget.is_none() {
            // The answer is the same, so the two requests would share a line.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let refused = running.invoke(event).await;
        assert_eq!(refused["statusCode"], if route.budget.is_some() { 400 } else { 200 }, "{function}: {refused}");

        let (log, lines) = (running.log(), running.lines());
        let [first, second] = &lines[..] else { panic!("{function}: {log}") };
        for (line, answer) in [(first, &answer), (second, &refused)] {
            let line = &line.json;
            assert!(line["latency_ms"].is_number(), "{log}");
            let told = (&line["request_id"], &line["method"], &line["status"]);
            assert_eq!(told, (&json!("gateway-request-1"), &json!("GET"), &answer["statusCode"]));
            assert_eq!(line["key_id"].is_string(), route.budget.is_some(), "{log}");
        }
        assert!(first.json["init_ms"].is_u64() && first.json["max_memory_mb"].as_u64() > Some(0), "{log}");
        assert!(!log.contains(&key[3..]) && !log.contains("hush"), "{log}");
        tell_memory(function, &running);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_behind_queues_and_schedules_do_their_work() {
    for (name, _) in Template::read().functions.iter().filter(|(_, function)| !function.is_triggered_by("HttpApi")) {
        let case: Pin<Box<dyn Future<Output = RuntimeApi>>> = match name.as_str() {
            "ingest" => Box::pin(ingest_applies_what_it_can()),
            "compact" => Box::pin(compact_writes_a_base()),
            "webhook" => Box::pin(webhook_posts_to_a_receiver()),
            "sweep" => Box::pin(sweep_sends_an_overdue_delivery_again()),
            "account" => Box::pin(account_makes_a_key()),
            "pretraffic" => Box::pin(pretraffic_tries_every_version()),
            _ => panic!("{name} has no case"),
        };
        let running = case.await;
        tell_memory(name, &running);
    }
}

/// Feeds a quote that counts by the clock of the binaries, which is the machine's.
async fn feed_fresh_quote(variables: &Variables) {
    let clock = Arc::new(SystemClock::new());
    let now = clock.now().to_string();
    let messages = [marketplace("two", true, 1), quote(uuid(7), "two", &["5.00"], &now)];
    Administrator::new(variables, clock).feed(&messages).await;
}

/// Prints the memory of a binary, which `infra/arm64/run` reads.
fn tell_memory(function: &str, running: &RuntimeApi) {
    println!("peak memory of {function}: {} kB", running.peak_memory_kb());
}

fn batch(message: SqsMessage) -> Value {
    let mut event = SqsEvent::default();
    event.records = vec![message];
    json!(event)
}

/// Builds a batch as Lambda hands it over.
fn feed_batch(bodies: &[String]) -> Value {
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

/// `ingest` takes batches, and logs counts and refusals without bodies.
async fn ingest_applies_what_it_can() -> RuntimeApi {
    let stack = Stack::new().await;
    let variables = Variables::new(&stack.aws.endpoint_url);
    let mut ingest = RuntimeApi::run("ingest", &variables).await;
    let good = item("ak", "skin", Some("AK"), 1).to_string();
    let bad = json!({"type": "item", "id": "hush", "kind": 7, "version": 1}).to_string();
    let answer = ingest.invoke(feed_batch(&[good.clone(), bad.clone(), good])).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));
    let letters = stack.queue(Queue::FeedDead).take_all_letters().await;
    assert_eq!(letters.iter().map(|letter| &letter.body).collect::<Vec<_>>(), [&bad]);

    // A message is not acknowledged if its copy cannot be sent. Here the dead-letter queue is gone.
    let dead = stack.queue(Queue::FeedDead);
    dead.client.delete_queue().queue_url(&dead.url).send().await.unwrap();
    let answer = ingest.invoke(feed_batch(&[item("m4", "skin", None, 1).to_string(), bad])).await;
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
    ingest
}

async fn compact_writes_a_base() -> RuntimeApi {
    let stack = Stack::new().await;
    let listings: Vec<Value> = (0..3).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    let endpoint = &stack.aws.endpoint_url;
    let mut compact = RuntimeApi::run("compact", &Variables::new(endpoint)).await;
    assert_eq!(compact.invoke(json!({})).await, Value::Null);
    let records =
        assert_base_is_exact(&stack.log::<PublicListing>(), base_bucket(endpoint), Arc::new(SystemClock::new())).await;
    assert_eq!(records.len(), 3);
    compact
}

async fn webhook_posts_to_a_receiver() -> RuntimeApi {
    let (stack, receiver, folder) = (Stack::new().await, Receiver::answering(204).await, tempfile::tempdir().unwrap());
    let user = uuid(5).into();
    let (endpoint, secret) = stack.endpoint(user, &receiver.url.replace("127.0.0.1", NOWHERE)).await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    let id = delivery_id(uuid(1).into(), endpoint.id);
    let library = redirect_library(folder.path()).await;
    let variables = Variables::new(&stack.aws.endpoint_url).with("LD_PRELOAD", &library);
    let mut webhook = RuntimeApi::run("webhook", &variables).await;
    webhook.ready().await;
    // Without it, the delivery would leave this machine.
    assert!(webhook.has_loaded(&library), "{}", webhook.log());

    let answer = webhook.invoke(batch(stack.next_message(id).await)).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));
    let [post] = &receiver.received(1).await[..] else { panic!("not one delivery") };
    assert_eq!(post.signed_with(&secret), SignatureValidity { service: true, standard: true });
    stack.delivery_as(id, Status::Delivered).await;
    webhook
}

async fn sweep_sends_an_overdue_delivery_again() -> RuntimeApi {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    let (endpoint, _) = stack.endpoint(user, "https://hooks.example.com/").await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    stack.store_carried(delivery_id(uuid(1).into(), endpoint.id)).await;
    stack.queue(Queue::WebhooksFirst).purge().await;
    let mut sweep = RuntimeApi::run("sweep", &Variables::new(&stack.aws.endpoint_url)).await;
    assert_eq!(sweep.invoke(json!({"source": "aws.scheduler"})).await, Value::Null);
    assert_eq!(stack.queue(Queue::WebhooksSlow).count().await, 1);
    sweep
}

async fn account_makes_a_key() -> RuntimeApi {
    let stack = Stack::new().await;
    let mut account = RuntimeApi::run("account", &Variables::new(&stack.aws.endpoint_url)).await;
    let create = command(CommandName::KeysCreate, &json!({"scopes": ["catalog:read"]}));
    let made = account.invoke(create).await["result"]["key_id"].clone();
    let listed = account.invoke(command(CommandName::KeysList, &json!({}))).await["result"]["keys"].clone();
    assert_eq!((listed.as_array().unwrap().len(), text(&listed[0]["key_id"])), (1, text(&made)));
    account
}

fn command(command: CommandName, parameters: &Value) -> Value {
    json!({"version": 1, "user_id": OWNER, "command": command, "parameters": parameters})
}

async fn pretraffic_tries_every_version() -> RuntimeApi {
    let scene = Scene::new().await;
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    proxy.plan(|operation| match operation {
        "GetDeployment" => Fault::Answer(WAITS),
        REPORT => Fault::Answer("{}"),
        _ => Fault::None,
    });
    let given = &Template::read().functions["pretraffic"].properties["Environment"]["Variables"];
    let with = |variables: Variables, name: &str| variables.with(name, given[name].as_str().unwrap());
    let variables = with(with(Variables::new(&proxy.url), STACK_VARIABLE), VERSIONS_VARIABLE);
    let mut pretraffic = RuntimeApi::run("pretraffic", &variables).await;
    let event = json!({"DeploymentId": "d-1", "LifecycleEventHookExecutionId": "hook-1"});
    assert_eq!(pretraffic.invoke(event).await, Value::Null);
    let calls = proxy.take_calls();
    let report = calls.iter().find(|call| call.operation == REPORT).unwrap();
    let report: Value = serde_json::from_slice(&report.body).unwrap();
    assert_eq!(report["status"], "Succeeded", "{}", pretraffic.log());
    assert_eq!(AwsCall::count(&calls, "Invoke"), version_count());
    pretraffic
}
