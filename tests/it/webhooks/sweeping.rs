//! Messages that are lost, and messages that are only late.

use std::slice;

use aws_lambda_events::sqs::SqsMessage;
use futures_util::future::join_all;
use platform::resources::Queue;
use runtime::Worker;
use serde_json::{Value, json};
use tests::{Answer, Fault, Proxy, hand, message};
use types::ids::DeliveryId;
use webhooks::delivery::{Lane, Status};

use super::Scene;

const OVERDUE_SECONDS: i64 = 5 * 60;

#[tokio::test(flavor = "multi_thread")]
async fn a_first_attempt_whose_message_is_lost_is_made_after_five_minutes() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.take(1).await;
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    scene.wait(OVERDUE_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    hand(&scene.stack.sender(), &retry.take(1).await).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    scene.wait(24 * 60 * 60);
    scene.stack.sweep().await;
    assert_eq!((retry.count().await, scene.receiver.so_far().len()), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_whose_message_is_lost_is_made_five_minutes_after_it_was_due() {
    let scene = Scene::with(|number| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let id = scene.event(1).await;
    hand(&scene.stack.sender(), &scene.stack.queue(Queue::WebhooksFirst).await.take(1).await).await;
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    assert_eq!(retry.count().await, 1);
    retry.purge().await;
    scene.wait(30 + OVERDUE_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    hand(&scene.stack.sender(), &retry.take(1).await).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_retry_is_called_for_shortly_before_it_is_due_and_no_sooner() {
    let scene = Scene::answering(500).await;
    let id = scene.event(1).await;
    for _ in 0..3 {
        scene.attempt(id).await;
    }
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    // Drops the messages of the second and third attempts, which the test made without waiting for them.
    retry.purge().await;
    // The retry is due after half an hour plus a minute of slack. Its message is sent at most 14 minutes before.
    scene.wait(30 * 60 + 60 - 14 * 60 - 1);
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    assert_eq!((retry.count().await, retry.visible_count().await), (1, 0), "the message is delayed");
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_message_of_a_delivery_that_is_sent_again_is_taken_for_lost_after_five_minutes_and_no_sooner() {
    let scene = Scene::answering(204).await;
    let id = scene.event(1).await;
    hand(&scene.stack.sender(), &scene.stack.queue(Queue::WebhooksFirst).await.take(1).await).await;
    scene.stack.webhooks().resend(id).await.unwrap();
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    retry.purge().await;
    scene.wait(OVERDUE_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    hand(&scene.stack.sender(), &retry.take(1).await).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
}

/// Hands each message to a sender of its own, all at once, and asserts that only one POST is made.
async fn assert_one_post(scene: &Scene, id: DeliveryId, messages: &[SqsMessage]) {
    let senders: Vec<_> = messages.iter().map(|_| scene.stack.sender()).collect();
    let hands = senders.iter().zip(messages).map(|(sender, message)| hand(sender, slice::from_ref(message)));
    assert!(join_all(hands).await.iter().all(Vec::is_empty));
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    scene.outlast_leases();
    assert_eq!(hand(&senders[0], messages).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sweeps_at_once_cause_one_post() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    scene.wait(OVERDUE_SECONDS);
    tokio::join!(scene.stack.sweep(), scene.stack.sweep());
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    let messages = retry.take(retry.count().await.try_into().unwrap()).await;
    assert_one_post(&scene, id, &messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_dies_before_it_records_what_it_sent_causes_no_second_post() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    scene.wait(OVERDUE_SECONDS);
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    proxy.plan(|operation| if operation == "UpdateItem" { Fault::Hang } else { Fault::None });
    let mortal = scene.stack.sweep_at(&proxy.url);
    tokio::select! {
        _ = mortal.work(Value::Null) => panic!("the sweep should have died"),
        () = proxy.wait_until_stuck() => {}
    }
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    let mut messages = retry.take(1).await;
    scene.stack.sweep().await;
    messages.extend(retry.take(1).await);
    assert_eq!(messages[0].body, messages[1].body);
    assert_one_post(&scene, id, &messages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_lost_again_and_again_is_resent_at_doubling_intervals() {
    let scene = Scene::answering(204).await;
    scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    let retry = scene.stack.queue(Queue::WebhooksRetry).await;
    scene.wait(OVERDUE_SECONDS - 1);
    for doublings in 1..=4 {
        scene.stack.sweep().await;
        assert_eq!(retry.count().await, 0, "before interval {doublings} is over");
        scene.wait(1);
        scene.stack.sweep().await;
        assert_eq!(retry.count().await, 1, "once interval {doublings} is over");
        retry.take(1).await;
        scene.wait((OVERDUE_SECONDS << doublings) - 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_message_is_taken_for_lost_while_its_queue_is_behind() {
    let scene = Scene::answering(204).await;
    let lost = scene.stored(1).await;
    let [first, retry] = [scene.stack.queue(Queue::WebhooksFirst).await, scene.stack.queue(Queue::WebhooksRetry).await];
    first.purge().await;
    scene.wait(OVERDUE_SECONDS);
    // While this message waits, the first one may be waiting behind it.
    let waiting = scene.event(2).await;
    for probes in 1..=2 {
        scene.stack.sweep().await;
        assert_eq!((first.count().await, retry.count().await), (1 + probes, 0));
        scene.wait(60);
    }
    // Takes the message and the first probe, but not the second probe.
    let sender = scene.stack.sender();
    let mut messages = first.take(2).await;
    assert!(messages[1].body.as_deref().unwrap().contains("probe"));
    hand(&sender, &messages).await;
    assert_eq!(scene.standing(waiting).await, (Status::Delivered, 1));
    scene.stack.sweep().await;
    messages = retry.take(1).await;
    hand(&sender, &messages).await;
    assert_eq!(scene.standing(lost).await, (Status::Delivered, 1));
    assert_eq!(retry.count().await, 0);

    // A probe that is five minutes old proves nothing any more.
    scene.stored(3).await;
    scene.wait(OVERDUE_SECONDS);
    scene.stack.sweep().await;
    assert_eq!(retry.count().await, 0);
    assert_eq!(scene.receiver.so_far().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_probe_counts_for_the_lane_that_it_came_out_of() {
    let scene = Scene::answering(204).await;
    let (sender, store) = (scene.stack.sender(), scene.stack.webhooks().store);
    for (lane, minute) in Lane::ALL.into_iter().zip(1..) {
        let sent_at = format!("2026-11-20T12:0{minute}:00.000Z");
        let probe = message(lane, &json!({"type": "probe", "sent_at": sent_at}).to_string());
        assert_eq!(hand(&sender, &[probe]).await, [0; 0]);
        assert_eq!(json!(store.probed_at(lane).await.unwrap()), json!(sent_at));
    }
    assert_eq!(json!(store.probed_at(Lane::First).await.unwrap()), json!("2026-11-20T12:01:00.000Z"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_older_probe_that_comes_out_late_does_not_make_the_queue_look_older() {
    let scene = Scene::answering(204).await;
    let first = scene.stack.queue(Queue::WebhooksFirst).await;
    let probe = |sent_at: &str| message(Lane::First, &json!({"type": "probe", "sent_at": sent_at}).to_string());
    let sender = scene.stack.sender();
    let lost = scene.stored(1).await;
    first.purge().await;
    scene.wait(OVERDUE_SECONDS);
    scene.event(2).await;
    let newer = probe("2026-11-20T12:04:00.000Z");
    for message in [newer.clone(), probe("2026-11-20T11:00:00.000Z"), newer] {
        assert_eq!(hand(&sender, &[message]).await, [0; 0]);
    }
    scene.stack.sweep().await;
    let sent = scene.stack.queue(Queue::WebhooksRetry).await.take(1).await;
    assert!(sent[0].body.as_deref().unwrap().contains(&lost.to_string()), "{sent:?}");
}
