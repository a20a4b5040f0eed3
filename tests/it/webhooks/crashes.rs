//! A sender dies at each of its steps, and its message comes again.

use std::sync::atomic::Ordering;

use platform::resources::Queue;
use tests::{Fault, hand, hand_to_die};
use types::ids::DeliveryId;
use webhooks::delivery::{MAX_CLAIMS, Status};
use webhooks::notice::EndpointNotice;
use webhooks::notice::disabled_notice_id;

use super::notices::failing_scene;
use super::{OFF_BY_FAILURES, Scene};

/// The sender dies before its call arrives, or after the call took effect.
const MOMENTS: [Fault; 2] = [Fault::Hang, Fault::HangAfter];

/// Lets a sender die at a call. The message comes again twice: soon, while the dead sender's lease still holds, and
/// after its end. Returns whether the sender died, which it does not if it makes fewer calls.
async fn attempt_that_dies(scene: &Scene, id: DeliveryId, call: usize, moment: Fault) -> bool {
    let message = [scene.stack.next_message(id).await];
    let (mortal, proxy) = scene.stack.sender_behind_proxy().await;
    let died = hand_to_die(&mortal, &proxy, &message, call, moment).await;
    let posts = scene.posts(id).len();
    let is_claimed = scene.found(id).await.is_some_and(|delivery| delivery.progress.claims > 0);
    assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
    if is_claimed {
        assert_eq!(scene.posts(id).len(), posts, "a second POST while the first may still be open");
    }
    scene.outlast_leases();
    assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
    scene.stack.sweep().await;
    died
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_the_last_attempt_ends_in_one_switch_off_with_one_notice() {
    let scene = Scene::answering(500).await;
    for moment in MOMENTS {
        let (mut call, mut died) = (0, true);
        while died {
            call += 1;
            let scene = scene.other(account_for(&moment, call)).await;
            let id = scene.before_last(1_000 + call as u128).await;
            died = attempt_that_dies(&scene, id, call, moment.clone()).await;
            let step = format!("{moment:?} at {call}");
            assert_eq!(scene.standing(id).await, (Status::Failed, 7), "{step}");
            assert_eq!(scene.switch().await, OFF_BY_FAILURES, "{step}");
            assert!((7..=8).contains(&scene.posts(id).len()), "{step}");
            let notices = scene.stack.take_notices().await;
            let ids: Vec<_> = notices.iter().map(|notice| (notice.about.notice_id, notice.delivery_id)).collect();
            assert_eq!(ids, [(disabled_notice_id(scene.endpoint.id, 1), id)], "{step}");
        }
        assert!(call > 7, "endpoints, keyring, claim, record and three calls for the notice, but only {call} calls");
    }
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_the_attempt_that_warns_ends_in_one_warning() {
    let scene = Scene::answering(500).await;
    for moment in MOMENTS {
        let (mut call, mut died) = (0, true);
        while died {
            call += 1;
            let scene = scene.other(account_for(&moment, call)).await;
            let id = scene.failing(1_000 + call as u128, 3).await;
            died = attempt_that_dies(&scene, id, call, moment.clone()).await;
            let step = format!("{moment:?} at {call}");
            assert_eq!(scene.standing(id).await, (Status::Pending, 4), "{step}");
            let notices = scene.stack.take_all_notices().await;
            assert!(
                matches!(&notices[..], [EndpointNotice::Failing(notice)] if notice.delivery_id == id),
                "{step}: {notices:?}"
            );
        }
        assert!(call > 7, "endpoints, keyring, claim, record and three calls for the notice, but only {call} calls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_the_attempt_that_shows_a_recovery_ends_in_one_notice_of_it() {
    let (scene, is_well) = failing_scene().await;
    for moment in MOMENTS {
        let (mut call, mut died) = (0, true);
        while died {
            call += 1;
            is_well.store(false, Ordering::Relaxed);
            let scene = scene.other(account_for(&moment, call)).await;
            let id = scene.failing(1_000 + call as u128, 4).await;
            assert_eq!(scene.stack.take_all_notices().await.len(), 1);
            is_well.store(true, Ordering::Relaxed);
            died = attempt_that_dies(&scene, id, call, moment.clone()).await;
            let step = format!("{moment:?} at {call}");
            assert_eq!(scene.standing(id).await, (Status::Delivered, 5), "{step}");
            let notices = scene.stack.take_all_notices().await;
            assert!(
                matches!(&notices[..], [EndpointNotice::Recovered(notice)] if notice.delivery_id == id),
                "{step}: {notices:?}"
            );
        }
        assert!(call > 8, "as for a success, and four calls for the notice, but only {call} calls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_an_attempt_that_succeeds_ends_in_one_recorded_success() {
    let scene = Scene::answering(204).await;
    for moment in MOMENTS {
        let (mut call, mut died) = (0, true);
        while died {
            call += 1;
            let scene = scene.other(account_for(&moment, call)).await;
            let id = scene.event(1_000 + call as u128).await;
            died = attempt_that_dies(&scene, id, call, moment.clone()).await;
            assert_eq!(scene.standing(id).await, (Status::Delivered, 1), "{moment:?} at {call}");
            let posts = scene.posts(id);
            assert!((1..=2).contains(&posts.len()), "{moment:?} at {call}");
            assert!(posts.iter().all(|post| post.body == posts[0].body));
        }
        assert!(call > 4, "endpoints, keyring, claim and record, but only {call} calls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_a_failed_attempt_ends_in_one_recorded_failure_and_a_next_attempt() {
    let scene = Scene::answering(500).await;
    for moment in MOMENTS {
        let (mut call, mut died) = (0, true);
        while died {
            call += 1;
            let scene = scene.other(account_for(&moment, call)).await;
            let id = scene.event(1_000 + call as u128).await;
            died = attempt_that_dies(&scene, id, call, moment.clone()).await;
            assert_eq!(scene.standing(id).await, (Status::Pending, 1), "{moment:?} at {call}");
            scene.attempt(id).await;
            assert_eq!(scene.standing(id).await, (Status::Pending, 2), "{moment:?} at {call}");
        }
        assert!(call > 5, "endpoints, keyring, claim, message and record, but only {call} calls");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_posts_without_a_record_count_as_one_attempt_without_a_result() {
    let scene = Scene::answering(204).await;
    let id = scene.event(1).await;
    let message = [scene.stack.next_message(id).await];
    for claims in 1..=MAX_CLAIMS {
        let (mortal, proxy) = scene.stack.sender_behind_proxy().await;
        // Later claims find the row that the first one has put, and call the drain, whose row the second one makes.
        let record = [4, 7, 6][claims as usize - 1];
        assert!(hand_to_die(&mortal, &proxy, &message, record, Fault::Hang).await);
        let progress = scene.delivery(id).await.progress;
        assert_eq!((progress.claims, progress.attempts.len()), (claims, 0));
        assert_eq!(scene.posts(id).len(), claims as usize);
        scene.outlast_leases();
    }
    assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
    let progress = scene.delivery(id).await.progress;
    assert_eq!((progress.status, progress.failed_attempts, progress.claims), (Status::Pending, 1, 0));
    assert_eq!((progress.attempts[0].status, progress.attempts[0].error.as_deref()), (None, Some("no result")));
    assert_eq!(scene.posts(id).len(), 3);
    scene.attempt(id).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
    assert_eq!(scene.posts(id).len(), 4);
}

/// Returns a different account for each moment and call.
fn account_for(moment: &Fault, call: usize) -> u128 {
    let first = if *moment == Fault::Hang { 100 } else { 200 };
    first + call as u128
}
