//! Messages that are lost, retries that wait in the table, and drains that die.

use std::slice;

use platform::resources::Queue;
use runtime::Worker;
use serde_json::Value;
use tests::{Answer, Fault, Proxy, hand};
use webhooks::delivery::Status;
use webhooks::drain::{GRACE_SECONDS, LOST_SECONDS, NAP_SECONDS};

use super::Scene;

const OVERDUE_SECONDS: i64 = 5 * 60;
/// How long before it is due a drain is called, with a delay.
const AHEAD_SECONDS: i64 = 60;

impl Scene {
    /// Returns how many calls of drains are in the queue, delayed ones included.
    async fn calls(&self) -> u64 {
        self.stack.queue(Queue::WebhooksSlow).await.count().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_attempt_whose_message_is_lost_is_made_after_five_minutes() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.take(1).await;
    scene.wait(OVERDUE_SECONDS - AHEAD_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(scene.calls().await, 0);
    scene.wait(1);
    scene.stack.sweep().await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    assert_eq!((slow.count().await, slow.visible_count().await), (1, 0), "the message is delayed");
    scene.wait(AHEAD_SECONDS);
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    // Once nothing waits, the drain rests for good.
    scene.wait(24 * 60 * 60);
    scene.sweep_and_drain().await;
    let calls = slow.count().await;
    scene.wait(24 * 60 * 60);
    scene.stack.sweep().await;
    assert_eq!((slow.count().await, scene.receiver.so_far().len()), (calls, 1));
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
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Pending, 1));
    scene.wait(1);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parked_retry_is_made_when_it_is_due_and_no_sooner() {
    let scene = Scene::with(|number| Answer::Status(if number <= 3 { 500 } else { 204 })).await;
    let id = scene.failing(1, 3).await;
    // Drops the messages of the second and third attempts, which the test made without waiting for them.
    scene.stack.queue(Queue::WebhooksRetry).await.purge().await;
    let due = scene.delivery(id).await.progress.due;
    // Half an hour, and a minute of slack.
    assert_eq!(due, scene.stack.now().plus_millis((30 + 1) * 60_000));
    while scene.stack.now().plus_millis(60_000) < due {
        scene.wait(60);
        scene.sweep_and_drain().await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 3));
    }
    scene.wait(60);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_is_made_although_the_call_of_its_drain_is_lost() {
    let scene = Scene::answering(204).await;
    let id = scene.event(1).await;
    hand(&scene.stack.sender(), &scene.stack.queue(Queue::WebhooksFirst).await.take(1).await).await;
    scene.stack.webhooks().resend(id).await.unwrap();
    scene.stack.queue(Queue::WebhooksSlow).await.purge().await;
    scene.wait(i64::from(LOST_SECONDS) - AHEAD_SECONDS - 1);
    scene.stack.sweep().await;
    assert_eq!(scene.calls().await, 0);
    scene.wait(1);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sweeps_at_once_cause_one_run() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.wait(OVERDUE_SECONDS);
    tokio::join!(scene.stack.sweep(), scene.stack.sweep());
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    assert_eq!(slow.count().await, 1);
    let message = slow.take(1).await;
    let senders = [scene.stack.sender(), scene.stack.sender()];
    tokio::join!(hand(&senders[0], &message), hand(&senders[1], &message));
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Delivered, 1), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sweep_that_dies_before_it_sends_its_message_calls_again() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.wait(OVERDUE_SECONDS);
    let proxy = Proxy::start(&scene.stack.aws.endpoint_url).await;
    proxy.plan(|operation| if operation == "SendMessageBatch" { Fault::Hang } else { Fault::None });
    let mortal = scene.stack.sweep_at(&proxy.url);
    tokio::select! {
        _ = mortal.work(Value::Null) => panic!("the sweep should have died"),
        () = proxy.wait_until_stuck() => {}
    }
    assert_eq!(scene.calls().await, 0);
    scene.wait(LOST_SECONDS.into());
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_a_drain_that_waits_for_long_in_its_queue_is_not_made_void_by_its_copies() {
    let scene = Scene::answering(204).await;
    let id = scene.stored(1).await;
    scene.wait(OVERDUE_SECONDS);
    scene.stack.sweep().await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    let early = slow.take(1).await;
    for _ in 0..3 {
        scene.wait(LOST_SECONDS.into());
        scene.stack.sweep().await;
    }
    assert_eq!(slow.count().await, 3);
    assert_eq!(hand(&scene.stack.sender(), &early).await, [0; 0]);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    for late in slow.take(3).await {
        assert_eq!(hand(&scene.stack.sender(), slice::from_ref(&late)).await, [0; 0]);
    }
    assert_eq!(scene.receiver.so_far().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drain_naps_after_a_call_and_rests_once_it_can_be_sure() {
    let scene = Scene::answering(204).await;
    let (store, user) = (scene.stack.webhooks().store, scene.user);
    let now = scene.stack.now();
    store.call_drain_by(user, now, now).await.unwrap();
    scene.stack.drain(user).await;
    // Whoever called may not have written yet what it called for.
    let id = scene.stored(1).await;
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    scene.wait(OVERDUE_SECONDS);
    assert!(OVERDUE_SECONDS > i64::from(NAP_SECONDS));
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    scene.wait(i64::from(GRACE_SECONDS) + 1);
    scene.sweep_and_drain().await;
    let calls = scene.calls().await;
    scene.wait(60 * 60);
    scene.stack.sweep().await;
    assert_eq!(scene.calls().await, calls);
}
