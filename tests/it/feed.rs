//! Messages that go through the feed queue: what is applied, what is refused, what waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use aws_sdk_sqs::types::QueueAttributeName;
use feed::Message;
use local::workers::{EventSource, poll};
use platform::store::StoreError;
use runtime::{Error, Worker};
use serde_json::{Value, json};
use tests::{
    DeadLetter, Fault, NOON, Stack, balance, dynamodb, item, listing, marketplace, order, quote, sold_listing, tables,
    uuid,
};
use types::clock::Clock;
use types::timestamp::DAY_MILLIS;

const TEN_O_CLOCK: &str = "2026-11-20T10:00:00Z";

fn texts(messages: &[Value]) -> Vec<String> {
    messages.iter().map(Value::to_string).collect()
}

/// Messages of every type that goes into the tables.
fn good() -> Vec<Value> {
    vec![
        marketplace("one", true, 1),
        item("ak", "skin", Some("AK"), 1),
        quote(uuid(7), "one", &["5.00"], TEN_O_CLOCK),
        listing(1, "1.00", TEN_O_CLOCK, 1),
        listing(2, "2.00", TEN_O_CLOCK, 1),
        order(uuid(5).into(), 1, TEN_O_CLOCK, 1),
        balance(uuid(5).into(), "1.00", "2.00", "3.00", 1),
    ]
}

fn changed(mut message: Value, field: &str, value: Value) -> String {
    message[field] = value;
    message.to_string()
}

/// Messages that break one rule each, with the field in which they break it.
fn bad() -> Vec<(String, &'static str)> {
    let balance = |store, trade, available| balance(uuid(5).into(), store, trade, available, 9);
    let mut wear = item("ak", "skin", None, 9);
    wear["variants"][0]["wear"] = json!(7);
    vec![
        (balance("1.00", "2.00", "3.01").to_string(), "available_usd"),
        (balance("-1.00", "2.00", "1.00").to_string(), "store_usd"),
        (balance("1.00", "2.000", "3.00").to_string(), "trade_usd"),
        (changed(balance("1.00", "2.00", "3.00"), "bonus_usd", json!("1.00")), "bonus_usd"),
        (changed(balance("1.00", "2.00", "3.00"), "version", json!("nine")), "version"),
        (wear.to_string(), "variants[0].wear"),
        (changed(item("ak", "skin", None, 9), "name", json!("x".repeat(201 * 1_024))), "$"),
        (changed(item("ak", "skin", None, 9), "\u{1b}\0", json!(1)), "\u{fffd}\u{fffd}"),
        (" ".to_owned(), "$"),
        ("{}".to_owned(), "type"),
        ("not json".to_owned(), "$"),
        (quote(uuid(7), "one", &["0.01"], "2026-11-20T12:05:01Z").to_string(), "observed_at"),
        (order(uuid(6).into(), 1, TEN_O_CLOCK, 9).to_string(), "account_id"),
        (order(uuid(5).into(), 1, "2026-11-20T10:00:01Z", 9).to_string(), "created_at"),
    ]
}

