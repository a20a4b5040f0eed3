//! The local stack keeps what is in its queues beside its tables, so that killing it loses no message. Delayed messages
//! are counted, and come when they are due.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{MessageAttributeValue, SendMessageBatchRequestEntry};
use common::aws::{Environment, Patience};
use common::clock::{Clock, SystemClock};
use common::event::EventKind;
use common::ids::EndpointId;
use common::resources::Queue;
use local::aws::AwsSide;
use local::environment::Variables;
use local::seed::StackAdmin;
use serde_json::Value;
use tests::webhooks_cli::{WebhooksCli, text};
use tests::{Client, Receiver, Stack, TestQueue, listing, local, marketctl, sale, uuid};
use tokio::time::{Instant, sleep, timeout};
use webhooks::delivery::{Carried, LEASE_SECONDS, Token};
use webhooks::store::{Put, WebhookStore};
use webhooks::{QueueMessage, delivery_id};

/// Starts an AWS side that keeps its data in a folder. It ends without a word when it is dropped.
async fn start(data: &Path) -> (AwsSide, Variables) {
    let aws = AwsSide::start("127.0.0.1:0".parse().unwrap(), Some(data)).await.unwrap();
    let variables = Variables::new(&aws.endpoint_url);
    let admin = StackAdmin::new(&variables, Arc::new(SystemClock::new())).unwrap();
    admin.set_up(Some(data)).await.unwrap();
    (aws, variables)
}

