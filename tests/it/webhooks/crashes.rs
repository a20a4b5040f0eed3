//! A sender dies at each of its steps, and its message comes again.
//!
//! The store or a queue fails while attempts are made.

use std::sync::atomic::Ordering;

use platform::resources::Queue;
use tests::{Answer, Fault, hand, hand_to_die};
use types::ids::DeliveryId;
use webhooks::delivery::{MAX_CLAIMS, Status};
use webhooks::notice::{EndpointNotice, disabled_notice_id};

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

/// Faults after which the SDK or the store's module tries again.
const HICCUPS: [Fault; 5] = [
    Fault::LoseAnswer,
    Fault::Refuse,
    Fault::Error("ThrottlingException"),
    Fault::Error("TransactionConflictException"),
    Fault::Cancelled("TransactionConflict"),
];

/// Whether a call of this operation can meet this fault: conflicts happen only to writes of tables.
fn can_meet(operation: &str, fault: &Fault) -> bool {
    match fault {
        Fault::Error("TransactionConflictException") => operation == "UpdateItem",
        Fault::Cancelled(_) => operation == "TransactWriteItems",
        _ => true,
    }
}

/// Hands a delivery's next message to a sender whose `call`-th call fails once. Returns whether the sender made more
/// calls than that.
async fn attempt_with_a_hiccup(scene: &Scene, id: DeliveryId, call: usize, fault: &Fault) -> bool {
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let (mut calls, fault) = (0, fault.clone());
    proxy.plan(move |operation| {
        calls += 1;
        if calls == call && can_meet(operation, &fault) { fault.clone() } else { Fault::None }
    });
    assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
    proxy.take_calls().len() > call
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hiccup_at_any_call_of_an_attempt_costs_no_second_post_and_no_second_record() {
    for (status, standing) in [(204, Status::Delivered), (500, Status::Pending)] {
        let scene = Scene::answering(status).await;
        let mut event = 0;
        for fault in &HICCUPS {
            let (mut call, mut went_on) = (0, true);
            while went_on {
                (call, event) = (call + 1, event + 1);
                let id = scene.event(event).await;
                went_on = attempt_with_a_hiccup(&scene, id, call, fault).await;
                assert_eq!(scene.standing(id).await, (standing, 1), "{fault:?} at {call}");
                assert_eq!(scene.posts(id).len(), 1, "{fault:?} at {call}");
            }
            assert!(call >= 4, "{fault:?} at {call}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hiccup_at_any_call_of_the_last_attempt_costs_no_second_notice() {
    let scene = Scene::answering(500).await;
    let mut user = 100;
    for fault in &HICCUPS {
        let (mut call, mut went_on) = (0, true);
        while went_on {
            (call, user) = (call + 1, user + 1);
            let scene = scene.other(user).await;
            let id = scene.before_last(user).await;
            went_on = attempt_with_a_hiccup(&scene, id, call, fault).await;
            scene.wait(120);
            scene.stack.sweep().await;
            assert_eq!(scene.standing(id).await, (Status::Failed, 7), "{fault:?} at {call}");
            assert_eq!(scene.posts(id).len(), 7, "{fault:?} at {call}");
            assert_eq!(scene.switch().await, OFF_BY_FAILURES, "{fault:?} at {call}");
            let notices = scene.stack.take_notices().await;
            let ids: Vec<_> = notices.iter().map(|notice| notice.about.notice_id).collect();
            assert_eq!(ids, [disabled_notice_id(scene.endpoint.id, 1)], "{fault:?} at {call}");
        }
    }
}

/// How often a message comes again while something is away.
const ROUNDS: u64 = 6;

/// However long the outage lasts, no message uses up its receives.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_or_the_keyring_is_away_messages_are_put_off_and_none_is_lost() {
    // `PutItem` claims, and `UpdateItem` records, after a POST.
    for away in ["BatchGetItem", "GetSecretValue", "PutItem", "UpdateItem"] {
        let scene = Scene::answering(204).await;
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        proxy.plan(move |operation| if operation == away { Fault::Refuse } else { Fault::None });
        let id = scene.event(1).await;
        let message = [scene.stack.next_message(id).await];
        for _ in 0..ROUNDS {
            assert_eq!(hand(&sender, &message).await, [0; 0], "without {away}");
        }
        let copies = scene.stack.queue(Queue::WebhooksRetry).await;
        assert_eq!((copies.count().await, copies.visible_count().await), (ROUNDS, 0), "without {away}");
        let posts = scene.receiver.so_far().len();
        assert_eq!(posts, usize::from(away == "UpdateItem"), "without {away}");
        proxy.set_fault(Fault::None);
        scene.outlast_leases();
        assert_eq!(hand(&sender, &message).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
        assert_eq!(scene.receiver.so_far().len(), posts + 1);
        assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_whose_next_message_cannot_be_sent_is_not_recorded() {
    let scene = Scene::with(|number| Answer::Status(if number == 1 { 500 } else { 204 })).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "SendMessageBatch" { Fault::Refuse } else { Fault::None });
    let id = scene.event(1).await;
    let message = [scene.stack.next_message(id).await];
    assert_eq!(hand(&sender, &message).await, [0], "the message stays in its queue");
    assert_eq!(scene.standing(id).await, (Status::Pending, 0));
    proxy.set_fault(Fault::None);
    scene.outlast_leases();
    assert_eq!(hand(&sender, &message).await, [0; 0]);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_cannot_be_sent_is_sent_by_the_sweep() {
    let scene = Scene::answering(500).await;
    let id = scene.before_last(1).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "SendMessage" { Fault::Refuse } else { Fault::None });
    assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
    assert_eq!((scene.switch().await, scene.stack.take_notices().await), (OFF_BY_FAILURES, vec![]));
    scene.wait(60);
    for notices in [1, 0] {
        scene.stack.sweep().await;
        assert_eq!(scene.stack.take_notices().await.len(), notices);
    }
}
