//! A sender dies at each of its steps, and its message comes again.
//!
//! The store or a queue fails while attempts are made.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use admin::webhooks::{Recoverable, Selection, WantedDeliveries};
use aws_lambda_events::sqs::SqsMessage;
use common::ids::DeliveryId;
use common::resources::Queue;
use futures_util::future::join_all;
use tests::{Fault, hand, hand_to_die};
use webhooks::delivery::{Failure, MAX_CLAIMS, Status};
use webhooks::notice::{EndpointNotice, disabled_notice_id};

use super::{BEFORE_LAST, EXHAUSTED, OFF_BY_FAILURES, Scene};
use crate::repair::endpoints::repair_endpoints;

/// An attempt: what was before it, and how it must end whatever happens to its sender.
struct Course {
    /// How many attempts have failed before.
    failed: u32,
    is_acknowledged: bool,
    standing: (Status, usize),
    /// What the owner is told.
    told: Option<&'static str>,
    /// How many calls its sender makes at least.
    calls: usize,
}

// The calls read the endpoints and the keyring, claim, and record.
const SUCCESS: Course =
    Course { failed: 0, is_acknowledged: true, standing: (Status::Delivered, 1), told: None, calls: 4 };
// With the message for the next attempt.
const FAILURE: Course =
    Course { failed: 0, is_acknowledged: false, standing: (Status::Pending, 1), told: None, calls: 5 };
// With three calls for the notice.
const WARNING: Course =
    Course { failed: 3, is_acknowledged: false, standing: (Status::Pending, 4), told: Some("failing"), calls: 7 };
// With three calls for the notice.
const LAST_FAILURE: Course =
    Course { failed: BEFORE_LAST, is_acknowledged: false, standing: EXHAUSTED, told: Some("disabled"), calls: 7 };

/// No sender makes more calls than this for an attempt.
const MOST_CALLS: usize = 12;

/// A delivery in an account of its own, whose sender meets a fault at one of its calls, counted from 1.
struct Cut {
    scene: Scene,
    id: DeliveryId,
    message: [SqsMessage; 1],
    fault: Fault,
    call: usize,
}

impl Course {
    /// Prepares a delivery for each fault at each call. The receiver answers as the course says from then on.
    async fn cuts(&self, faults: &[Fault]) -> (Scene, Vec<Cut>) {
        let (scene, is_well) = Scene::failing_until_well().await;
        let first = scene.stack.queue(Queue::WebhooksFirst);
        let mut cuts = Vec::new();
        for (number, fault) in (1..).zip(faults) {
            for call in 1..=MOST_CALLS {
                let number = number * 1_000 + call as u128;
                let scene = scene.other(number).await;
                let (id, message) = match self.failed {
                    0 => (scene.event(number).await, first.take(1).await.try_into().unwrap()),
                    failed => {
                        let id = scene.failed(number, failed).await;
                        (id, scene.message(id).await)
                    }
                };
                cuts.push(Cut { scene, id, message, fault: fault.clone(), call });
            }
        }
        is_well.store(self.is_acknowledged, Ordering::Relaxed);
        (scene, cuts)
    }

    /// Asserts that each attempt has ended as it must, after this many POSTs, and that owners were told once.
    async fn assert_ended(&self, scene: &Scene, cuts: &[Cut], posts: RangeInclusive<usize>) {
        let mut told = BTreeMap::<_, Vec<_>>::new();
        for notice in scene.stack.take_all_notices().await {
            let (what, delivery) = match &notice {
                EndpointNotice::Failing(notice) => ("failing", notice.delivery_id),
                EndpointNotice::Disabled(notice) => ("disabled", notice.delivery_id),
            };
            if what == "disabled" {
                assert_eq!(notice.about().notice_id, disabled_notice_id(notice.about().endpoint_id, 1));
            }
            told.entry(delivery).or_default().push(what);
        }
        for Cut { scene, id, fault, call, .. } in cuts {
            let at = format!("{fault:?} at {call}");
            assert_eq!(scene.standing(*id).await, self.standing, "{at}");
            let of_delivery = scene.posts(*id);
            assert!(posts.contains(&of_delivery.len()), "{} POSTs with {at}", of_delivery.len());
            assert!(of_delivery.iter().all(|post| post.body == of_delivery[0].body), "{at}");
            let told = told.remove(id).unwrap_or_default();
            assert_eq!(told, self.told.into_iter().collect::<Vec<_>>(), "{at}");
            assert_eq!(scene.switch().await == OFF_BY_FAILURES, self.told == Some("disabled"), "{at}");
        }
        assert_eq!(scene.stack.queue(Queue::WebhooksDead).count().await, 0);
    }

