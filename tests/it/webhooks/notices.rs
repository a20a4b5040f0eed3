//! What owners are told before an endpoint is switched off: that deliveries fail, and that the endpoint has recovered.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tests::{Answer, Fault, hand, uuid};
use types::clock::Clock;
use types::ids::DeliveryId;
use webhooks::delivery::Status;
use webhooks::delivery_id;
use webhooks::notice::{About, EndpointNotice, FailingNotice, RecoveredNotice};

use super::Scene;

const MINUTE_MILLIS: i64 = 60_000;

/// Returns a scene whose receiver fails until the switch is set.
pub(super) async fn failing_scene() -> (Scene, Arc<AtomicBool>) {
    let is_well = Arc::new(AtomicBool::new(false));
    let answers = Arc::clone(&is_well);
    let scene = Scene::with(move |_| Answer::Status(if answers.load(Ordering::Relaxed) { 204 } else { 500 })).await;
    (scene, is_well)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_warned_when_a_delivery_has_failed_for_36_minutes() {
    let scene = Scene::answering(500).await;
    let id = scene.failing(1, 3).await;
    assert_eq!(scene.stack.take_all_notices().await, []);
    scene.wait(36 * 60);
    scene.attempt(id).await;
    let (now, notices) = (scene.stack.clock.now(), scene.stack.take_all_notices().await);
    let expected = FailingNotice {
        about: About::new(notices[0].about().notice_id, &scene.endpoint),
        delivery_id: id,
        failed_attempts: 4,
        remaining_attempts: 3,
        last_status: Some(500),
        last_error: Some("the endpoint answered 500".to_owned()),
        failing_since: now.plus_millis(-36 * MINUTE_MILLIS),
        failing_at: now,
        disable_due_at: now.plus_millis((32 * 60 + 3) * MINUTE_MILLIS),
    };
    assert_eq!(notices, [EndpointNotice::Failing(expected)]);
    for _ in 5..=6 {
        scene.attempt(id).await;
    }
    assert_eq!(scene.stack.take_all_notices().await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_epoch_has_one_warning() {
    let scene = Scene::answering(500).await;
    let (admin, mut ids) = (scene.stack.webhooks(), BTreeSet::new());
    for events in [[1, 2], [3, 4]] {
        for event in events {
            scene.failing(event, 4).await;
        }
        let notices = scene.stack.take_all_notices().await;
        assert_eq!(notices.len(), 1, "{notices:?}");
        ids.insert(notices[0].about().notice_id);
        admin.disable(scene.endpoint.id).await.unwrap();
        admin.enable(scene.endpoint.id).await.unwrap();
    }
    assert_eq!(ids.len(), 2);
}

/// Failures from before never switch the endpoint off, so there is nothing to warn of. A delivery that fails from then on
/// warns again.
#[tokio::test(flavor = "multi_thread")]
async fn only_a_delivery_that_fails_in_the_next_epoch_warns_again() {
    let scene = Scene::answering(500).await;
    let (admin, id) = (scene.stack.webhooks(), scene.failing(1, 4).await);
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
    admin.disable(scene.endpoint.id).await.unwrap();
    admin.enable(scene.endpoint.id).await.unwrap();
    scene.attempt(id).await;
    assert_eq!(scene.stack.take_all_notices().await, []);
    let next = scene.failing(2, 4).await;
    let notices = scene.stack.take_all_notices().await;
    let [EndpointNotice::Failing(warning)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((warning.delivery_id, warning.failed_attempts, warning.remaining_attempts), (next, 4, 3));
    assert_eq!(warning.failing_since, scene.delivery(next).await.progress.attempts[0].at);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deliveries_that_fail_at_once_warn_once() {
    let scene = Scene::with(|number| if number <= 6 { Answer::Status(500) } else { Answer::Held(500) }).await;
    let ids = [scene.failing(1, 3).await, scene.failing(2, 3).await];
    let senders = [scene.stack.sender(), scene.stack.sender()];
    let messages = [scene.stack.next_message(ids[0]).await, scene.stack.next_message(ids[1]).await];
    let both = async { tokio::join!(hand(&senders[0], &messages[..1]), hand(&senders[1], &messages[1..])) };
    let answered = async {
        scene.receiver.received(8).await;
        scene.receiver.release_all();
    };
    let (handed, ()) = tokio::join!(both, answered);
    assert_eq!(handed, (vec![], vec![]));
    for id in ids {
        assert_eq!(scene.standing(id).await, (Status::Pending, 4));
    }
    scene.wait(120);
    scene.stack.sweep().await;
    let notices = scene.stack.take_all_notices().await;
    assert_eq!(notices.len(), 1, "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_is_told_once_and_a_second_warning_comes_a_day_later_at_the_earliest() {
    let (scene, is_well) = failing_scene().await;
    let id = scene.failing(1, 4).await;
    let warned_at = scene.stack.clock.now();
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
    is_well.store(true, Ordering::Relaxed);
    scene.wait(2 * 60 * 60);
    scene.attempt(id).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 5));
    let notices = scene.stack.take_all_notices().await;
    let expected = RecoveredNotice {
        about: About::new(notices[0].about().notice_id, &scene.endpoint),
        delivery_id: id,
        failed_attempts: 4,
        last_status: Some(204),
        failing_at: warned_at,
        recovered_at: scene.stack.clock.now(),
    };
    assert_eq!(notices, [EndpointNotice::Recovered(expected)]);

    let next = scene.event(2).await;
    scene.attempt(next).await;
    assert_eq!(scene.standing(next).await, (Status::Delivered, 1));
    is_well.store(false, Ordering::Relaxed);
    let third = scene.failing(3, 4).await;
    assert_eq!(scene.stack.take_all_notices().await, []);
    scene.wait(22 * 60 * 60);
    scene.attempt(third).await;
    let again = scene.stack.take_all_notices().await;
    assert!(matches!(&again[..], [EndpointNotice::Failing(notice)] if notice.delivery_id == third), "{again:?}");
    is_well.store(true, Ordering::Relaxed);
    scene.attempt(third).await;
    let over = scene.stack.take_all_notices().await;
    assert!(matches!(&over[..], [EndpointNotice::Recovered(_)]), "{over:?}");
    assert_ne!(again[0].about().notice_id, over[0].about().notice_id);
}

/// One event fails again and again while all others are delivered.
#[tokio::test(flavor = "multi_thread")]
async fn while_one_delivery_goes_on_failing_the_successes_of_others_are_no_recovery() {
    let (scene, is_well) = failing_scene().await;
    let poison = scene.failing(1, 4).await;
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
    for (event, failed) in [(2, 5), (3, 6)] {
        is_well.store(true, Ordering::Relaxed);
        let other = scene.event(event).await;
        scene.attempt(other).await;
        assert_eq!(scene.standing(other).await, (Status::Delivered, 1));
        assert_eq!(scene.stack.take_all_notices().await, []);
        is_well.store(false, Ordering::Relaxed);
        scene.attempt(poison).await;
        assert_eq!(scene.standing(poison).await, (Status::Pending, failed));
    }
    is_well.store(true, Ordering::Relaxed);
    scene.attempt(poison).await;
    let notices = scene.stack.take_all_notices().await;
    assert!(matches!(&notices[..], [EndpointNotice::Recovered(notice)] if notice.delivery_id == poison), "{notices:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_test_event_is_no_recovery() {
    let (scene, is_well) = failing_scene().await;
    let failing = scene.failing(1, 4).await;
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
    is_well.store(true, Ordering::Relaxed);
    let id = scene.stack.webhooks().test(scene.endpoint.id, None).await.unwrap();
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    assert_eq!(scene.stack.take_all_notices().await, []);
    scene.attempt(failing).await;
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
}

/// Whoever changed the endpoint during the attempt has dealt with it.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_from_before_the_endpoint_was_changed_warns_of_nothing() {
    for change in ["switched off", "switched off and on", "removed"] {
        let scene = Scene::with(|number| if number <= 3 { Answer::Status(500) } else { Answer::Held(500) }).await;
        let id = scene.failing(1, 3).await;
        attempt_during(&scene, id, change).await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 4), "{change}");
        assert_eq!(scene.stack.take_all_notices().await, [], "{change}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_from_before_the_endpoint_was_changed_is_no_recovery() {
    for change in ["switched off", "switched off and on", "removed"] {
        let scene = Scene::with(|number| if number <= 4 { Answer::Status(500) } else { Answer::Held(204) }).await;
        let id = scene.failing(1, 4).await;
        assert_eq!(scene.stack.take_all_notices().await.len(), 1, "{change}");
        attempt_during(&scene, id, change).await;
        assert_eq!(scene.standing(id).await, (Status::Delivered, 5), "{change}");
        assert_eq!(scene.stack.take_all_notices().await, [], "{change}");
    }
}

/// Makes an attempt, and changes the endpoint before it is answered.
async fn attempt_during(scene: &Scene, id: DeliveryId, change: &str) {
    let (admin, sender) = (scene.stack.webhooks(), scene.stack.sender());
    let message = [scene.stack.next_message(id).await];
    let posts = scene.posts(id).len();
    let changed = async {
        scene.receiver.received(posts + 1).await;
        if change == "removed" {
            admin.remove(scene.endpoint.id).await.unwrap();
        } else {
            admin.disable(scene.endpoint.id).await.unwrap();
        }
        if change == "switched off and on" {
            admin.enable(scene.endpoint.id).await.unwrap();
        }
        scene.receiver.release_all();
    };
    let (handed, ()) = tokio::join!(hand(&sender, &message), changed);
    assert_eq!(handed, [0; 0], "{change}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_and_a_recovery_cost_one_transaction_each_and_other_attempts_cost_nothing_more() {
    let (scene, is_well) = failing_scene().await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let made = async |event: u128, attempts: usize| {
        let (id, mut transactions) = (scene.event(event).await, Vec::new());
        for _ in 0..attempts {
            assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
            let calls = proxy.take_calls();
            transactions.push(calls.iter().filter(|call| call.operation == "TransactWriteItems").count());
        }
        transactions
    };
    assert_eq!(made(1, 6).await, [0, 0, 0, 1, 0, 0]);
    assert_eq!(made(2, 6).await, [0; 6]);
    is_well.store(true, Ordering::Relaxed);
    assert_eq!(made(3, 1).await, [0], "the others still fail");
    for (event, transactions) in [(1, 0), (2, 1)] {
        let id = delivery_id(uuid(event).into(), scene.endpoint.id);
        assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
        let calls = proxy.take_calls();
        assert_eq!(calls.iter().filter(|call| call.operation == "TransactWriteItems").count(), transactions);
    }

    let id = scene.event(4).await;
    assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
    let operations = proxy.take_operations();
    assert_eq!(operations, ["BatchGetItem", "PutItem", "UpdateItem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_that_cannot_be_sent_is_sent_by_the_sweep() {
    let scene = Scene::answering(500).await;
    let id = scene.failing(1, 3).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "SendMessage" { Fault::Refuse } else { Fault::None });
    assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
    assert_eq!((scene.standing(id).await, scene.stack.take_all_notices().await), ((Status::Pending, 4), vec![]));
    scene.wait(60);
    for notices in [1, 0] {
        scene.stack.sweep().await;
        assert_eq!(scene.stack.take_all_notices().await.len(), notices);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_that_cannot_be_stored_keeps_no_failure_from_being_recorded_and_comes_with_the_next_one() {
    let scene = Scene::answering(500).await;
    let id = scene.failing(1, 3).await;
    for fault in [Fault::Refuse, Fault::Cancelled("TransactionConflict")] {
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let attempts = scene.delivery(id).await.progress.attempts.len();
        proxy.plan(move |operation| if operation == "TransactWriteItems" { fault.clone() } else { Fault::None });
        assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Pending, attempts + 1));
        assert_eq!(scene.stack.take_all_notices().await, []);
    }
    scene.attempt(id).await;
    assert_eq!(scene.posts(id).len(), 6);
    let notices = scene.stack.take_all_notices().await;
    let [EndpointNotice::Failing(warning)] = &notices[..] else { panic!("{notices:?}") };
    assert_eq!((warning.delivery_id, warning.failed_attempts, warning.remaining_attempts), (id, 6, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_that_cannot_be_noted_keeps_no_acknowledgement_from_being_recorded() {
    let (scene, is_well) = failing_scene().await;
    let id = scene.failing(1, 4).await;
    assert_eq!(scene.stack.take_all_notices().await.len(), 1);
    is_well.store(true, Ordering::Relaxed);
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "TransactWriteItems" { Fault::Refuse } else { Fault::None });
    assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
    assert_eq!((scene.standing(id).await, scene.stack.take_all_notices().await), ((Status::Delivered, 5), vec![]));
    let next = scene.event(2).await;
    scene.attempt(next).await;
    let notices = scene.stack.take_all_notices().await;
    assert!(matches!(&notices[..], [EndpointNotice::Recovered(notice)] if notice.delivery_id == next), "{notices:?}");
}
