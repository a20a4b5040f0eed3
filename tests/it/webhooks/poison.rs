//! Messages that cannot be read, among others that can.

use std::collections::BTreeSet;

use aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout;
use platform::resources::Queue;
use tests::{DeadLetter, Receiver, Stack, hand, message, sale, uuid};
use webhooks::delivery::{Lane, Status};
use webhooks::delivery_id;

use super::Scene;

const UNREADABLE: [&str; 4] = ["null", "{", r#"{"type":"attempt"}"#, r#"{"type":"recall"}"#];

#[tokio::test(flavor = "multi_thread")]
async fn the_unreadable_messages_of_a_batch_become_dead_letters_at_once_with_the_reason() {
    let scene = Scene::answering(204).await;
    let (mut batch, mut readable) = (Vec::new(), Vec::new());
    // Two deliveries per endpoint: more than four in a batch would change lanes.
    for user in [10, 20, 30] {
        let scene = scene.other(user).await;
        for event in [user, user + 1] {
            let id = scene.event(event).await;
            batch.push(scene.stack.next_message(id).await);
            readable.push(id);
        }
    }
    for (position, body) in [1, 3, 5, 9].into_iter().zip(UNREADABLE) {
        batch.insert(position, message(Lane::First, body));
    }
    assert_eq!(hand(&scene.stack.sender(), &batch).await, [0; 0]);
    let letters = scene.stack.queue(Queue::WebhooksDead).await.take_letters(UNREADABLE.len()).await;
    let bodies: BTreeSet<&str> = letters.iter().map(|letter| letter.body.as_str()).collect();
    assert_eq!(bodies, BTreeSet::from(UNREADABLE));
    let told = |letter: &DeadLetter| letter.attribute("defect").starts_with("unreadable message: ");
    assert!(letters.iter().all(told), "{letters:?}");
    for id in readable {
        assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_message_becomes_a_dead_letter_and_the_others_are_delivered_once() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(204).await, uuid(5).into());
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    let [first, dead] = [stack.queue(Queue::WebhooksFirst).await, stack.queue(Queue::WebhooksDead).await];
    // A message that is received twice would stay hidden longer than the test waits.
    first.set_attribute(VisibilityTimeout, "600").await;
    stack.fan_out(&[1, 2, 3, 4].map(|event| sale(event, user))).await;
    first.send("{").await;
    stack.fan_out(&[5, 6, 7, 8, 9].map(|event| sale(event, user))).await;
    let _workers = stack.workers().await;
    assert_eq!(dead.take(1).await[0].body.as_deref(), Some("{"));
    for event in 1..=9 {
        let delivery = stack.delivery_as(delivery_id(uuid(event).into(), endpoint.id), Status::Delivered).await;
        assert_eq!(delivery.progress.attempts.len(), 1);
    }
    first.wait_for_count(0).await;
    assert_eq!((receiver.so_far().len(), dead.count().await), (9, 0));
}
