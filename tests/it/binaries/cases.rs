//! The cases of the functions without a route: each gets a real event, and what it has done is checked.

use std::sync::Arc;

use account::CommandName;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use feed::ApplyOutcome;
use local::environment::Variables;
use market::Log;
use platform::resources::Queue;
use pretraffic::{STACK_VARIABLE, VERSIONS_VARIABLE};
use serde_json::{Value, json};
use tests::webhooks_cli::{OWNER, text};
use tests::{
    Fault, Proxy, Receiver, RuntimeApi, SignatureValidity, Stack, Template, assert_base_is_exact, base_bucket, item,
    listing, message, redirect_library, sale, uuid,
};
use types::clock::SystemClock;
use types::records::PublicListing;
use webhooks::delivery::{Lane, Status};
use webhooks::delivery_id;

use crate::pretraffic::{FUNCTIONS, REPORT, Scene, WAITS};

/// A public address that leads nowhere. The sender's connections to it are led to this machine.
const NOWHERE: &str = "192.0.1.1";

fn batch(message: SqsMessage) -> Value {
    let mut event = SqsEvent::default();
    event.records = vec![message];
    json!(event)
}

pub(super) async fn ingest_applies_a_message() -> RuntimeApi {
    let stack = Stack::new().await;
    let mut ingest = RuntimeApi::run("ingest", &Variables::new(&stack.aws.endpoint_url)).await;
    let item = item("ak", "skin", Some("AK"), 1);
    let answer = ingest.invoke(batch(message(Lane::First, &item.to_string()))).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));
    assert_eq!(stack.feed_outcomes(&[item]).await, [ApplyOutcome::Unchanged]);
    ingest
}

pub(super) async fn compact_writes_a_base() -> RuntimeApi {
    let stack = Stack::new().await;
    let listings: Vec<Value> = (0..3).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    let endpoint = &stack.aws.endpoint_url;
    let mut compact = RuntimeApi::run("compact", &Variables::new(endpoint)).await;
    assert_eq!(compact.invoke(json!({})).await, Value::Null);
    let log = Log::<PublicListing>::new(stack.admin.stores().market);
    let records = assert_base_is_exact(&log, base_bucket(endpoint), Arc::new(SystemClock::new())).await;
    assert_eq!(records.len(), 3);
    compact
}

pub(super) async fn webhook_posts_to_a_receiver() -> RuntimeApi {
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

pub(super) async fn sweep_sends_an_overdue_delivery_again() -> RuntimeApi {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    let (endpoint, _) = stack.endpoint(user, "https://hooks.example.com/").await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    stack.store_carried(delivery_id(uuid(1).into(), endpoint.id)).await;
    stack.queue(Queue::WebhooksFirst).await.purge().await;
    let mut sweep = RuntimeApi::run("sweep", &Variables::new(&stack.aws.endpoint_url)).await;
    assert_eq!(sweep.invoke(json!({"source": "aws.scheduler"})).await, Value::Null);
    assert_eq!(stack.queue(Queue::WebhooksSlow).await.count().await, 1);
    sweep
}

pub(super) async fn account_makes_a_key() -> RuntimeApi {
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

pub(super) async fn pretraffic_tries_every_version() -> RuntimeApi {
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
    assert_eq!(calls.iter().filter(|call| call.operation == "Invoke").count(), FUNCTIONS);
    pretraffic
}
