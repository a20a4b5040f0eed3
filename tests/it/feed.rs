//! Messages that go through the feed queue: what is applied, what is refused, what waits.

use aws_sdk_sqs::types::QueueAttributeName;
use common::clock::Clock;
use common::resources::Queue;
use common::store::StoreError;
use common::timestamp::DAY_MILLIS;
use serde_json::{Value, json};
use tests::{
    AwsCall, Fault, Stack, balance, dynamodb, item, listing, marketplace, order, quote, sold_listing, tables, uuid,
};

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

/// Asserts that no message is lost while these operations fail. They work again after copies were sent back to the feed
/// queue twice.
async fn a_busy_store_is_waited_for(fault: Fault, operations: &'static [&'static str]) {
    let (stack, other) = (Stack::new().await, Stack::new().await);
    other.feed(&good()).await;
    let queue = stack.queue(Queue::Feed);
    // A message that is received twice would become a dead letter, so nothing may rely on that.
    let policy =
        r#"{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:000000000000:marketplace-feed-dead","maxReceiveCount":1}"#;
    queue.set_attribute(QueueAttributeName::RedrivePolicy, policy).await;
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    let mut postponed = 0;
    proxy.plan(move |operation| {
        postponed += usize::from(operation == "SendMessageBatch");
        if postponed < 2 && operations.contains(&operation) { fault.clone() } else { Fault::None }
    });
    queue.send(&texts(&good())).await;
    queue.wait_until_empty().await;
    assert_eq!(stack.queue(Queue::FeedDead).take_all_letters().await, []);
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
        a_busy_store_is_waited_for(Fault::Cancelled("TransactionConflict"), &["TransactWriteItems"]),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_makes_a_dead_letter_at_once_and_costs_no_other_message() {
    let stack = Stack::new().await;
    let queue = stack.queue(Queue::Feed);
    // A message that is received twice would stay hidden longer than the test waits.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "600").await;
    let text = |text: &str| aws_sdk_dynamodb::types::AttributeValue::S(text.to_owned());
    let broken = dynamodb(&stack).put_item().table_name("marketplace-accounts");
    let broken = broken.item("pk", text(&format!("order#{}", uuid(1)))).item("sk", text("authority"));
    broken.item("account_id", text("nobody")).send().await.unwrap();
    let _workers = stack.workers().await;
    queue.send(&texts(&good())).await;
    queue.wait_until_empty().await;
    let [letter] = &stack.queue(Queue::FeedDead).take_all_letters().await[..] else { panic!("not one letter") };
    assert_eq!(letter.body, order(uuid(5).into(), 1, TEN_O_CLOCK, 1).to_string());
    assert!(letter.attribute("defect").starts_with("unreadable row: "), "{letter:?}");
    let listings = stack.instance().await.client.get(&stack.full_key().await, "/v1/public/listings").await;
    assert_eq!(listings.json()["total"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_store_takes_for_invalid_becomes_a_dead_letter_at_once_and_costs_no_other_message() {
    let stack = Stack::new().await;
    let queue = stack.queue(Queue::Feed);
    // A message that is received twice would stay hidden longer than the test waits.
    queue.set_attribute(QueueAttributeName::VisibilityTimeout, "600").await;
    let (_workers, proxy) = stack.workers_behind_proxy().await;
    proxy.plan(|operation| if operation == "TransactWriteItems" { Fault::Invalid("poison") } else { Fault::None });
    let mut items: Vec<Value> = (0..9).map(|number| item(&format!("i{number}"), "skin", None, 1)).collect();
    items.insert(4, item("poison", "skin", None, 1));
    queue.send(&texts(&items)).await;
    queue.wait_until_empty().await;
    let [letter] = &stack.queue(Queue::FeedDead).take_all_letters().await[..] else { panic!("not one letter") };
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
    let now = stack.clock.now();
    let mut items: Vec<Value> = (0..63).map(|number| item(&format!("i{number}"), "skin", None, 1)).collect();
    items.insert(40, item("poison", "skin", None, 1));
    let messages = items.iter().map(|item| feed::parse(&item.to_string(), now).unwrap()).enumerate().collect();
    let outcomes = feed::Applier::new(stack.stores_at(&proxy.url)).apply(messages, &*stack.clock).await;
    let failed: Vec<_> = outcomes.iter().filter(|(_, outcome)| outcome.is_err()).collect();
    assert!(matches!(failed[..], [(40, Err(StoreError::InvalidRequest(_)))]), "{failed:?}");
    assert_eq!(outcomes.len(), 64);
    let calls = proxy.take_calls();
    assert_eq!(
        AwsCall::count(&calls, "TransactWriteItems"),
        13,
        "one for all of them, and two for each of six halvings"
    );
    assert_eq!(AwsCall::count(&calls, "GetItem"), 1, "the head is read once");
}
