//! Everything that can happen to a delivery: it is held, fails for good, waits for a drain, or loses its endpoint.

use platform::resources::Queue;
use runtime::Worker;
use serde_json::Value;
use tests::{Fault, hand};
use webhooks::delivery::Status;

use super::Used;
use crate::webhooks::Scene;

pub(super) async fn made() -> Used {
    let scene = Scene::answering(500).await;
    held(&scene).await;
    given_up(&scene).await;
    defective(&scene).await;
    drained(&scene).await;
    removed(&scene).await;
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

/// The store takes the claim of a delivery for invalid. Afterwards the delivery is held, so that no drain finds it.
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

/// A delivery waits for its drain, whose message is lost. A sweep calls the drain again.
async fn drained(scene: &Scene) {
    let account = scene.endpoint.account_id;
    let endpoint = scene.stack.endpoint_of(account).await;
    assert!(scene.stack.webhooks().store.mark_prompt(&endpoint, false).await.unwrap());
    let id = scene.event(4).await;
    let message = [scene.stack.next_message(id).await];
    hand(&scene.stack.sender(), &message).await;
    let slow = scene.stack.queue(Queue::WebhooksSlow).await;
    slow.purge().await;
    scene.wait(5 * 60);
    sweep(scene).await;
    assert_eq!((slow.count().await, scene.standing(id).await), (1, (Status::Pending, 0)));
    scene.stack.drain(account).await;
    assert_eq!(scene.standing(id).await, (Status::Pending, 1));
}

/// A drain ends what its removed endpoint has left.
async fn removed(scene: &Scene) {
    scene.stack.webhooks().remove(scene.endpoint.id).await.unwrap();
    scene.stack.drain(scene.endpoint.account_id).await;
}

async fn sweep(scene: &Scene) {
    let sweep = scene.stack.sweep_at(&scene.stack.aws.endpoint_url);
    sweep.warm_up().await.unwrap();
    sweep.work(Value::Null).await.unwrap();
}
