//! The store or a queue fails while attempts are made.

use platform::resources::Queue;
use tests::{Answer, Fault, hand};
use types::ids::DeliveryId;
use webhooks::delivery::Status;
use webhooks::notice::disabled_notice_id;

use super::{OFF_BY_FAILURES, Scene};

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