/// Returns when DynamoDB removes an item of the catalog and a listing, in seconds.
async fn ends(stack: &Stack) -> Vec<Option<i64>> {
    let rows = dynamodb(stack).scan().table_name("marketplace-market").send().await.unwrap();
    let entities = rows.items().iter().filter(|row| row["pk"].as_s().unwrap().starts_with("entity#"));
    entities.map(|row| row.get("ttl").map(|ttl| ttl.as_n().unwrap().parse().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_is_removed_has_an_end() {
    let stack = Stack::new().await;
    stack.feed(&[item("ak", "skin", None, 1), listing(1, "1.00", TEN_O_CLOCK, 1)]).await;
    assert_eq!(ends(&stack).await, [None, None]);
    stack.feed(&[json!({"type": "item", "id": "ak", "removed": true, "version": 2}), sold_listing(1, 2)]).await;
    let after_90_days = stack.clock.now().plus_millis(90 * DAY_MILLIS).seconds();
    assert_eq!(ends(&stack).await, [Some(after_90_days); 2]);
    stack.feed(&[item("ak", "skin", None, 3), listing(1, "1.00", TEN_O_CLOCK, 3)]).await;
    assert_eq!(ends(&stack).await, [None, None], "what came back stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_messages_become_dead_letters_with_field_and_reason_and_the_others_are_applied() {
    let (stack, other) = (Stack::new().await, Stack::new().await);
    other.feed(&good()).await;
    let queue = stack.feed_queue();
    // The order is stored before the messages that contradict it.
    stack.feed(&good()[5..6]).await;
    let messages: Vec<String> =
        texts(&good()).into_iter().zip(bad().into_iter().map(|(text, _)| text)).flat_map(<[_; 2]>::from).collect();
    let rest = bad().into_iter().skip(good().len()).map(|(text, _)| text);
    queue.send(&messages.into_iter().chain(rest).collect::<Vec<_>>()).await;
    let _workers = stack.workers().await;
    queue.wait_until_empty().await;

    let mut expected = bad();
    expected.sort();
    let letters = queue.take_dead_letters().await;
    let found: Vec<_> = letters.iter().map(|letter| (letter.body.clone(), letter.attribute("field"))).collect();
    assert_eq!(found, expected);
    for letter in &letters {
        let reason = letter.attribute("reason");
        assert!(!reason.is_empty() && !reason.contains(char::is_control), "{reason:?}");
    }
    assert_eq!(tables(&stack).await, tables(&other).await);
    tests::assert_the_log_tells_all(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_or_older_message_changes_nothing() {
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    let _workers = stack.workers().await;
    let newest: Vec<Value> = good().into_iter().filter(|message| message["type"] != "quote").collect();
    let newest: Vec<Value> = newest
        .into_iter()
        .map(|mut message| {
            message["version"] = json!(7);
            message
        })
        .collect();
    queue.send(&texts(&newest)).await;
    queue.wait_until_empty().await;
    let before = tables(&stack).await;
    for _ in 0..3 {
        queue.send(&texts(&good())).await;
        queue.send(&texts(&newest)).await;
    }
    queue.wait_until_empty().await;
    let mut after = tables(&stack).await;
    assert!(after.len() == before.len() + 1, "the quote is new");
    after.retain(|key, _| !key.contains("quotes#"));
    assert_eq!(after, before);
    assert_eq!(queue.take_dead_letters().await, []);
}

/// Asserts that no message is lost while these operations fail. They work again after copies were sent back to the feed
/// queue three times.
async fn a_busy_store_is_waited_for(fault: Fault, operations: &'static [&'static str]) {
    let (stack, other) = (Stack::new().await, Stack::new().await);
    other.feed(&good()).await;
    let queue = stack.feed_queue();
    // A message that is received twice would become a dead letter, so nothing may rely on that.
    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:marketplace-feed-dead","maxReceiveCount":1}"#;
    queue.set_attribute(QueueAttributeName::RedrivePolicy, policy).await;
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    let mut postponed = 0;
    proxy.plan(move |operation| {
        postponed += usize::from(operation == "SendMessageBatch");
        if postponed < 3 && operations.contains(&operation) { fault.clone() } else { Fault::None }
    });
    queue.send(&texts(&good())).await;
    queue.wait_until_empty().await;
    assert_eq!(queue.take_dead_letters().await, []);
    assert_eq!(tables(&stack).await, tables(&other).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throttled_conflicting_or_hanging_store_costs_no_message() {
    let all = &["TransactWriteItems", "PutItem", "GetItem", "BatchGetItem"];
    tokio::join!(
        a_busy_store_is_waited_for(Fault::Error("ProvisionedThroughputExceededException"), all),
        a_busy_store_is_waited_for(Fault::Error("TransactionConflictException"), all),
        a_busy_store_is_waited_for(Fault::Refuse, all),
        a_busy_store_is_waited_for(Fault::Hang, all),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicting_transactions_are_tried_again_and_then_wait() {
    a_busy_store_is_waited_for(Fault::Cancelled("TransactionConflict"), &["TransactWriteItems"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_makes_a_dead_letter_at_once_and_costs_no_other_message() {
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    // A message that is received twice would stay hidden longer than the test waits.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "600").await;
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let broken = dynamodb(&stack).put_item().table_name("marketplace-accounts");
    let broken = broken.item("pk", text(&format!("order#{}", uuid(1)))).item("sk", text("authority"));
    broken.item("account_id", text("nobody")).send().await.unwrap();
    let _workers = stack.workers().await;
    queue.send(&texts(&good())).await;
    queue.wait_until_empty().await;
    let [letter] = &queue.take_dead_letters().await[..] else { panic!("not one letter") };
    assert_eq!(letter.body, order(uuid(5).into(), 1, TEN_O_CLOCK, 1).to_string());
    assert!(letter.attribute("defect").starts_with("unreadable row: "), "{letter:?}");
    let listings = stack.instance().await.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(listings.json()["total"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_store_takes_for_invalid_becomes_a_dead_letter_at_once_and_costs_no_other_message() {
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    // A message that is received twice would stay hidden longer than the test waits.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "600").await;
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    proxy.plan(|operation| if operation == "TransactWriteItems" { Fault::Invalid("poison") } else { Fault::None });
    let mut items: Vec<Value> = (0..9).map(|number| item(&format!("i{number}"), "skin", None, 1)).collect();
    items.insert(4, item("poison", "skin", None, 1));
    queue.send(&texts(&items)).await;
    queue.wait_until_empty().await;
    let [letter] = &queue.take_dead_letters().await[..] else { panic!("not one letter") };
    assert_eq!(letter.body, items[4].to_string());
    assert!(letter.attribute("defect").starts_with("invalid request: ValidationException"), "{letter:?}");
    let catalog = stack.instance().await.client.get(&stack.full_key().await, "/v1/public/catalog").await;
    assert_eq!(catalog.json()["total"], 9);
    tests::assert_the_log_tells_all(&stack).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_transaction_is_halved_until_only_the_invalid_message_fails() {
    let stack = Stack::new().await;
    let proxy = tests::Proxy::start(&stack.aws.endpoint_url).await;
    proxy.set_fault(Fault::Invalid("poison"));
    let variables = local::environment::Variables::new(&proxy.url);
    let through = local::seed::StackAdmin::new(&variables, stack.clock.clone()).unwrap();
    let now = stack.clock.now();
    let mut items: Vec<Value> = (0..63).map(|number| item(&format!("i{number}"), "skin", None, 1)).collect();
    items.insert(40, item("poison", "skin", None, 1));
    let messages = items.iter().map(|item| feed::parse(&item.to_string(), now).unwrap()).enumerate().collect();
    let outcomes = feed::Applier::new(through.stores()).apply(messages, now).await;
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert!(matches!(failed[..], [(40, Err(StoreError::InvalidRequest(_)))]), "{failed:?}");
    assert_eq!(outcomes.len(), 64);
    let calls = proxy.take_calls();
    let count = |operation: &str| calls.iter().filter(|call| call.operation == operation).count();
    assert_eq!(count("TransactWriteItems"), 13, "one for all of them, and two for each of six halvings");
    assert_eq!(count("GetItem"), 1, "the head is read once");
}

/// Data that was stored before versions and times of creation had bounds.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_stored_beyond_the_bounds_of_messages_is_still_read() {
    let (stack, now, late) = (Stack::new().await, NOON.parse().unwrap(), "9999-12-31T23:59:59.000Z");
    let parse = |message: &Value| feed::parse(&message.to_string(), now).unwrap();
    let user = uuid(5).into();
    let mut stored = [parse(&listing(1, "1.00", TEN_O_CLOCK, 1)), parse(&order(user, 1, TEN_O_CLOCK, 1))];
    for message in &mut stored {
        let (created_at, version) = match message {
            Message::Listing(listing, version) => (&mut listing.created_at, version),
            Message::Order(_, order, version) => (&mut order.created_at, version),
            other => panic!("{other:?}"),
        };
        (*created_at, *version) = (late.parse().unwrap(), u64::MAX);
    }
    let outcomes = feed::Applier::new(stack.admin.stores()).apply(stored.into_iter().enumerate().collect(), now).await;
    assert!(outcomes.iter().all(|(_, outcome)| matches!(outcome, Ok(feed::ApplyOutcome::Changed))), "{outcomes:?}");
    stack.feed(&[listing(2, "1.00", TEN_O_CLOCK, 1)]).await;
    let newest = stack.feed_outcomes(&[listing(1, "2.00", TEN_O_CLOCK, 9_223_372_036_854_775_807)]).await;
    assert_eq!(newest, [feed::ApplyOutcome::Unchanged]);
    let running = stack.instance().await;
    let (key, _) = stack.key_of(user, &types::scope::Scope::ALL).await;
    for (path, total) in [("/v1/public/listings", 2), ("/v1/public/orders", 1)] {
        let page = running.client.get(&key, path).await.json();
        assert_eq!((&page["total"], &page["items"][0]["created_at"]), (&json!(total), &json!(late)), "{path}");
    }
}

/// A function that fails in another way at each call. It counts its calls.
struct FaultyWorker(Arc<AtomicUsize>);

impl Worker for FaultyWorker {
    type Event = SqsEvent;
    type Response = SqsBatchResponse;

    async fn work(&self, event: SqsEvent) -> Result<SqsBatchResponse, Error> {
        let calls = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        let record = &event.records[0];
        assert_eq!(record.attributes["ApproximateReceiveCount"], calls.to_string());
        assert_eq!(record.event_source_arn.as_deref(), Some("arn:aws:sqs:us-east-1:000000000000:marketplace-feed"));
        match calls {
            1 => panic!("a fault"),
            2 => Err("an error".into()),
            3 => std::future::pending().await,
            _ => {
                let mut response = SqsBatchResponse::default();
                response.add_failure(if calls == 4 { record.message_id.as_deref().unwrap() } else { "unheard of" });
                Ok(response)
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_breaks_its_function_in_any_way_ends_in_redrive() {
    let stack = Stack::new().await;
    let queue = stack.feed_queue();
    // A thousand receives would take a day.
    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:marketplace-feed-dead","maxReceiveCount":5}"#;
    queue.set_attribute(QueueAttributeName::RedrivePolicy, policy).await;
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "1").await;
    let source = EventSource::open(queue.client.clone(), &queue.url, Duration::from_millis(500)).await.unwrap();
    let calls = Arc::new(AtomicUsize::new(0));
    let _poller = poll(source, FaultyWorker(calls.clone()));
    queue.send(&["poison".to_owned()]).await;
    queue.wait_until_empty().await;
    assert_eq!(queue.take_dead_letters().await, [DeadLetter { body: "poison".to_owned(), attributes: [].into() }]);
    assert_eq!(calls.load(Ordering::SeqCst), 5);
}
