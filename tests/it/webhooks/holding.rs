//! Events that come while an endpoint is off, and deliveries that are sent again.

use admin::webhooks::WebhookAdminError;
use common::clock::Clock;
use common::resources::Queue;
use tests::{Answer, AwsCall, hand};
use webhooks::ATTEMPTS;
use webhooks::delivery::{MAX_KEPT_ATTEMPTS, MAX_ROUNDS, Status};

use super::{DAY_SECONDS, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn events_while_the_endpoint_is_off_are_held_until_they_are_resent_one_by_one() {
    let scene = Scene::answering(204).await;
    let (stack, admin) = (&scene.stack, scene.stack.webhooks());
    let [first, slow] = [stack.queue(Queue::WebhooksFirst), stack.queue(Queue::WebhooksSlow)];
    let before = scene.event(1).await;
    scene.disable().await;
    let held = [before, scene.event(2).await];
    let messages = first.take(2).await;
    let (sender, proxy) = stack.sender_behind_proxy().await;
    // The messages may come again, and then the deliveries are stored.
    for is_first in [true, false] {
        assert_eq!(hand(&sender, &messages).await, [0; 0]);
        let transactions = AwsCall::count(&proxy.take_calls(), "TransactWriteItems");
        assert!(transactions == 1 || !is_first, "{transactions}");
        for id in held {
            let progress = scene.delivery(id).await.progress;
            assert_eq!((progress.status, progress.wake_at), (Status::Held, None));
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
    scene.assert_delivered(&held[..1]).await;
    assert_eq!(scene.standing(held[1]).await, (Status::Held, 0));
    assert_eq!(scene.receiver.so_far().len(), 1);
    assert_eq!(scene.posts(held[0])[0].body, scene.delivery(held[0]).await.body);

    // A delivered one is sent again as well. It keeps its id, and older messages are void.
    assert_eq!(admin.resend(held[0]).await.unwrap(), held[0]);
    let progress = scene.delivery(held[0]).await.progress;
    assert_eq!((progress.status, progress.round), (Status::Pending, 3));
    scene.handle(&messages).await;
    assert_eq!((scene.standing(held[0]).await, scene.receiver.so_far().len()), ((Status::Pending, 1), 1));
    let newer = slow.take(1).await;
    for messages in [&newer, &messages, &newer] {
        scene.handle(messages).await;
    }
    assert_eq!(scene.standing(held[0]).await, (Status::Delivered, 2));
    assert_eq!(scene.standing(held[1]).await, (Status::Held, 0));
    let posts = scene.receiver.so_far();
    assert_eq!(posts.len(), 2);
    assert_eq!((posts[0].id(), &posts[0].body), (posts[1].id(), &posts[1].body));

    // A retry is held as well.
    let retry = scene.failed(3, 1).await;
    let message = scene.message(retry).await;
    scene.disable().await;
    scene.handle(&message).await;
    scene.enable().await;
    scene.handle(&message).await;
    assert_eq!((scene.standing(retry).await, scene.posts(retry).len()), ((Status::Held, 1), 0));
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
