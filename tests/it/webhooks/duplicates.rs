//! The same message, many times.

use platform::resources::Queue;
use tests::{Answer, hand};
use tokio::task::JoinSet;
use webhooks::delivery::Status;

use super::Scene;

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_message_at_many_senders_at_once_make_one_post() {
    for copies in [2, 50] {
        let scene = Scene::with(|_| Answer::Held(204)).await;
        let id = scene.event(1).await;
        let message = [scene.stack.next_message(id).await];
        let senders = [scene.stack.sender(), scene.stack.sender()];
        let mut hands = JoinSet::new();
        for sender in senders.iter().cycle().take(copies) {
            let (sender, message) = (sender.clone(), message.clone());
            hands.spawn(async move { hand(&sender, &message).await });
        }
        // All senders give up except the one whose POST is open.
        for _ in 1..copies {
            assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
        }
        assert_eq!(scene.receiver.received(1).await.len(), 1);
        // Their messages are not lost: each has sent a copy that waits until the open attempt must have ended.
        let retry = scene.stack.queue(Queue::WebhooksRetry).await;
        assert_eq!((retry.count().await, retry.visible_count().await), (copies as u64 - 1, 0));
        scene.receiver.release_all();
        assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
        scene.outlast_leases();
        assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
        assert_eq!(scene.receiver.so_far().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_message_in_one_batch_make_one_post_and_one_recorded_attempt() {
    for (status, standing) in [(204, Status::Delivered), (500, Status::Pending)] {
        let scene = Scene::answering(status).await;
        let id = scene.event(1).await;
        let message = scene.stack.next_message(id).await;
        let sender = scene.stack.sender();
        for _ in 0..2 {
            assert_eq!(hand(&sender, &vec![message.clone(); 10]).await, [0; 0]);
            scene.outlast_leases();
        }
        assert_eq!(scene.standing(id).await, (standing, 1));
        assert_eq!(scene.receiver.so_far().len(), 1);
    }
}
