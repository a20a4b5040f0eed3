//! An event goes from the feed to the endpoints that selected it, and what that costs.

use admin::webhooks::NewEndpoint;
use aws_lambda_events::sqs::SqsMessage;
use platform::resources::Queue;
use serde_json::Value;
use tests::{Proxy, Receiver, Stack, hand, message, sale, uuid};
use types::event::EventKind;
use webhooks::delivery::{Lane, Status};
use webhooks::delivery_id;

use super::Scene;

fn feed(event: &Value) -> SqsMessage {
    message(Lane::First, &event.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_delivered_once_to_each_endpoint_that_selected_it() {
    let stack = Stack::new().await;
    let [selecting, all, other] =
        [Receiver::answering(204).await, Receiver::answering(204).await, Receiver::answering(204).await];
    let (user, stranger) = (uuid(5).into(), uuid(6).into());
    let (endpoint, _) = stack.endpoint(user, &selecting.url).await;
    let admin = stack.webhooks();
    let new = |url: &str, events: &[EventKind]| NewEndpoint {
        user_id: user,
        url: url.to_owned(),
        events: events.iter().copied().collect(),
    };
    admin.add(new(&all.url, &EventKind::ALL)).await.unwrap();
    admin.add(new(&other.url, &[EventKind::WalletDeposit])).await.unwrap();
    stack.endpoint(stranger, &other.url).await;

    let _workers = stack.workers().await;
    let queue = stack.feed_queue();
    queue.send(&[sale(1, user).to_string(), sale(1, user).to_string(), sale(2, uuid(7).into()).to_string()]).await;
    for receiver in [&selecting, &all] {
        let received = receiver.received(1).await;
        let delivery = stack.delivery_as(received[0].id().parse().unwrap(), Status::Delivered).await;
        assert_eq!(delivery.progress.attempts.len(), 1);
        assert_eq!(delivery.body.as_bytes(), received[0].body);
    }
    assert_eq!(selecting.so_far()[0].id(), delivery_id(uuid(1).into(), endpoint.id).to_string());
    queue.send(&[sale(1, user).to_string()]).await;
    queue.wait_until_empty().await;
    stack.queue(Queue::WebhooksFirst).await.wait_for_count(0).await;
    assert_eq!([selecting.so_far().len(), all.so_far().len(), other.so_far().len()], [1, 1, 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_events_become_ten_deliveries_however_often_their_batch_comes() {
    let scene = Scene::answering(204).await;
    let ingest = scene.stack.ingest_at(&scene.stack.aws.endpoint_url);
    let batch: Vec<_> = (1..=10).map(|event| feed(&sale(event, scene.user))).collect();
    let [first, retry] = [Queue::WebhooksFirst, Queue::WebhooksRetry].map(|queue| scene.stack.queue(queue));
    let (first, retry) = (first.await, retry.await);
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    // The second messages take the retry lane, because ten deliveries of this account have entered the first lane
    // within this second.
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    assert_eq!((first.count().await, retry.count().await), (10, 10));
    let sender = scene.stack.sender();
    // As on Lambda, a batch comes from one queue. So it holds no delivery twice, which would postpone the second
    // copy.
    for lane in [first.take(10).await, retry.take(10).await] {
        for batch in lane.chunks(4) {
            assert_eq!(hand(&sender, batch).await, [0; 0]);
        }
    }
    assert_eq!(hand(&ingest, &batch).await, [0; 0]);
    assert_eq!(hand(&sender, &retry.take(10).await).await, [0; 0]);
    assert_eq!((first.count().await, retry.count().await), (0, 0));
    assert_eq!(scene.stack.deliveries(scene.endpoint.id).await.len(), 10);
    for event in 1..=10 {
        let id = delivery_id(uuid(event).into(), scene.endpoint.id);
        assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_for_an_endpoint_that_is_off_is_held() {
    let scene = Scene::answering(204).await;
    scene.stack.webhooks().disable(scene.endpoint.id).await.unwrap();
    let ingest = scene.stack.ingest_at(&scene.stack.aws.endpoint_url);
    assert_eq!(hand(&ingest, &[feed(&sale(1, scene.user))]).await, [0; 0]);
    let id = delivery_id(uuid(1).into(), scene.endpoint.id);
    let messages = scene.stack.queue(Queue::WebhooksFirst).await.take(1).await;
    for _ in 0..2 {
        assert_eq!(hand(&scene.stack.sender(), &messages).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Held, 0));
        assert_eq!(scene.delivery(id).await.progress.wake_at, None);
    }
    assert_eq!(scene.receiver.so_far().len(), 0);
}

/// Returns the DynamoDB calls for this many events whose deliveries all succeed at once, and how many calls sent messages.
async fn calls(events: u128) -> (Vec<String>, usize) {
    let scene = Scene::answering(204).await;
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    let (ingest, sender) = (scene.stack.ingest_at(&proxy.url), scene.stack.sender_at(&proxy.url));
    let batch: Vec<_> = (1..=events).map(|event| feed(&sale(event, scene.user))).collect();
    hand(&ingest, &batch).await;
    let [first, retry] = [Queue::WebhooksFirst, Queue::WebhooksRetry];
    hand(&sender, &scene.stack.queue(first).await.take(batch.len()).await).await;
    let retry = scene.stack.queue(retry).await;
    hand(&sender, &retry.take(retry.count().await.try_into().unwrap()).await).await;
    for event in 1..=events {
        let id = delivery_id(uuid(event).into(), scene.endpoint.id);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    }
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
