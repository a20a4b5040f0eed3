//! The lines of batches and runs. The sender's own binary connects only to public addresses, so an instance within the
//! test stands in for it.

use std::slice;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage, SqsMessageAttribute};
use common::clock::{Clock, SystemClock};
use common::rotation::Secrets;
use common::runtime::Worker;
use local::environment::Variables;
use serde_json::{Value, json};
use tests::webhooks_cli::OWNER;
use tests::{Answer, Fault, Listener, Proxy, Receiver, RuntimeApi, Stack, hand, item, listing, message, sale, uuid};
use webhooks::delivery::{Lane, Token};
use webhooks::{ATTEMPTS, delivery_id};

use super::{assert_metrics, timeless_metrics};

fn batch(bodies: &[String]) -> SqsEvent {
    let mut event = SqsEvent::default();
    event.records = bodies.iter().map(|body| message(Lane::First, body)).collect();
    event
}

/// Fans an event out to one endpoint. Returns the message for its first attempt.
async fn first_message(stack: &Stack) -> SqsMessage {
    let user = uuid(5).into();
    let (endpoint, _) = stack.endpoint(user, "https://hooks.example.com/").await;
    stack.fan_out(&[sale(1, user)]).await;
    stack.next_message(delivery_id(uuid(1).into(), endpoint.id)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_the_feed_counts_what_became_of_its_messages() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
    let mut ingest = RuntimeApi::run("ingest", &variables).await;
    let good = item("ak", "skin", Some("AK"), 1).to_string();
    let bad = json!({"type": "item", "id": "hush", "kind": 7, "version": 1}).to_string();
    ingest.invoke(json!(batch(&[good.clone(), bad, good]))).await;
    let line = ingest.lines().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "ingest", &[]), &json!({"Changed": 1, "Refused": 1, "Unchanged": 1}));

    proxy.set_fault(Fault::Error("ThrottlingException"));
    let mut away = batch(&[item("m4", "skin", None, 1).to_string(), item("m5", "skin", None, 1).to_string()]);
    let mut postponed = SqsMessageAttribute::default();
    postponed.string_value = Some("11".to_owned());
    away.records[1].message_attributes.insert("postponed".to_owned(), postponed);
    ingest.invoke(json!(away)).await;
    let line = ingest.lines().pop().unwrap();
    let counted = json!({"Postponed": 2, "PostponedTimes": [1, 12]});
    assert_metrics(&timeless_metrics(&line, "ingest", &["StoreRetries"]), &counted);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_counts_outcomes_and_tells_how_long_events_waited_for_their_first_attempt() {
    let stack = Stack::new().await;
    let receiver = Receiver::start(|number, _| Answer::Status(if number == 1 { 204 } else { 500 })).await;
    let user = uuid(5).into();
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    stack.prove(&endpoint).await;
    let (sender, listener) = (stack.sender(), Listener::start());
    stack.fan_out(&[sale(1, user)]).await;
    let id = delivery_id(uuid(1).into(), endpoint.id);
    stack.clock.advance(Duration::from_secs(7));
    let first = stack.next_message(id).await;
    hand(&sender, slice::from_ref(&first)).await;
    // The same message again makes no attempt.
    hand(&sender, &[first, message(Lane::First, "unreadable")]).await;
    let [delivered, void] = &listener.take()[..] else { panic!("not two lines") };
    assert_metrics(&timeless_metrics(delivered, "webhook", &[]), &json!({"Delivered": 1, "EventToPost": [7_000]}));
    assert_metrics(&timeless_metrics(void, "webhook", &[]), &json!({"Defects": 1}));
    assert_eq!(void.json["void"], 1);

    stack.fan_out(&[sale(2, user), sale(3, user)]).await;
    let ids = [2, 3].map(|event| delivery_id(uuid(event).into(), endpoint.id));
    for attempt in 1..=ATTEMPTS {
        let message = stack.next_message(ids[0]).await;
        hand(&sender, &[message]).await;
        let [line] = &listener.take()[..] else { panic!("not one line") };
        let counted = match attempt {
            1 => json!({"Unacknowledged": 1, "EventToPost": [0]}),
            ATTEMPTS => json!({"Unacknowledged": 1, "Exhausted": 1, "SwitchedOff": 1}),
            _ => json!({"Unacknowledged": 1}),
        };
        assert_metrics(&timeless_metrics(line, "webhook", &[]), &counted);
    }
    let message = stack.next_message(ids[1]).await;
    hand(&sender, &[message]).await;
    assert_metrics(&timeless_metrics(&listener.take()[0], "webhook", &[]), &json!({"Held": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_whose_store_is_away_counts_what_it_puts_off() {
    let stack = Stack::new().await;
    let message = first_message(&stack).await;
    let (sender, proxy) = stack.sender_behind_proxy().await;
    let listener = Listener::start();
    proxy.plan(
        |operation| if operation.starts_with("Send") { Fault::None } else { Fault::Error("ThrottlingException") },
    );
    hand(&sender, &[message]).await;
    let line = listener.take().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "webhook", &[]), &json!({"Postponed": 1, "StoreRetries": 2}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_waits_for_a_key_of_the_keyring_counts_as_a_failure_too() {
    let stack = Stack::new().await;
    let message = first_message(&stack).await;
    let (admin, endpoint) = (stack.webhooks(), stack.endpoint_of(uuid(5).into()).await);
    stack.prove(&endpoint).await;
    let lost = Secrets::first("lost:AAAA".to_owned(), endpoint.created_at);
    let put = admin.store.put_secrets(endpoint.account_id, endpoint.id, &lost, endpoint.secret_version);
    assert!(put.await.unwrap());
    let (sender, listener) = (stack.sender(), Listener::start());
    hand(&sender, &[message]).await;
    let line = listener.take().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "webhook", &[]), &json!({"Postponed": 1, "Failed": 1}));
    assert!(
        line.json["postponed_because"].as_str().unwrap().ends_with("the keyring lacks the key that sealed the secret")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_the_store_takes_for_invalid_are_counted() {
    let stack = Stack::new().await;
    let message = first_message(&stack).await;
    let (sender, proxy) = stack.sender_behind_proxy().await;
    let listener = Listener::start();
    proxy.plan(|operation| match operation {
        "PutItem" | "UpdateItem" => Fault::Error("ValidationException"),
        _ => Fault::None,
    });
    hand(&sender, &[message]).await;
    let line = listener.take().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "webhook", &[]), &json!({"Defects": 1}));

    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
    let mut ingest = RuntimeApi::run("ingest", &variables).await;
    ingest.invoke(json!(batch(&[item("ak", "skin", Some("AK"), 1).to_string()]))).await;
    proxy.set_fault(Fault::Error("ValidationException"));
    ingest.invoke(json!(batch(&[item("m4", "skin", None, 1).to_string()]))).await;
    let line = ingest.lines().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "ingest", &[]), &json!({"Defects": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_of_the_accounts_settings_are_counted_if_the_service_could_not_do_them() {
    let stack = Stack::new().await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let variables = Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
    let mut account = RuntimeApi::run("account", &variables).await;
    let list = json!({"version": 1, "user_id": OWNER, "command": "keys.list", "parameters": {}});
    let key = uuid(9).to_string();
    let unknown = json!({"version": 1, "user_id": OWNER, "command": "keys.show", "parameters": {"key_id": key}});
    for (event, code) in [(&list, Value::Null), (&unknown, json!("not_found"))] {
        assert_eq!(account.invoke(event.clone()).await["error"]["code"], code);
        assert_metrics(&timeless_metrics(&account.lines().pop().unwrap(), "account", &[]), &json!({}));
    }
    proxy.set_fault(Fault::Error("ProvisionedThroughputExceededException"));
    let answer = account.invoke(list).await;
    assert_eq!(answer["error"]["code"], "unavailable");
    assert!(!answer.to_string().contains("Throughput"), "{answer}");
    let line = account.lines().pop().unwrap();
    assert_metrics(&timeless_metrics(&line, "account", &["StoreRetries"]), &json!({"CommandErrors": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_counts_the_drains_that_it_calls_and_those_that_were_lost() {
    let stack = Stack::new().await;
    let user = uuid(5).into();
    let (store, now) = (stack.webhooks().store, SystemClock::new().now());
    let mut sweep = RuntimeApi::run("sweep", &Variables::new(&stack.aws.endpoint_url)).await;
    let mut counted = async |expected: Value| {
        assert_eq!(sweep.invoke(json!({"source": "aws.scheduler"})).await, Value::Null);
        let line = sweep.lines().pop().unwrap();
        assert_eq!(line.json["failed"], 0);
        assert_metrics(&timeless_metrics(&line, "sweep", &[]), &expected);
    };
    store.wake_drain_by(user, now, now).await.unwrap();
    counted(json!({"Called": 1})).await;
    assert!(store.wake_drain(user, Token::random(), now, now).await.unwrap());
    counted(json!({"Overdue": 1})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_begins_no_further_page_counts_what_it_left_to_the_next_one() {
    let stack = Stack::new().await;
    let (store, now) = (stack.webhooks().store, stack.now());
    // One more than the first pages of all shards hold.
    for user in 0..=800 {
        store.wake_drain_by(uuid(user).into(), now, now).await.unwrap();
    }
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let (sweep, clock, listener) = (stack.sweep_at(&proxy.url), stack.clock.clone(), Listener::start());
    let mut has_begun = false;
    proxy.plan(move |operation| {
        if operation == "Query" && !std::mem::replace(&mut has_begun, true) {
            clock.advance(Duration::from_secs(31));
        }
        Fault::None
    });
    let mut called = json!(0);
    for is_cut_short in [true, false] {
        sweep.work(Value::Null).await.unwrap();
        let [line] = &listener.take()[..] else { panic!("not one line") };
        let counted = timeless_metrics(line, "sweep", &[]);
        assert_eq!(counted.contains_key("Unfinished"), is_cut_short, "{counted:?}");
        called = counted["Called"].clone();
    }
    assert_eq!(called, 801, "of the second run");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_tells_how_far_each_base_was_behind_even_where_it_fails() {
    let stack = Stack::new().await;
    let listings: Vec<Value> = (0..3).map(|number| listing(number, "1.00", "2026-11-20T10:00:00Z", 1)).collect();
    stack.feed(&listings).await;
    let proxy = Proxy::start(&stack.aws.endpoint_url).await;
    let mut compact = RuntimeApi::run(
        "compact",
        &Variables::new(&stack.aws.endpoint_url).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url),
    )
    .await;
    compact.ready().await;
    proxy.plan(|operation| if operation == "PutItem" { Fault::Error("AccessDeniedException") } else { Fault::None });
    let mut tells_memory = false;
    for (works, behind, message) in
        [(false, 3, "compaction failed"), (true, 3, "wrote a new base"), (true, 0, "the base is fresh enough")]
    {
        if works {
            proxy.set_fault(Fault::None);
        }
        let before = compact.lines().len();
        compact.invoke(json!({})).await;
        let lines = compact.lines().split_off(before);
        let mut streams = lines.iter().filter(|line| line.json.get("stream").is_some()).collect::<Vec<_>>();
        // The streams take turns at being the first.
        streams.sort_by_key(|line| line.json["stream"].to_string());
        let [catalog, listings] = streams[..] else { panic!("{}", compact.log()) };
        let mut metrics = [catalog, listings].map(|line| timeless_metrics(line, "compact", &[]));
        let told = metrics.each_mut().map(|metrics| metrics.remove("MemoryUsed").is_some());
        tells_memory |= told.contains(&true);
        assert_metrics(&metrics[0], &json!({"CatalogLogBehind": 0}));
        assert_metrics(&metrics[1], &json!({"ListingsLogBehind": behind}));
        assert_eq!(listings.json["message"], message);
    }
    assert!(tells_memory, "{}", compact.log());
}