    /// Lets a sender die at each of its calls: before the call arrives, and after it took effect. The message comes
    /// again twice: soon, while the dead sender's lease still holds, and after its end.
    async fn assert_survives_deaths(&self) {
        let (scene, cuts) = self.cuts(&[Fault::Hang, Fault::HangAfter]).await;
        let died = join_all(cuts.iter().map(|Cut { scene, id, message, fault, call }| async move {
            let (mortal, proxy) = scene.stack.sender_behind_proxy().await;
            let died = hand_to_die(&mortal, &proxy, message, *call, fault.clone()).await;
            let posts = scene.posts(*id).len();
            let is_claimed = scene.found(*id).await.is_some_and(|delivery| delivery.progress.claims > 0);
            scene.handle(message).await;
            let is_open = is_claimed && scene.posts(*id).len() > posts;
            assert!(!is_open, "{fault:?} at {call}: a second POST while the first may still be open");
            died
        }));
        let died = died.await;
        for died in died.chunks(MOST_CALLS) {
            assert!(died[..self.calls].iter().all(|died| *died) && !died[MOST_CALLS - 1], "{died:?}");
        }
        scene.outlast_leases();
        join_all(cuts.iter().map(|cut| cut.scene.handle(&cut.message))).await;
        scene.stack.sweep().await;
        self.assert_ended(&scene, &cuts, 1..=2).await;
        if self.standing.0 == Status::Pending {
            for Cut { scene, id, fault, call, .. } in &cuts {
                scene.attempt(*id).await;
                let next = (Status::Pending, self.standing.1 + 1);
                assert_eq!(scene.standing(*id).await, next, "{fault:?} at {call}");
            }
        }
    }

