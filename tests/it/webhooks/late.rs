//! An acknowledgement that comes after another sender has taken the attempt over.

use aws_lambda_events::sqs::SqsMessage;
use tests::{Answer, hand};
use types::ids::DeliveryId;
use webhooks::delivery::Status;
use webhooks::endpoint::Switch;

use super::{OFF_BY_FAILURES, Scene};

/// Opens two POSTs of the same attempt. The first, which will be acknowledged, stays open until its lease has ended,
/// and another sender makes the attempt again, which will fail. `finish` decides in which order the two are answered.
async fn two_open_posts(scene: &Scene, id: DeliveryId, finish: impl AsyncFnOnce(usize)) {
    let before = scene.receiver.so_far().len();
    let message: [SqsMessage; 1] = [scene.stack.next_message(id).await];
    let [one, other] = [scene.stack.sender(), scene.stack.sender()];
    let second = async {
        scene.receiver.received(before + 1).await;
        scene.outlast_leases();
        let answered = async {
            scene.receiver.received(before + 2).await;
            finish(before).await;
        };
        tokio::join!(hand(&other, &message), answered);
    };
    tokio::join!(hand(&one, &message), second);
    assert_eq!(scene.receiver.so_far().len(), before + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_acknowledgement_of_the_last_attempt_prevents_the_switch_off() {
    let answer = |number| match number {
        1..=6 => Answer::Status(500),
        7 => Answer::Held(200),
        _ => Answer::Held(500),
    };
    let scene = Scene::with(answer).await;
    let id = scene.before_last(1).await;
    two_open_posts(&scene, id, async |before| {
        scene.receiver.release_until(before + 1);
        scene.stack.delivery_as(id, Status::Delivered).await;
        scene.receiver.release_all();
    })
    .await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 7));
    assert_eq!((scene.switch().await, scene.stack.take_notices().await), (Switch::On, vec![]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_acknowledgement_makes_the_next_attempt_void() {
    let scene = Scene::with(|number| if number == 1 { Answer::Held(200) } else { Answer::Status(500) }).await;
    let id = scene.event(1).await;
    let mut retry = None;
    two_open_posts(&scene, id, async |_| {
        scene.stack.delivery_when(id, |delivery| delivery.progress.failed_attempts == 1).await;
        retry = Some(scene.stack.next_message(id).await);
        scene.receiver.release_all();
    })
    .await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
    assert_eq!(hand(&scene.stack.sender(), &[retry.unwrap()]).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 2);
}

/// The delivery had already failed for good, and stays failed.
#[tokio::test(flavor = "multi_thread")]
async fn an_acknowledgement_after_the_switch_off_changes_nothing() {
    let answer = |number| if number == 7 { Answer::Held(200) } else { Answer::Status(500) };
    let scene = Scene::with(answer).await;
    let id = scene.before_last(1).await;
    two_open_posts(&scene, id, async |_| {
        scene.stack.delivery_as(id, Status::Failed).await;
        scene.receiver.release_all();
    })
    .await;
    assert_eq!(scene.standing(id).await, (Status::Failed, 7));
    assert_eq!(scene.switch().await, OFF_BY_FAILURES);
    assert_eq!(scene.stack.take_notices().await.len(), 1);
}
