//! What owners are told: that deliveries fail, and that their endpoint was switched off.

use common::clock::Clock;
use tests::{Answer, Fault, hand};
use webhooks::delivery::{Failure, Status};
use webhooks::notice::{About, EndpointNotice, FailingNotice, disabled_notice_id};
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
async fn a_second_warning_of_an_epoch_comes_a_day_later_at_the_earliest() {
    let scene = Scene::answering(500).await;
    scene.warned(1).await;
    for (event, hours, is_told) in [(2, 23, false), (3, 1, true), (4, 0, false)] {
        scene.wait(hours * 60 * 60);
        let id = scene.failed(event, 4).await;
        scene.attempt(id).await;
        let told = scene.told().await;
        let told_of = told.iter().map(|notice| matches!(notice, EndpointNotice::Failing(of) if of.delivery_id == id));
        assert_eq!(told_of.collect::<Vec<_>>(), vec![true; usize::from(is_told)], "of event {event}: {told:?}");
    }
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
    let scene = Scene::answering(500).await;
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
}