    /// Lets one call fail in a way after which the SDK or the store's module tries again.
    async fn assert_survives_hiccups(&self) {
        let hiccups = [
            Fault::LoseAnswer,
            Fault::Refuse,
            Fault::Error("ThrottlingException"),
            Fault::Error("TransactionConflictException"),
            Fault::Cancelled("TransactionConflict"),
        ];
        // Conflicts happen only to writes of tables.
        let can_meet = |operation: &str, fault: &Fault| match fault {
            Fault::Error("TransactionConflictException") => operation == "UpdateItem",
            Fault::Cancelled(_) => operation == "TransactWriteItems",
            _ => true,
        };
        let (scene, cuts) = self.cuts(&hiccups).await;
        let handed = join_all(cuts.iter().map(|Cut { scene, message, fault, call, .. }| async move {
            let (sender, proxy) = scene.stack.sender_behind_proxy().await;
            let (mut calls, fault, cut) = (0, fault.clone(), *call);
            proxy.plan(move |operation| {
                calls += 1;
                if calls == cut && can_meet(operation, &fault) { fault.clone() } else { Fault::None }
            });
            assert_eq!(hand(&sender, message).await, [0; 0]);
            let calls = proxy.take_calls().len();
            assert!((self.calls..MOST_CALLS).contains(&calls), "{calls} calls with a fault at {call}");
        }));
        handed.await;
        scene.wait(2 * 60);
        scene.stack.sweep().await;
        self.assert_ended(&scene, &cuts, 1..=1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_an_attempt_that_succeeds_ends_in_one_recorded_success() {
    SUCCESS.assert_survives_deaths().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_a_failed_attempt_ends_in_one_recorded_failure_and_a_next_attempt() {
    FAILURE.assert_survives_deaths().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_the_attempt_that_warns_ends_in_one_warning() {
    WARNING.assert_survives_deaths().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_death_at_any_step_of_the_last_attempt_ends_in_one_switch_off_with_one_notice() {
    LAST_FAILURE.assert_survives_deaths().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hiccup_at_any_call_of_an_attempt_costs_no_second_post_no_second_record_and_no_second_notice() {
    for course in [SUCCESS, FAILURE, LAST_FAILURE] {
        course.assert_survives_hiccups().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn three_posts_without_a_record_count_as_one_attempt_without_a_result() {
    let scene = Scene::answering(204).await;
    let (id, message) = scene.sent(1).await;
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
    scene.handle(&message).await;
    let progress = scene.delivery(id).await.progress;
    assert_eq!((progress.status, progress.failed_attempts, progress.claims), (Status::Pending, 1, 0));
    assert_eq!((progress.attempts[0].status, progress.attempts[0].error.as_deref()), (None, Some("no result")));
    assert_eq!(scene.posts(id).len(), 3);
    scene.attempt(id).await;
    assert_eq!(scene.standing(id).await, (Status::Delivered, 2));
    assert_eq!(scene.posts(id).len(), 4);
}

/// Nothing calls for the attempt any more: an operator purged the queue, or SQS lost the message.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_attempt_whose_sender_and_message_are_gone_is_seen_and_sent_again_or_repaired() {
    let repaired = Scene::answering(204).await;
    let (resent, removed) = (repaired.other(6).await, repaired.other(7).await);
    let first = repaired.stack.queue(Queue::WebhooksFirst);
    let mut lost = Vec::new();
    for (event, scene) in (1..).zip([&repaired, &resent, &removed]) {
        let (id, (mortal, proxy)) = (scene.event(event).await, scene.stack.sender_behind_proxy().await);
        let message = first.take(1).await;
        assert!(hand_to_die(&mortal, &proxy, &message, SUCCESS.calls, Fault::Hang).await);
        lost.push(id);
    }
    let admin = repaired.stack.webhooks();
    let wanted = WantedDeliveries { status: Some(Status::Pending), ..WantedDeliveries::default() };
    for (scene, id) in [&repaired, &resent, &removed].into_iter().zip(&lost) {
        let (endpoint, now) = (scene.endpoint.id, scene.stack.now());
        let pending = admin.deliveries(endpoint, &wanted, None, 10).await.unwrap().deliveries;
        assert_eq!(pending.iter().map(|delivery| delivery.id).collect::<Vec<_>>(), [*id]);
        assert!(pending[0].progress.is_leased(now));
        assert_eq!(admin.endpoint(endpoint).await.unwrap().1.pending, 1);
    }
    let selection = Selection { statuses: Recoverable::ALL.into(), since: None, until: None };
    let survey = async |scene: &Scene| admin.survey(scene.endpoint.id, &selection, |_| {}).await.unwrap().pending;
    assert_eq!(survey(&resent).await, 0, "its attempt may still be under way");
    assert_eq!(without_wake_up(&repaired, true).await, 0, "as those of all others that are");
    repaired.outlast_leases();

    assert_eq!((survey(&resent).await, survey(&repaired).await), (1, 1));
    assert_eq!(admin.recover(resent.endpoint.id, &selection, |_| {}).await.unwrap().sent, 1);
    admin.remove(removed.endpoint.id).await.unwrap();
    resent.stack.drain(resent.user).await;
    assert_eq!((resent.standing(lost[1]).await, resent.posts(lost[1]).len()), ((Status::Delivered, 1), 2));
    assert_eq!(removed.delivery(lost[2]).await.progress.failure, Some(Failure::EndpointRemoved));

    for (dry_run, found) in [(true, 1), (false, 1), (true, 0)] {
        assert_eq!(without_wake_up(&repaired, dry_run).await, found);
    }
    repaired.sweep_and_drain().await;
    assert_eq!((repaired.standing(lost[0]).await, repaired.posts(lost[0]).len()), ((Status::Delivered, 1), 2));
}

/// Returns how many deliveries a repair finds for which nothing calls, and nothing else is wrong.
async fn without_wake_up(scene: &Scene, dry_run: bool) -> u64 {
    let done = repair_endpoints(&scene.stack, scene.stack.webhooks().store, dry_run).await.unwrap();
    assert!(done.changed_endpoints.is_empty() && done.unreadable.is_empty(), "{done:?}");
    done.count("deliveries without a wake-up").0
}

/// A repair does not wait for the end of a lease. Whoever holds it may be dead.
#[tokio::test(flavor = "multi_thread")]
async fn a_repair_during_the_lease_of_a_dead_sender_lets_the_drain_make_the_attempt_after_it() {
    let scene = Scene::answering(204).await;
    let (id, (mortal, proxy)) = (scene.event(1).await, scene.stack.sender_behind_proxy().await);
    let message = scene.stack.queue(Queue::WebhooksFirst).take(1).await;
    assert!(hand_to_die(&mortal, &proxy, &message, SUCCESS.calls, Fault::Hang).await);
    assert_eq!(without_wake_up(&scene, false).await, 0);
    scene.outlast_leases();
    assert_eq!(without_wake_up(&scene, true).await, 0, "it has a wake-up");
    scene.sweep_and_drain().await;
    assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), 2));
}

/// However long the outage lasts, no message uses up its receives.
#[tokio::test(flavor = "multi_thread")]
async fn while_the_store_or_the_keyring_is_away_messages_are_put_off_and_none_is_lost() {
    /// How often a message comes again while something is away.
    const ROUNDS: u64 = 6;
    // `PutItem` claims, and `UpdateItem` records, after a POST.
    for away in ["BatchGetItem", "GetSecretValue", "PutItem", "UpdateItem"] {
        let scene = Scene::answering(204).await;
        let ((id, message), (sender, proxy)) = (scene.sent(1).await, scene.stack.sender_behind_proxy().await);
        proxy.plan(move |operation| if operation == away { Fault::Refuse } else { Fault::None });
        for _ in 0..ROUNDS {
            assert_eq!(hand(&sender, &message).await, [0; 0], "without {away}");
        }
        let copies = scene.stack.queue(Queue::WebhooksRetry);
        assert_eq!((copies.count().await, copies.visible_count().await), (ROUNDS, 0), "without {away}");
        let posts = scene.posts(id).len();
        assert_eq!(posts, usize::from(away == "UpdateItem"), "without {away}");
        proxy.set_fault(Fault::None);
        scene.outlast_leases();
        assert_eq!(hand(&sender, &message).await, [0; 0]);
        assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), posts + 1));
        assert_eq!(scene.stack.queue(Queue::WebhooksDead).count().await, 0);
    }
}