/// Takes all messages that can be received now, and returns their bodies.
async fn bodies(queue: &TestQueue) -> Vec<String> {
    let taken = queue.take(usize::try_from(queue.visible_count().await).unwrap()).await;
    let mut bodies: Vec<_> = taken.into_iter().map(|message| message.body.unwrap()).collect();
    bodies.sort();
    bodies
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_start_the_queues_have_what_was_not_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let texts = |name: &str, count: usize| (1..=count).map(|n| format!("{name} {n}")).collect::<Vec<_>>();
    let (aws, variables) = start(folder.path()).await;
    let at = |queue| TestQueue::new(&variables, queue);
    let (feed, first, slow) = (at(Queue::Feed), at(Queue::WebhooksFirst), at(Queue::WebhooksSlow));
    feed.send(&texts("feed", 25)).await;
    let deleted: BTreeSet<_> = feed.take(10).await.into_iter().map(|message| message.body.unwrap()).collect();
    // These are being worked on.
    let received = feed.client.receive_message().queue_url(&feed.url).max_number_of_messages(10);
    assert!(!received.send().await.unwrap().messages.unwrap().is_empty());
    slow.send(&texts("slow", 3)).await;
    slow.purge().await;
    slow.send(&texts("later", 2)).await;
    let sent = first.client.send_message().queue_url(&first.url).message_body("late").delay_seconds(900);
    sent.send().await.unwrap();
    let entry = SendMessageBatchRequestEntry::builder().id("1").message_body("soon");
    let sent = first.client.send_message_batch().queue_url(&first.url).entries(entry.delay_seconds(1).build().unwrap());
    sent.send().await.unwrap();
    let dead = at(Queue::FeedDead);
    let reason = MessageAttributeValue::builder().data_type("String").string_value("bad").build().unwrap();
    let sent =
        dead.client.send_message().queue_url(&dead.url).message_body("letter").message_attributes("reason", reason);
    sent.send().await.unwrap();
    let notices = at(Queue::Notices);
    // The queue takes the second one for the same, even after the first was deleted.
    for id in ["a", "a", "b", "b"] {
        let sent = notices.client.send_message().queue_url(&notices.url).message_body("notice");
        sent.message_group_id("group").message_deduplication_id(id).send().await.unwrap();
    }
    notices.take(1).await;
    let sent = notices.client.send_message().queue_url(&notices.url).message_body("notice");
    sent.message_group_id("group").message_deduplication_id("a").send().await.unwrap();
    drop(aws);

    let (aws, variables) = start(folder.path()).await;
    let at = |queue| TestQueue::new(&variables, queue);
    let left: BTreeSet<_> = texts("feed", 25).into_iter().filter(|text| !deleted.contains(text)).collect();
    assert_eq!(bodies(&at(Queue::Feed)).await.into_iter().collect::<BTreeSet<_>>(), left);
    assert_eq!(bodies(&at(Queue::WebhooksSlow)).await, texts("later", 2));
    assert_eq!(at(Queue::WebhooksFirst).take(1).await[0].body.as_deref(), Some("soon"));
    let letters = at(Queue::FeedDead).take_all_letters().await;
    assert_eq!((letters.len(), letters[0].attribute("reason")), (1, "bad"));
    let notices = at(Queue::Notices);
    assert_eq!(notices.count().await, 1);
    assert_eq!(notices.take(1).await[0].body.as_deref(), Some("notice"));
    drop(aws);

    let (_aws, variables) = start(folder.path()).await;
    let at = |queue| TestQueue::new(&variables, queue);
    for queue in [Queue::Feed, Queue::WebhooksSlow, Queue::FeedDead, Queue::Notices] {
        assert_eq!(at(queue).count().await, 0, "{queue:?}");
    }
    let first = at(Queue::WebhooksFirst);
    assert_eq!((first.count().await, first.visible_count().await), (1, 0), "the late one");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_sqs_refuses_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (_aws, variables) = start(folder.path()).await;
    let queue = TestQueue::new(&variables, Queue::Feed);
    let entry =
        |id: &str, body: &str| SendMessageBatchRequestEntry::builder().id(id).message_body(body).build().unwrap();
    let batch = async |entries: Vec<SendMessageBatchRequestEntry>| {
        let sent = queue.client.send_message_batch().queue_url(&queue.url).set_entries(Some(entries)).send().await;
        sent.map_err(|error| error.code().unwrap_or_default().to_owned())
    };
    let sent =
        batch(vec![entry("a", "tab\t and \u{fffd}"), entry("b", "\u{1}"), entry("c", "\u{ffff}")]).await.unwrap();
    let failed: Vec<_> = sent.failed.iter().map(|failed| (failed.id.as_str(), failed.code.as_str())).collect();
    assert_eq!(failed, [("b", "InvalidMessageContents"), ("c", "InvalidMessageContents")]);
    assert_eq!((sent.successful.len(), queue.count().await), (1, 1));
    let sent = batch(vec![entry("a", "\u{fffe}")]).await.unwrap();
    assert_eq!((sent.successful.len(), sent.failed.len()), (0, 1));
    for (entries, code) in [
        (vec![entry("a b", "text")], "InvalidBatchEntryId"),
        (vec![entry("a", "text"), entry("a", "text")], "BatchEntryIdsNotDistinct"),
        ((0..11).map(|n| entry(&n.to_string(), "text")).collect(), "TooManyEntriesInBatchRequest"),
        (["a", "b"].map(|id| entry(id, &"x".repeat(600 * 1_024))).into(), "BatchRequestTooLong"),
    ] {
        let refused = batch(entries).await.unwrap_err();
        assert!(refused.ends_with(code), "{refused} in place of {code}");
    }
    let one = queue.client.send_message().queue_url(&queue.url).message_body("\u{b}");
    assert!(one.send().await.is_err());
    assert_eq!(queue.count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_kill_the_feed_is_applied_and_every_delivery_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let data = ["--aws-listen", "127.0.0.1:0", "--empty", "--allow-loopback-webhooks", "--data"];
    let data = [&data[..], &[folder.path().to_str().unwrap()]].concat();
    let (mut child, ready) = local(&[&data[..], &["--aws-only"]].concat()).await;
    let cli = WebhooksCli { variables: variables(&ready).with_loopback_webhooks() };
    let (receiver, user) = (Receiver::answering(204).await, uuid(5));
    let added = cli.done(&format!("add --user {user} --url {} --event listing.sold", receiver.url)).await;
    let endpoint: EndpointId = text(&added["id"]).parse().unwrap();
    let ids = (1..=41).map(|event| delivery_id(uuid(event).into(), endpoint));
    let mut expected: BTreeSet<String> = ids.map(|id| id.to_string()).collect();

    let queue = |queue| TestQueue::new(&cli.variables, queue);
    let listings = (1..=500).map(|n| listing(n, "1.00", "2026-11-20T10:00:00Z", 1));
    let messages = listings.chain((1..=20).map(|event| sale(event, user.into())));
    queue(Queue::Feed).send(&messages.map(|message| message.to_string()).collect::<Vec<_>>()).await;
    let carried = |event| {
        let (id, body) = (delivery_id(uuid(event).into(), endpoint), "{}".to_owned());
        Carried::new(
            id,
            (user.into(), endpoint),
            (uuid(event).into(), EventKind::ListingSold),
            SystemClock::new().now(),
            body,
        )
        .unwrap()
    };
    let first = (21..=40).map(|event| QueueMessage::First(Arc::new(carried(event))));
    queue(Queue::WebhooksFirst).send(&first.map(|one| serde_json::to_string(&one).unwrap()).collect::<Vec<_>>()).await;
    // Its sender died, and its message was purged.
    let long_ago = SystemClock::new().now().plus_millis(-1_000 * (LEASE_SECONDS + 1));
    let client = Environment::read(&|name| cli.variables.get(name)).unwrap().dynamodb(Patience::Bulk);
    let store = WebhookStore::new(client, "marketplace-webhooks".to_owned());
    assert_eq!(store.put_delivery(&carried(41).claimed(Token::random(), long_ago)).await.unwrap(), Put::New);
    child.kill().await.unwrap();

    let (_child, ready) = local(&[&data[..], &["--time-scale", "60"]].concat()).await;
    let variables = variables(&ready);
    let create = ["--json", "keys", "create", "--user", &user.to_string(), "--scope", "listings:read"];
    let key = text(&marketctl(&variables, &create, "").await.json()["api_key"]);
    TestQueue::new(&variables, Queue::Feed).wait_until_empty().await;
    let client = Client::new(ready["base_url"].as_str().unwrap());
    // A key has 60 requests a minute, and an answer is at most two seconds behind.
    let applied = async {
        while client.get(&key, "/v1/public/listings").await.json()["total"] != 500 {
            sleep(Duration::from_secs(1)).await;
        }
    };
    timeout(Duration::from_mins(1), applied).await.unwrap();
    for number in 1.. {
        expected.remove(receiver.received(number).await[number - 1].id());
        if expected.is_empty() {
            break;
        }
    }
}

fn variables(ready: &Value) -> Variables {
    Variables::new(ready["aws_endpoint_url"].as_str().unwrap())
}

#[tokio::test]
async fn delayed_messages_are_counted_and_come_when_they_are_due() {
    let stack = Stack::new().await;
    let entry = |(body, delay): (&str, i32)| {
        let entry = SendMessageBatchRequestEntry::builder().id(body).message_body(body).message_group_id("a");
        entry.delay_seconds(delay).build().unwrap()
    };
    let queue = stack.queue(Queue::WebhooksSlow);
    let begun = Instant::now();
    let batch = [("one", 1), ("prompt", 0), ("two", 1), ("late", 900)].map(entry).to_vec();
    let request = queue.client.send_message_batch().queue_url(&queue.url);
    let sent = request.set_entries(Some(batch)).send().await.unwrap();
    assert_eq!((sent.successful.len(), sent.failed.len()), (4, 0));
    assert_eq!((queue.count().await, queue.visible_count().await), (4, 1));
    assert_eq!(queue.take(1).await[0].body.as_deref(), Some("prompt"));
    let mut bodies: Vec<_> = queue.take(2).await.into_iter().map(|message| message.body.unwrap()).collect();
    bodies.sort();
    assert_eq!(bodies, ["one", "two"]);
    assert!(begun.elapsed() >= Duration::from_secs(1), "a message came early");
    queue.wait_for_count(1).await;
}
