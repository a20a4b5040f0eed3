//! An event goes from the feed to the endpoints that selected it, and what that costs.
//!
//! The test event that an owner can ask for.
//!
//! The sender as it is deployed: its own binary under the Lambda Runtime API.
//!
//! Webhooks that `ingest` may not use: the feed's data does not wait for them.

use admin::webhooks::NewEndpoint;
use aws_lambda_events::sqs::SqsEvent;
use common::event::EventKind;
use common::resources::Queue;
use local::environment::Variables;
use serde_json::json;
use tests::{Answer, Fault, Proxy, Receiver, RuntimeApi, SignatureValidity, Stack, hand, item, message, sale, uuid};
use webhooks::delivery::{Lane, Status};
use webhooks::delivery_id;
use webhooks::endpoint::{DisabledReason, Switch};
use webhooks::guard::LOOPBACK_VARIABLE;

use super::{DAY_SECONDS, Scene, feed_message};

/// The feed's writers may send an event again: to repeat it, to correct it, or because they read an old file.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_delivered_once_to_each_endpoint_that_selected_it_and_then_only_to_those_that_are_added() {
    let (stack, answering) = (Stack::new().await, || Receiver::answering(204));
    let [selecting, all, other, later] = [answering().await, answering().await, answering().await, answering().await];
    let (user, stranger) = (uuid(5).into(), uuid(6).into());
    let (endpoint, _) = stack.endpoint(user, &selecting.url).await;
    let admin = stack.webhooks();
    for (receiver, events) in [(&all, EventKind::ALL.into()), (&other, [EventKind::WalletDeposit].into())] {
        admin.add(NewEndpoint { user_id: user, url: receiver.url.clone(), events }).await.unwrap();
    }
    stack.endpoint(stranger, &other.url).await;

    let _workers = stack.workers().await;
    let queue = stack.queue(Queue::Feed);
    queue.send(&[sale(1, user).to_string(), sale(1, user).to_string(), sale(2, uuid(7).into()).to_string()]).await;
    for receiver in [&selecting, &all] {
        let received = receiver.received(1).await;
        let delivery = stack.delivery_as(received[0].id().parse().unwrap(), Status::Delivered).await;
        assert_eq!(delivery.progress.attempts.len(), 1);
        assert_eq!(delivery.body.as_bytes(), received[0].body);
    }
    let id = delivery_id(uuid(1).into(), endpoint.id);
    assert_eq!(selecting.so_far()[0].id(), id.to_string());
    queue.send(&[sale(1, user).to_string()]).await;
    queue.wait_until_empty().await;
    stack.queue(Queue::WebhooksFirst).wait_for_count(0).await;
    assert_eq!([selecting.so_far().len(), all.so_far().len(), other.so_far().len()], [1, 1, 0]);

    let (new, _) = stack.endpoint(user, &later.url).await;
    let mut corrected = sale(1, user);
    corrected["data"]["price_usd"] = json!("99.99");
    queue.send(&[corrected.to_string(), corrected.to_string(), sale(1, user).to_string()]).await;
    assert_eq!(later.received(1).await[0].id(), delivery_id(uuid(1).into(), new.id).to_string());
    queue.wait_until_empty().await;
    for queue in [Queue::WebhooksFirst, Queue::WebhooksRetry] {
        stack.queue(queue).wait_for_count(0).await;
    }
    assert_eq!([&selecting, &all, &other, &later].map(|receiver| receiver.so_far().len()), [1, 1, 0, 1]);
    let kept = stack.delivery_as(id, Status::Delivered).await;
    assert_eq!(kept.body.as_bytes(), selecting.so_far()[0].body);
}

