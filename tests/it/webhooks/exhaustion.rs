//! What the last failure does, and that it does it only once.

use tests::{Answer, hand};
use webhooks::delivery::{Failure, Status};
use webhooks::endpoint::Switch;
use webhooks::notice::disabled_notice_id;

use super::{OFF_BY_FAILURES, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn two_deliveries_that_fail_for_the_last_time_at_once_switch_off_and_notify_once() {
    let scene = Scene::with(|number| if number <= 12 { Answer::Status(500) } else { Answer::Held(500) }).await;
    let ids = [scene.before_last(1).await, scene.before_last(2).await];
    let senders = [scene.stack.sender(), scene.stack.sender()];
    let messages = [scene.stack.next_message(ids[0]).await, scene.stack.next_message(ids[1]).await];
    let both = async { tokio::join!(hand(&senders[0], &messages[..1]), hand(&senders[1], &messages[1..])) };
    let answered = async {
        scene.receiver.received(14).await;
        scene.receiver.release_all();
    };
    let (handed, ()) = tokio::join!(both, answered);
    assert_eq!(handed, (vec![], vec![]));
    for id in ids {
        assert_eq!(scene.standing(id).await, (Status::Failed, 7));
        assert_eq!(scene.delivery(id).await.progress.failure, Some(Failure::Unacknowledged));
    }
    assert_eq!(scene.switch().await, OFF_BY_FAILURES);
    scene.wait(120);
    scene.stack.sweep().await;
    let notices = scene.stack.take_notices().await;
    assert_eq!(notices.len(), 1, "{notices:?}");
    assert_eq!(notices[0].about.notice_id, disabled_notice_id(scene.endpoint.id, 1));
    assert!(ids.contains(&notices[0].delivery_id));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_switch_off_has_its_own_notice() {
    let scene = Scene::answering(500).await;
    for (event, epoch) in [(1, 1), (2, 2)] {
        let id = scene.before_last(event).await;
        scene.attempt(id).await;
        assert_eq!(scene.switch().await, OFF_BY_FAILURES);
        let notices = scene.stack.take_notices().await;
        assert_eq!(notices.len(), 1);
        assert_eq!(
            (notices[0].about.notice_id, notices[0].delivery_id),
            (disabled_notice_id(scene.endpoint.id, epoch), id)
        );
        scene.stack.webhooks().enable(scene.endpoint.id).await.unwrap();
    }
}

/// Whoever switched the endpoint on again has dealt with it. An attempt that was under way at that time must not
/// switch it off again.
#[tokio::test(flavor = "multi_thread")]
async fn a_last_failure_from_before_the_endpoint_was_switched_on_again_leaves_it_on() {
    let scene = Scene::with(|number| if number <= 6 { Answer::Status(500) } else { Answer::Held(500) }).await;
    let id = scene.before_last(1).await;
    let (message, sender, admin) = (scene.stack.next_message(id).await, scene.stack.sender(), scene.stack.webhooks());
    let switched = async {
        scene.receiver.received(7).await;
        admin.disable(scene.endpoint.id).await.unwrap();
        admin.enable(scene.endpoint.id).await.unwrap();
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, std::slice::from_ref(&message)), switched);
    assert_eq!(scene.standing(id).await, (Status::Failed, 7));
    assert_eq!(scene.switch().await, Switch::On);
    assert_eq!(scene.stack.take_notices().await, []);
}
