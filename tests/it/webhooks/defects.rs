//! Steps that the store takes for invalid: their messages do not come again and again, and nothing waits for them.

use platform::resources::Queue;
use tests::{Fault, hand};
use webhooks::delivery::Status;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_store_takes_for_invalid_becomes_a_dead_letter_with_the_reason_at_once() {
    let scene = Scene::answering(204).await;
    let [poison, other] = [scene.stored(1).await, scene.event(2).await];
    let [dead, retry] = [Queue::WebhooksDead, Queue::WebhooksRetry].map(|queue| scene.stack.queue(queue));
    let (dead, retry) = tokio::join!(dead, retry);
    let batch = [scene.stack.next_message(poison).await, scene.stack.next_message(other).await];
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let key: &'static str = poison.to_string().leak();
    proxy.plan(move |operation| if is_step(operation) { Fault::Invalid(key) } else { Fault::None });
    assert_eq!(hand(&sender, &batch).await, [0; 0]);

    let [letter] = &dead.take_letters(1).await[..] else { panic!("not one letter") };
    assert_eq!(Some(&letter.body), batch[0].body.as_ref());
    assert!(letter.attribute("defect").starts_with("invalid request: ValidationException"), "{letter:?}");
    assert_eq!((dead.count().await, retry.count().await), (0, 0));
    assert_eq!(scene.standing(other).await, (Status::Delivered, 1));

    // Its wake-up brings the delivery back. By then the store takes its steps.
    assert_eq!(scene.standing(poison).await, (Status::Pending, 0));
    proxy.set_fault(Fault::None);
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    scene.wait(5 * 60);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(poison).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_an_attempt_may_be_invalid_as_well() {
    for status in [204, 500] {
        let scene = Scene::answering(status).await;
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let message = [scene.stack.next_message(scene.event(1).await).await];
        let mut steps = 0;
        proxy.plan(move |operation| {
            steps += usize::from(is_step(operation));
            if is_step(operation) && steps == 2 { Fault::Error("ValidationException") } else { Fault::None }
        });
        assert_eq!(hand(&sender, &message).await, [0; 0], "{status}");
        assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 1, "{status}");
        assert_eq!(scene.receiver.so_far().len(), 1, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_copy_cannot_be_sent_stays_in_its_queue() {
    let scene = Scene::answering(204).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let message = [scene.stack.next_message(scene.event(1).await).await];
    proxy.plan(|operation| match operation {
        "SendMessageBatch" => Fault::Refuse,
        _ if is_step(operation) => Fault::Error("ValidationException"),
        _ => Fault::None,
    });
    assert_eq!(hand(&sender, &message).await, [0]);
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 0);
}

/// Returns whether a call may be a step of a delivery.
fn is_step(operation: &str) -> bool {
    matches!(operation, "PutItem" | "UpdateItem")
}
