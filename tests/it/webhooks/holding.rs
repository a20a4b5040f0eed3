//! Events that come while an endpoint is off.

use admin::webhooks::{NewEndpoint, WebhookAdminError};
use platform::resources::Queue;
use tests::{Answer, hand, uuid};
use types::clock::Clock;
use types::event::EventKind;
use types::ids::DeliveryId;
use webhooks::delivery::{Delivery, MAX_KEPT_ATTEMPTS, MAX_ROUNDS, Progress, Status};
use webhooks::delivery_id;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn events_while_the_endpoint_is_off_are_held_until_they_are_resent_one_by_one() {
    let scene = Scene::answering(204).await;
    let (stack, admin) = (&scene.stack, scene.stack.webhooks());
    let [first, slow] = [stack.queue(Queue::WebhooksFirst).await, stack.queue(Queue::WebhooksSlow).await];
    admin.disable(scene.endpoint.id).await.unwrap();
    let held = [scene.event(1).await, scene.event(2).await];
    assert_eq!(hand(&stack.sender(), &first.take(2).await).await, [0; 0]);
    let listed = stack.deliveries(scene.endpoint.id).await;
    assert_eq!(listed.iter().map(|one| one.progress.status).collect::<Vec<_>>(), [Status::Held; 2]);
    assert!(matches!(admin.resend(held[0]).await, Err(WebhookAdminError::Disabled(id)) if id == scene.endpoint.id));

    admin.enable(scene.endpoint.id).await.unwrap();
    scene.wait(24 * 60 * 60);
    stack.sweep().await;
    assert_eq!((first.count().await, slow.count().await), (0, 0));
    assert_eq!(scene.standing(held[0]).await, (Status::Held, 0));

    admin.resend(held[0]).await.unwrap();
    assert_eq!(hand(&stack.sender(), &slow.take(1).await).await, [0; 0]);
    assert_eq!(scene.standing(held[0]).await, (Status::Delivered, 1));
    assert_eq!(scene.standing(held[1]).await, (Status::Held, 0));
    assert_eq!(scene.receiver.so_far().len(), 1);
    assert_eq!(scene.posts(held[0])[0].body, scene.delivery(held[0]).await.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_deliveries_of_a_batch_are_held_in_one_transaction_for_an_account() {
    let scene = Scene::answering(204).await;
    let admin = scene.stack.webhooks();
    for number in 1..10 {
        let url = format!("{}/{number}", scene.receiver.url);
        admin.add(NewEndpoint { user_id: scene.user, url, events: [EventKind::ListingSold].into() }).await.unwrap();
    }
    let endpoints = admin.list(scene.user).await.unwrap().readable;
    for endpoint in &endpoints {
        scene.stack.prove(endpoint).await;
        admin.disable(endpoint.id).await.unwrap();
    }
    scene.event(1).await;
    let messages = scene.stack.queue(Queue::WebhooksFirst).await.take(10).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    assert_eq!(hand(&sender, &messages).await, [0; 0]);
    let calls = proxy.take_calls();
    assert_eq!(calls.iter().filter(|call| call.operation == "TransactWriteItems").count(), 1);
    // The messages may come again, and then some of the deliveries are stored.
    assert_eq!(hand(&sender, &messages).await, [0; 0]);
    for endpoint in &endpoints {
        assert_eq!(scene.standing(delivery_id(uuid(1).into(), endpoint.id)).await, (Status::Held, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_held_if_its_endpoint_was_switched_off_before_the_attempt() {
    let scene = Scene::answering(500).await;
    let (admin, sender) = (scene.stack.webhooks(), scene.stack.sender());
    let [first, retry] = [scene.event(1).await, scene.event(2).await];
    scene.attempt(retry).await;
    let messages = [scene.stack.next_message(first).await, scene.stack.next_message(retry).await];
    admin.disable(scene.endpoint.id).await.unwrap();
    assert_eq!(hand(&sender, &messages[..1]).await, [0; 0]);
    assert_eq!(hand(&sender, &messages[1..]).await, [0; 0]);
    assert_eq!((scene.standing(first).await, scene.standing(retry).await), ((Status::Held, 0), (Status::Held, 1)));
    admin.enable(scene.endpoint.id).await.unwrap();
    assert_eq!(hand(&sender, &messages).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 1, "only the attempt from before the switch-off");
    assert_eq!(scene.standing(first).await, (Status::Held, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_not_held_while_its_post_is_open() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let (admin, id) = (scene.stack.webhooks(), scene.event(1).await);
    let (sender, message) = (scene.stack.sender(), [scene.stack.next_message(id).await]);
    let switched_off = async {
        scene.receiver.received(1).await;
        admin.disable(scene.endpoint.id).await.unwrap();
        assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Pending, 0));
        assert_eq!(scene.stack.queue(Queue::WebhooksRetry).await.count().await, 1, "the copy of its message");
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), switched_off);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_keeps_its_id_and_leaves_older_messages_void() {
    let scene = Scene::answering(204).await;
    let (admin, sender) = (scene.stack.webhooks(), scene.stack.sender());
    let id = scene.event(1).await;
    let older = [scene.stack.next_message(id).await];
    hand(&sender, &older).await;
    assert_eq!(admin.resend(id).await.unwrap(), id);
    let delivery = scene.delivery(id).await;
    assert_eq!((delivery.progress.status, delivery.progress.round), (Status::Pending, 2));
    hand(&sender, &older).await;
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Pending, 1), 1));
    let newer = scene.stack.queue(Queue::WebhooksSlow).await.take(1).await;
    hand(&sender, &newer).await;
    hand(&sender, &older).await;
    hand(&sender, &newer).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
    let posts = scene.receiver.so_far();
    assert_eq!(posts.len(), 2);
    assert_eq!((posts[0].id(), &posts[0].body), (posts[1].id(), &posts[1].body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_round_has_seven_attempts_of_its_own() {
    let scene = Scene::with(|number| Answer::Status(if number <= 10 { 500 } else { 204 })).await;
    let (admin, id) = (scene.stack.webhooks(), scene.before_last(1).await);
    let last = [scene.stack.next_message(id).await];
    admin.resend(id).await.unwrap();
    // The last attempt of the previous round is no longer made.
    hand(&scene.stack.sender(), &last).await;
    for _ in 0..4 {
        scene.attempt(id).await;
    }
    assert_eq!(scene.standing(id).await, (Status::Pending, 10));
    scene.attempt(id).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 11));
    assert!(scene.stack.endpoint_of(scene.user).await.is_on());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_cannot_be_resent_while_its_post_is_open() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let (admin, id) = (scene.stack.webhooks(), scene.event(1).await);
    let (sender, message) = (scene.stack.sender(), [scene.stack.next_message(id).await]);
    let asked = async {
        scene.receiver.received(1).await;
        assert!(matches!(admin.resend(id).await, Err(WebhookAdminError::Busy(busy)) if busy == id));
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), asked);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_and_again_keeps_its_latest_attempts_and_counts_all() {
    let scene = Scene::answering(500).await;
    let (admin, id) = (scene.stack.webhooks(), scene.event(1).await);
    let mut sent = Vec::new();
    for round in 1..=5 {
        if round > 1 {
            admin.enable(scene.endpoint.id).await.unwrap();
            admin.resend(id).await.unwrap();
        }
        for _ in 0..7 {
            scene.wait(1);
            sent.push(scene.stack.clock.now());
            scene.attempt(id).await;
            let progress = scene.delivery(id).await.progress;
            let kept: Vec<_> = progress.attempts.iter().map(|attempt| attempt.at).collect();
            assert!(kept.len() <= MAX_KEPT_ATTEMPTS, "{} are kept", kept.len());
            assert_eq!(kept, sent[sent.len() - kept.len()..]);
            assert_eq!(progress.recorded_attempts(), sent.len());
        }
    }
    assert_eq!(scene.standing(id).await, (Status::Failed, MAX_KEPT_ATTEMPTS));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_has_a_hundred_rounds_at_most() {
    let scene = Scene::answering(204).await;
    let (admin, id, now) = (scene.stack.webhooks(), DeliveryId::from(uuid(1)), scene.stack.clock.now());
    let progress = Progress { round: MAX_ROUNDS - 1, ..Progress::new(id, Status::Held, now, now) };
    let before_last = Delivery { id, progress, ..scene.delivery(scene.stored(2).await).await };
    admin.store.put_delivery(&before_last).await.unwrap();
    admin.resend(id).await.unwrap();
    scene.attempt(id).await;
    let refused = admin.resend(id).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("delivery {id} has had 100 rounds of attempts and cannot be sent again"));
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}
