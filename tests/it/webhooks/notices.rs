//! What owners are told: that deliveries fail, that the endpoint has recovered, and that it was switched off.

use std::sync::atomic::Ordering;

use common::clock::Clock;
use common::ids::DeliveryId;
use tests::{Answer, Fault, hand};
use webhooks::delivery::{Failure, Status};
use webhooks::notice::{About, EndpointNotice, FailingNotice, RecoveredNotice, disabled_notice_id};
use webhooks::{ATTEMPTS, Schedule};

use super::{BEFORE_LAST, EXHAUSTED, OFF_BY_FAILURES, Scene};

const MINUTE_MILLIS: i64 = 60_000;

impl Scene {
    /// Takes the notices, of which there must be one at most.
    async fn told(&self) -> Option<EndpointNotice> {
        let mut notices = self.stack.take_all_notices().await;
        assert!(notices.len() <= 1, "{notices:?}");
        notices.pop()
    }

    /// Asserts that the owner was told once, of this delivery, that the endpoint has recovered.
    async fn assert_told_of_recovery(&self, id: DeliveryId) {
        let told = self.told().await;
        assert!(matches!(&told, Some(EndpointNotice::Recovered(notice)) if notice.delivery_id == id), "{told:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_owner_is_warned_when_a_delivery_has_failed_for_36_minutes() {
    let scene = Scene::answering(500).await;
    let id = scene.failing(1, 3).await;
    assert_eq!(scene.told().await, None);
    scene.wait(36 * 60);
    scene.attempt(id).await;
    let (now, told) = (scene.stack.clock.now(), scene.told().await.unwrap());
    let expected = FailingNotice {
        about: About::new(told.about().notice_id, &scene.endpoint),
        delivery_id: id,
        failed_attempts: 4,
        remaining_attempts: ATTEMPTS - 4,
        last_status: Some(500),
        last_error: Some("the endpoint answered 500".to_owned()),
        failing_since: now.plus_millis(-36 * MINUTE_MILLIS),
        failing_at: now,
        disable_due_at: Schedule::default().last_due(4, now),
    };
    assert_eq!(told, EndpointNotice::Failing(expected));
    for _ in 5..ATTEMPTS {
        scene.attempt(id).await;
    }
    assert_eq!(scene.told().await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_epoch_has_one_warning_and_one_switch_off_with_a_notice_of_its_own() {
    let scene = Scene::answering(500).await;
    for (event, epoch) in [(1, 1), (11, 2)] {
        scene.warned(event).await;
        let other = scene.failed(event + 1, 3).await;
        scene.attempt(other).await;
        assert_eq!((scene.standing(other).await, scene.told().await), ((Status::Pending, 4), None));
        let last = scene.failed(event + 2, BEFORE_LAST).await;
        scene.attempt(last).await;
        assert_eq!(scene.switch().await, OFF_BY_FAILURES);
        let Some(EndpointNotice::Disabled(notice)) = scene.told().await else { panic!("not told in epoch {epoch}") };
        let notice = (notice.about.notice_id, notice.delivery_id);
        assert_eq!(notice, (disabled_notice_id(scene.endpoint.id, epoch), last));
        scene.enable().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_deliveries_that_fail_at_once_tell_the_owner_once() {
    let scene = Scene::answering(500).await;
    for (user, failed, standing) in [(10, 3, (Status::Pending, 4)), (20, BEFORE_LAST, EXHAUSTED)] {
        let scene = scene.beside(user, |_| Answer::Held(500)).await;
        let ids = [scene.failed(user, failed).await, scene.failed(user + 1, failed).await];
        let messages = [scene.message(ids[0]).await, scene.message(ids[1]).await];
        let answered = async {
            scene.receiver.received(2).await;
            scene.receiver.release_all();
        };
        tokio::join!(scene.handle(&messages[0]), scene.handle(&messages[1]), answered);
        for id in ids {
            let progress = scene.delivery(id).await.progress;
            assert_eq!((progress.status, progress.attempts.len()), standing);
            assert_eq!(progress.failure, (failed == BEFORE_LAST).then_some(Failure::Unacknowledged));
        }
        scene.wait(120);
        scene.stack.sweep().await;
        match scene.told().await {
            Some(EndpointNotice::Failing(notice)) if failed == 3 => assert!(ids.contains(&notice.delivery_id)),
            Some(EndpointNotice::Disabled(notice)) if failed == BEFORE_LAST => {
                assert!(ids.contains(&notice.delivery_id));
                assert_eq!(notice.about.notice_id, disabled_notice_id(scene.endpoint.id, 1));
            }
            told => panic!("{told:?}"),
        }
        assert_eq!(scene.switch().await == OFF_BY_FAILURES, failed == BEFORE_LAST);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recovery_is_told_once_and_a_second_warning_comes_a_day_later_at_the_earliest() {
    let (scene, is_well) = Scene::failing_until_well().await;
    let id = scene.failed(1, 3).await;
    scene.attempt(id).await;
    let (warned, warned_at) = (scene.told().await.unwrap(), scene.stack.clock.now());
    is_well.store(true, Ordering::Relaxed);
    scene.wait(2 * 60 * 60);
    scene.attempt(id).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 5));
    let told = scene.told().await.unwrap();
    let expected = RecoveredNotice {
        about: About::new(told.about().notice_id, &scene.endpoint),
        delivery_id: id,
        failed_attempts: 4,
        last_status: Some(204),
        failing_notice_id: warned.about().notice_id,
        failing_at: warned_at,
        recovered_at: scene.stack.clock.now(),
    };
    assert_eq!(told, EndpointNotice::Recovered(expected));

    let next = scene.event(2).await;
    scene.attempt(next).await;
    assert_eq!(scene.standing(next).await, (Status::Delivered, 1));
    is_well.store(false, Ordering::Relaxed);
    let third = scene.failing(3, 4).await;
    assert_eq!(scene.told().await, None);
    scene.wait(22 * 60 * 60);
    scene.attempt(third).await;
    let again = scene.told().await;
    assert!(matches!(&again, Some(EndpointNotice::Failing(notice)) if notice.delivery_id == third), "{again:?}");
    is_well.store(true, Ordering::Relaxed);
    scene.attempt(third).await;
    scene.assert_told_of_recovery(third).await;
}

/// One event fails again and again while all others are delivered.
#[tokio::test(flavor = "multi_thread")]
async fn while_one_delivery_goes_on_failing_the_successes_of_others_are_no_recovery() {
    let (scene, is_well) = Scene::failing_until_well().await;
    let poison = scene.warned(1).await;
    for (event, failed) in [(2, 5), (3, 6)] {
        is_well.store(true, Ordering::Relaxed);
        let other = scene.event(event).await;
        scene.attempt(other).await;
        // Neither is that of a test.
        let test = scene.stack.webhooks().test(scene.endpoint.id, None).await.unwrap();
        scene.stack.drain(scene.user).await;
        assert_eq!([scene.standing(other).await, scene.standing(test).await], [(Status::Delivered, 1); 2]);
        assert_eq!(scene.told().await, None);
        is_well.store(false, Ordering::Relaxed);
        scene.attempt(poison).await;
        assert_eq!(scene.standing(poison).await, (Status::Pending, failed));
    }
    is_well.store(true, Ordering::Relaxed);
    scene.attempt(poison).await;
    scene.assert_told_of_recovery(poison).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warning_and_a_recovery_cost_one_transaction_each_and_other_attempts_cost_nothing_more() {
    let (scene, is_well) = Scene::failing_until_well().await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let made = async |id: DeliveryId, attempts: usize| {
        let mut transactions = Vec::new();
        for _ in 0..attempts {
            assert_eq!(hand(&sender, &scene.message(id).await).await, [0; 0]);
            let calls = proxy.take_calls();
            transactions.push(calls.iter().filter(|call| call.operation == "TransactWriteItems").count());
        }
        transactions
    };
    let [first, second] = [scene.event(1).await, scene.event(2).await];
    assert_eq!(made(first, 6).await, [0, 0, 0, 1, 0, 0]);
    assert_eq!(made(second, 6).await, [0; 6]);
    is_well.store(true, Ordering::Relaxed);
    assert_eq!(made(scene.event(3).await, 1).await, [0], "the others still fail");
    assert_eq!([made(first, 1).await, made(second, 1).await], [[0], [1]]);

    let (_, message) = scene.sent(4).await;
    assert_eq!(hand(&sender, &message).await, [0; 0]);
    assert_eq!(proxy.take_operations(), ["BatchGetItem", "PutItem", "UpdateItem"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_cannot_be_sent_is_sent_by_the_sweep() {
    let scene = Scene::answering(500).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "SendMessage" { Fault::Refuse } else { Fault::None });
    for (event, failed, standing) in [(1, 3, (Status::Pending, 4)), (2, BEFORE_LAST, EXHAUSTED)] {
        let id = scene.failed(event, failed).await;
        assert_eq!(hand(&sender, &scene.message(id).await).await, [0; 0]);
        assert_eq!((scene.standing(id).await, scene.told().await), (standing, None));
        scene.wait(60);
        scene.stack.sweep().await;
        assert!(scene.told().await.is_some());
        scene.stack.sweep().await;
        assert_eq!(scene.told().await, None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_that_cannot_be_stored_keeps_no_result_from_being_recorded_and_comes_with_the_next_one() {
    let (scene, is_well) = Scene::failing_until_well().await;
    let id = scene.failed(1, 3).await;
    for fault in [Fault::Refuse, Fault::Cancelled("TransactionConflict")] {
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let attempts = scene.delivery(id).await.progress.attempts.len();
        proxy.plan(move |operation| if operation == "TransactWriteItems" { fault.clone() } else { Fault::None });
        assert_eq!(hand(&sender, &scene.message(id).await).await, [0; 0]);
        assert_eq!((scene.standing(id).await, scene.told().await), ((Status::Pending, attempts + 1), None));
    }
    scene.attempt(id).await;
    assert_eq!(scene.posts(id).len(), 3);
    let Some(EndpointNotice::Failing(warning)) = scene.told().await else { panic!("not warned") };
    assert_eq!((warning.delivery_id, warning.failed_attempts, warning.remaining_attempts), (id, 6, ATTEMPTS - 6));

    is_well.store(true, Ordering::Relaxed);
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    proxy.plan(|operation| if operation == "TransactWriteItems" { Fault::Refuse } else { Fault::None });
    assert_eq!(hand(&sender, &scene.message(id).await).await, [0; 0]);
    assert_eq!((scene.standing(id).await, scene.told().await), ((Status::Delivered, 7), None));
    let next = scene.event(2).await;
    scene.attempt(next).await;
    scene.assert_told_of_recovery(next).await;
}
