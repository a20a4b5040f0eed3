//! Events that come while an endpoint is off, and deliveries that are sent again.

use admin::webhooks::{NewEndpoint, WebhookAdminError};
use common::clock::Clock;
use common::event::EventKind;
use common::resources::Queue;
use tests::{Answer, hand, uuid};
use webhooks::delivery::{MAX_KEPT_ATTEMPTS, MAX_ROUNDS, Status};
use webhooks::{ATTEMPTS, delivery_id};

use super::{DAY_SECONDS, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn events_while_the_endpoint_is_off_are_held_until_they_are_resent_one_by_one() {
    let scene = Scene::answering(204).await;
    let (stack, admin) = (&scene.stack, scene.stack.webhooks());
    let [first, slow] = [stack.queue(Queue::WebhooksFirst), stack.queue(Queue::WebhooksSlow)];
    scene.disable().await;
    let held = [scene.event(1).await, scene.event(2).await];
    let messages = first.take(2).await;
    for _ in 0..2 {
        scene.handle(&messages).await;
        for delivery in stack.deliveries(scene.endpoint.id).await {
            assert_eq!((delivery.progress.status, delivery.progress.wake_at), (Status::Held, None));
        }
    }
    assert!(matches!(admin.resend(held[0]).await, Err(WebhookAdminError::Disabled(id)) if id == scene.endpoint.id));

    scene.enable().await;
    scene.wait(DAY_SECONDS);
    stack.sweep().await;
    assert_eq!((first.count().await, slow.count().await), (0, 0));
    assert_eq!(scene.standing(held[0]).await, (Status::Held, 0));

    admin.resend(held[0]).await.unwrap();
    scene.handle(&slow.take(1).await).await;
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
    let messages = scene.stack.queue(Queue::WebhooksFirst).take(10).await;
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
    let (first, retry) = (scene.event(1).await, scene.failed(2, 1).await);
    let messages = [scene.message(first).await, scene.message(retry).await];
    scene.disable().await;
    for message in &messages {
        scene.handle(message).await;
    }
    assert_eq!((scene.standing(first).await, scene.standing(retry).await), ((Status::Held, 0), (Status::Held, 1)));
    scene.enable().await;
    scene.handle(&messages.concat()).await;
    assert_eq!((scene.standing(first).await, scene.receiver.so_far().len()), ((Status::Held, 0), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_is_neither_held_nor_sent_again_while_its_post_is_open() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let (admin, (id, message)) = (scene.stack.webhooks(), scene.sent(1).await);
    let meanwhile = async {
        scene.receiver.received(1).await;
        assert!(matches!(admin.resend(id).await, Err(WebhookAdminError::Busy(busy)) if busy == id));
        scene.disable().await;
        scene.handle(&message).await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 0));
        assert_eq!(scene.stack.queue(Queue::WebhooksRetry).count().await, 1, "the copy of its message");
        scene.receiver.release_all();
    };
    tokio::join!(scene.handle(&message), meanwhile);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delivery_that_is_sent_again_keeps_its_id_and_leaves_older_messages_void() {
    let scene = Scene::answering(204).await;
    let (admin, (id, older)) = (scene.stack.webhooks(), scene.sent(1).await);
    scene.handle(&older).await;
    assert_eq!(admin.resend(id).await.unwrap(), id);
    let delivery = scene.delivery(id).await;
    assert_eq!((delivery.progress.status, delivery.progress.round), (Status::Pending, 2));
    scene.handle(&older).await;
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Pending, 1), 1));
    let newer = scene.stack.queue(Queue::WebhooksSlow).take(1).await;
    for message in [&newer[..], &older, &newer] {
        scene.handle(message).await;
    }
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
    let posts = scene.receiver.so_far();
    assert_eq!(posts.len(), 2);
    assert_eq!((posts[0].id(), &posts[0].body), (posts[1].id(), &posts[1].body));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_round_has_all_attempts_of_which_the_latest_are_kept_and_all_are_counted() {
    let scene = Scene::answering(500).await;
    let (admin, id) = (scene.stack.webhooks(), scene.event(1).await);
    let mut sent = Vec::new();
    for round in 1..=4 {
        if round > 1 {
            scene.enable().await;
            admin.resend(id).await.unwrap();
        }
        for attempt in 1..=ATTEMPTS {
            scene.wait(1);
            sent.push(scene.stack.clock.now());
            scene.attempt(id).await;
            let progress = scene.delivery(id).await.progress;
            assert_eq!(progress.status, if attempt == ATTEMPTS { Status::Failed } else { Status::Pending });
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
    let before_last = scene.put(1, |progress| {
        (progress.status, progress.wake_at, progress.round) = (Status::Held, None, MAX_ROUNDS - 1);
    });
    let (admin, id) = (scene.stack.webhooks(), before_last.await);
    admin.resend(id).await.unwrap();
    scene.attempt(id).await;
    let refused = admin.resend(id).await.unwrap_err();
    assert_eq!(refused.to_string(), format!("delivery {id} has had 100 rounds of attempts and cannot be sent again"));
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}
