//! Everything that can happen to a delivery: it is held, fails for good, gets lost and comes back, or changes lanes.

use platform::resources::Queue;
use runtime::Worker;
use serde_json::Value;
use tests::{Fault, hand};
use types::clock::Clock;
use webhooks::delivery::Status;

use super::Used;
use crate::webhooks::Scene;

pub(super) async fn made() -> Used {
    let scene = Scene::answering(500).await;
    held(&scene).await;
    given_up(&scene).await;
    defective(&scene).await;
    lost(&scene).await;
    slow(&scene).await;
    scene.stack.ledger.used()
}

/// A delivery is held because its endpoint is off when the message comes.
async fn held(scene: &Scene) {
    let id = scene.event(1).await;
    let message = [scene.stack.next_message(id).await];
    let admin = scene.stack.webhooks();
    admin.disable(scene.endpoint.id).await.unwrap();
    hand(&scene.stack.sender(), &message).await;
    assert_eq!(scene.standing(id).await, (Status::Held, 0));
    admin.enable(scene.endpoint.id).await.unwrap();
}

/// Two deliveries fail for good. The notice of the first is sent at once, the notice of the second by the sweep.
async fn given_up(scene: &Scene) {
    for (event, fault) in [(2, Fault::None), (3, Fault::Refuse)] {
        let id = scene.before_last(event).await;
        let message = [scene.stack.next_message(id).await];
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        proxy.plan(move |operation| if operation == "SendMessage" { fault.clone() } else { Fault::None });
        hand(&sender, &message).await;
        assert_eq!(scene.standing(id).await, (Status::Failed, 7));
        scene.wait(2 * 60);
        sweep(scene).await;
        assert_eq!(scene.stack.take_notices().await.len(), 1);
        scene.stack.webhooks().enable(scene.endpoint.id).await.unwrap();
    }
}

/// The store takes the claim of a delivery for invalid. Afterwards the delivery is held, so that no sweep finds it.
async fn defective(scene: &Scene) {
    let id = scene.stored(6).await;
    let message = [scene.stack.next_message(id).await];
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| match operation {
        "PutItem" | "UpdateItem" => Fault::Error("ValidationException"),
        _ => Fault::None,
    });
    hand(&sender, &message).await;
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.take_letters(1).await.len(), 1);
    let admin = scene.stack.webhooks();
    admin.disable(scene.endpoint.id).await.unwrap();
    hand(&scene.stack.sender(), &message).await;
    assert_eq!(scene.standing(id).await, (Status::Held, 0));
    admin.enable(scene.endpoint.id).await.unwrap();
}

/// A message is lost while both queues may be behind. Probes show that they are not, so the sweep sends the message
/// again.
async fn lost(scene: &Scene) {
    let id = scene.stored(4).await;
    let [first, retry] = [Queue::WebhooksFirst, Queue::WebhooksRetry].map(|lane| scene.stack.queue(lane));
    let (first, retry) = tokio::join!(first, retry);
    for lane in [&first, &retry] {
        lane.purge().await;
        lane.send("{}").await;
    }
    scene.wait(5 * 60);
    sweep(scene).await;
    for lane in [&first, &retry] {
        hand(&scene.stack.sender(), &lane.take(2).await).await;
    }
    sweep(scene).await;
    assert_eq!(retry.count().await, 1);
    assert_eq!(scene.standing(id).await, (Status::Pending, 0));
}

/// A message comes on the first lane although its endpoint is slow.
async fn slow(scene: &Scene) {
    let id = scene.event(7).await;
    let message = [scene.stack.next_message(id).await];
    let until = scene.stack.clock.now().plus_millis(60_000);
    scene.stack.webhooks().store.mark_slow(scene.endpoint.account_id, scene.endpoint.id, until).await.unwrap();
    hand(&scene.stack.sender(), &message).await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    assert_eq!((slow.count().await, scene.found(id).await.is_some()), (1, false));
}

async fn sweep(scene: &Scene) {
    let sweep = scene.stack.sweep_at(&scene.stack.aws.endpoint_url);
    sweep.warm_up().await.unwrap();
    sweep.work(Value::Null).await.unwrap();
}