/// Returns the DynamoDB calls for this many events whose deliveries all succeed at once, and how many calls sent messages.
async fn calls(events: u128) -> (Vec<String>, usize) {
    let scene = Scene::answering(204).await;
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    let (ingest, sender) = (scene.stack.ingest_at(&proxy.url), scene.stack.sender_at(&proxy.url));
    let batch: Vec<_> = (1..=events).map(|event| feed_message(&sale(event, scene.user))).collect();
    hand(&ingest, &batch).await;
    let [first, retry] = [Queue::WebhooksFirst, Queue::WebhooksRetry];
    hand(&sender, &scene.stack.queue(first).take(batch.len()).await).await;
    let retry = scene.stack.queue(retry);
    hand(&sender, &retry.take(retry.count().await.try_into().unwrap()).await).await;
    scene.assert_delivered(&(1..=events).map(|event| scene.id(event)).collect::<Vec<_>>()).await;
    let operations = proxy.take_operations();
    let sends = operations.iter().filter(|operation| operation.starts_with("SendMessage")).count();
    let is_store = |operation: &String| operation.ends_with("Item") || operation.ends_with("Items");
    (operations.into_iter().filter(is_store).collect(), sends)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_succeeds_at_once_takes_two_writes() {
    // The first call reads the accounts of all events of a batch, and the second those of all messages.
    let (one, sends) = calls(1).await;
    assert_eq!(
        (one, sends),
        (["BatchGetItem", "BatchGetItem", "PutItem", "UpdateItem"].map(str::to_owned).to_vec(), 1)
    );
    // With receiving and deleting events and messages, and sending the events, that makes six SQS calls for ten.
    let (ten, sends) = calls(10).await;
    assert_eq!((ten.len(), sends), (22, 1), "{ten:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_is_tried_once_whatever_the_result() {
    let scene = Scene::answering(204).await;
    for (user, status, standing) in [(10, 204, Status::Delivered), (20, 500, Status::Failed)] {
        let scene = scene.beside(user, move |_| Answer::Status(status)).await;
        let (stack, admin) = (&scene.stack, scene.stack.webhooks());
        let id = admin.test(scene.endpoint.id, None).await.unwrap();
        let message = [stack.drain_message(scene.user).await];
        for _ in 0..2 {
            scene.handle(&message).await;
            scene.wait(DAY_SECONDS);
            scene.sweep_and_drain().await;
        }
        assert_eq!(scene.standing(id).await, (standing, 1));
        assert_eq!((scene.switch().await, stack.take_notices().await), (Switch::On, vec![]));
        assert_eq!(stack.queue(Queue::WebhooksRetry).count().await, 0);
        let posts = scene.receiver.so_far();
        assert_eq!(posts.len(), 1);
        assert_eq!(posts[0].signed_with(&scene.secret), SignatureValidity { service: true, standard: true });
        assert_eq!(posts[0].json()["data"], EventKind::ListingSold.sample_data());
        assert_eq!((&posts[0].json()["test"], posts[0].header("x-service-test")), (&json!(true), "true"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_that_is_sent_while_the_endpoint_is_off_is_attempted_and_nothing_else_is() {
    let scene = Scene::answering(204).await;
    let (stack, admin) = (&scene.stack, scene.stack.webhooks());
    let before = admin.test(scene.endpoint.id, None).await.unwrap();
    scene.wait(1);
    scene.disable().await;
    let meanwhile = scene.event(1).await;
    scene.wait(1);
    let test = admin.test(scene.endpoint.id, None).await.unwrap();
    stack.drain(scene.user).await;
    for message in stack.queue(Queue::WebhooksFirst).take(1).await {
        scene.handle(&[message]).await;
    }
    assert_eq!(scene.standing(test).await, (Status::Delivered, 1));
    assert_eq!([scene.standing(before).await, scene.standing(meanwhile).await], [(Status::Held, 0); 2]);
    let posts = scene.receiver.so_far();
    assert_eq!(posts.iter().map(tests::Received::id).collect::<Vec<_>>(), [test.to_string()]);
    assert_eq!(scene.switch().await, Switch::Off(DisabledReason::Owner));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sender_reaches_nothing_but_the_public_internet_whatever_its_environment_says() {
    let stack = Stack::new().await;
    let (canary, user) = (Receiver::answering(204).await, uuid(5).into());
    let (endpoint, secret) = stack.endpoint(user, &canary.url).await;
    stack.prove(&endpoint).await;
    stack.fan_out(&[sale(1, user)]).await;
    let id = delivery_id(uuid(1).into(), endpoint.id);
    let variables = Variables::new(&stack.aws.endpoint_url).with_loopback_webhooks();
    assert_eq!(variables.get(LOOPBACK_VARIABLE).as_deref(), Some("1"));
    let mut sender = RuntimeApi::run("webhook", &variables).await;
    let mut batch = SqsEvent::default();
    batch.records = vec![stack.next_message(id).await, message(Lane::Retry, "unreadable")];
    batch.records[1].message_id = Some("poison".to_owned());
    let answer = sender.invoke(serde_json::to_value(&batch).unwrap()).await;
    assert_eq!(answer, json!({"batchItemFailures": []}));

    let delivery = stack.delivery_when(id, |delivery| delivery.progress.failed_attempts == 1).await;
    let [attempt] = &delivery.progress.attempts[..] else { panic!("{delivery:?}") };
    let error = attempt.error.as_deref().unwrap();
    assert_eq!((delivery.progress.status, attempt.status), (Status::Pending, None));
    assert!(error.contains("must use a public IP address"), "{error}");
    assert!(canary.so_far().is_empty());

    let (log, lines) = (sender.log(), sender.lines());
    let [defective, counts] = &lines[..] else { panic!("{log}") };
    assert_eq!((&defective.json["level"], &defective.json["message_id"]), (&json!("ERROR"), &json!("poison")));
    let count = |name: &str| counts.json[name].as_u64().unwrap();
    assert_eq!(["received", "Unacknowledged", "Defects"].map(count), [2, 1, 1]);
    assert!(!log.contains(&secret.reveal()[6..]) && !log.contains("127.0.0.1") && !log.contains("12.50"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_feed_is_applied_while_webhooks_may_not_be_used_and_events_wait() {
    let scene = Scene::answering(204).await;
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    let ingest = scene.stack.ingest_at(&proxy.url);
    let (feed, dead) = (scene.stack.queue(Queue::Feed), scene.stack.queue(Queue::FeedDead));
    let first = scene.stack.queue(Queue::WebhooksFirst);
    let mut batch = vec![feed_message(&item("ak", "skin", Some("AK"), 1)), feed_message(&sale(1, scene.user))];
    proxy.plan(|operation| match operation {
        "BatchGetItem" => Fault::Error("AccessDeniedException"),
        _ => Fault::None,
    });
    for _ in 0..2 {
        assert_eq!(hand(&ingest, &batch).await, [0; 0]);
        assert_eq!((feed.count().await, first.count().await), (1, 0), "a copy of the event waits");
        batch = feed.take(1).await;
    }
    let catalog = scene.stack.instance().await.client.get(&scene.stack.full_key().await, "/v1/public/catalog").await;
    assert_eq!(catalog.json()["total"], 1);

    proxy.set_fault(Fault::None);
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    assert_eq!((feed.count().await, dead.count().await, first.count().await), (0, 0, 1));
}
