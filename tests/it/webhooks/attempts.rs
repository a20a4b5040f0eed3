//! The same message many times, acknowledgements that come late, messages that cannot be handled, and a round of
//! attempts, each at its time.

use std::collections::BTreeSet;

use common::clock::{Clock, SystemClock};
use common::event::EventKind;
use common::resources::Queue;
use common::timestamp::Timestamp;
use tests::{Answer, Fault, Received, Receiver, SignatureValidity, Stack, hand, message, sale, to_loopback, uuid};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};
use webhooks::delivery::{Failure, Lane, Status};
use webhooks::endpoint::Switch;
use webhooks::notice::{DisabledNotice, EndpointNotice};
use webhooks::{DELAYS_SECONDS, delivery_id};

use super::{BEFORE_LAST, EXHAUSTED, OFF_BY_FAILURES, OVERDUE_SECONDS, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_message_at_many_senders_at_once_make_one_post() {
    const COPIES: usize = 50;
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let (id, message) = scene.sent(1).await;
    let senders = [scene.stack.sender(), scene.stack.sender()];
    let mut hands = JoinSet::new();
    for sender in senders.iter().cycle().take(COPIES) {
        let (sender, message) = (sender.clone(), message.clone());
        hands.spawn(async move { hand(&sender, &message).await });
    }
    // All senders give up except the one whose POST is open.
    for _ in 1..COPIES {
        assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
    }
    assert_eq!(scene.receiver.received(1).await.len(), 1);
    // Their messages are not lost: each has sent a copy that waits until the open attempt must have ended.
    let retry = scene.stack.queue(Queue::WebhooksRetry);
    assert_eq!((retry.count().await, retry.visible_count().await), (COPIES as u64 - 1, 0));
    scene.receiver.release_all();
    assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    scene.outlast_leases();
    scene.handle(&message).await;
    assert_eq!(scene.receiver.so_far().len(), 1);
}

/// The first POST of the last attempt stays open until its lease has ended. Another sender makes the attempt again,
/// which will fail. Then the first is acknowledged.
#[tokio::test(flavor = "multi_thread")]
async fn a_late_acknowledgement_of_the_last_attempt_prevents_the_switch_off() {
    let scene = Scene::with(|number| Answer::Held(if number == 1 { 200 } else { 500 })).await;
    let id = scene.failed(1, BEFORE_LAST).await;
    let message = scene.message(id).await;
    let second = async {
        scene.receiver.received(1).await;
        scene.outlast_leases();
        let acknowledged = async {
            scene.receiver.received(2).await;
            scene.receiver.release_until(1);
            scene.stack.delivery_as(id, Status::Delivered).await;
            scene.receiver.release_all();
        };
        tokio::join!(scene.handle(&message), acknowledged);
    };
    tokio::join!(scene.handle(&message), second);
    assert_eq!((scene.standing(id).await, scene.receiver.so_far().len()), ((Status::Delivered, EXHAUSTED.1), 2));
    assert_eq!((scene.switch().await, scene.stack.take_notices().await), (Switch::On, vec![]));
}

const UNREADABLE: [&str; 4] = ["null", "{", r#"{"type":"attempt"}"#, r#"{"type":"recall"}"#];

/// Returns whether a call may be a step of a delivery.
fn is_step(operation: &str) -> bool {
    matches!(operation, "PutItem" | "UpdateItem")
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_are_unreadable_or_invalid_for_the_store_become_dead_letters_with_the_reason_at_once() {
    let scene = Scene::answering(204).await;
    let (poison, (other, readable)) = (scene.stored(1).await, scene.sent(2).await);
    let mut batch = [scene.message(poison).await, readable].concat();
    let invalid = batch[0].body.clone().unwrap();
    for (position, body) in [0, 2, 4, 5].into_iter().zip(UNREADABLE) {
        batch.insert(position, message(Lane::First, body));
    }
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let key: &'static str = poison.to_string().leak();
    proxy.plan(move |operation| if is_step(operation) { Fault::Invalid(key) } else { Fault::None });
    assert_eq!(hand(&sender, &batch).await, [0; 0]);

    let [dead, retry] = [Queue::WebhooksDead, Queue::WebhooksRetry].map(|queue| scene.stack.queue(queue));
    let letters = dead.take_letters(1 + UNREADABLE.len()).await;
    let bodies: BTreeSet<&str> = letters.iter().map(|letter| letter.body.as_str()).collect();
    assert_eq!(bodies, UNREADABLE.into_iter().chain([&*invalid]).collect::<BTreeSet<_>>());
    for letter in &letters {
        let is_invalid = letter.body == invalid;
        let reason = if is_invalid { "invalid request: ValidationException" } else { "unreadable message: " };
        assert!(letter.attribute("defect").starts_with(reason), "{letter:?}");
    }
    assert_eq!((dead.count().await, retry.count().await), (0, 0));
    scene.assert_delivered(&[other]).await;

    // Its wake-up brings the invalid one back. By then the store takes its steps.
    assert_eq!(scene.standing(poison).await, (Status::Pending, 0));
    proxy.set_fault(Fault::None);
    scene.wait(OVERDUE_SECONDS);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(poison).await, (Status::Delivered, 1));

    // The record of an attempt may be invalid as well.
    for (event, status) in [(11, 204), (12, 500)] {
        let scene = scene.beside(event, move |_| Answer::Status(status)).await;
        let (_, message) = scene.sent(event).await;
        let mut steps = 0;
        proxy.plan(move |operation| {
            steps += usize::from(is_step(operation));
            if is_step(operation) && steps == 2 { Fault::Error("ValidationException") } else { Fault::None }
        });
        assert_eq!(hand(&sender, &message).await, [0; 0], "{status}");
        assert_eq!((dead.take(1).await.len(), scene.receiver.so_far().len()), (1, 1), "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_stays_in_its_queue_while_its_copy_or_the_next_one_cannot_be_sent() {
    let scene = Scene::answering(204).await;
    // The copy for the dead letters, and the message for the next attempt after a failure.
    for (event, is_invalid, standing) in [(11, true, None), (12, false, Some((Status::Pending, 0)))] {
        let fails = move |number| number == 1 && !is_invalid;
        let scene = scene.beside(event, move |number| Answer::Status(if fails(number) { 500 } else { 204 })).await;
        let ((id, message), (sender, proxy)) = (scene.sent(event).await, scene.stack.sender_behind_proxy().await);
        proxy.plan(move |operation| match operation {
            "SendMessageBatch" => Fault::Refuse,
            _ if is_invalid && is_step(operation) => Fault::Error("ValidationException"),
            _ => Fault::None,
        });
        assert_eq!(hand(&sender, &message).await, [0]);
        let progress = scene.found(id).await.map(|delivery| delivery.progress);
        assert_eq!(progress.map(|progress| (progress.status, progress.attempts.len())), standing);
        proxy.set_fault(Fault::None);
        scene.outlast_leases();
        assert_eq!(hand(&sender, &message).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    }
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).count().await, 0);
}

/// Divides the delays of specification 6.8.1 to a second or two. Those of two are waited for in the table, the others in
/// the queue.
const TIME_SCALE: u32 = 43_200;
const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };

#[tokio::test(flavor = "multi_thread")]
async fn the_attempts_follow_each_other_as_specified_and_then_the_endpoint_is_off() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(500).await, uuid(5).into());
    let (endpoint, secret) = stack.endpoint(user, &receiver.url).await;
    let (clock, begun) = (SystemClock::new(), Instant::now());
    let begun_at = clock.now();
    let _workers = stack.workers_in_real_time(to_loopback(TIME_SCALE)).await;
    stack.queue(Queue::Feed).send(&[sale(1, user).to_string()]).await;

    let id = delivery_id(uuid(1).into(), endpoint.id);
    let posts = receiver.received(EXHAUSTED.1).await;
    let delivery = stack.delivery_as(id, Status::Failed).await;
    assert_eq!(delivery.progress.failure, Some(Failure::Unacknowledged));
    let statuses: Vec<_> = delivery.progress.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(500); EXHAUSTED.1]);

    for (delay, pair) in DELAYS_SECONDS.map(|delay| delay.div_ceil(TIME_SCALE)).into_iter().zip(posts.windows(2)) {
        let waited = pair[1].at - pair[0].at;
        assert!(waited >= Duration::from_secs(delay.into()), "{waited:?} instead of {delay} s");
    }
    for one in &posts {
        assert_eq!((one.id(), one.header("webhook-id")), (&*id.to_string(), &*id.to_string()));
        assert_eq!((one.header("x-service-event"), &*one.body), ("listing.sold", delivery.body.as_bytes()));
        assert_eq!(one.header("x-service-event-id"), delivery.event_id.unwrap().to_string());
        assert!(!one.headers.contains_key("x-service-test") && one.json()["test"].is_null());
        assert_eq!(one.json()["id"], id.to_string());
        assert_eq!(one.signed_with(&secret), BOTH_VALID);
    }
    assert_each_tells_when_it_was_sent(&posts, begun, begun_at);

    assert_eq!(stack.endpoint_of(user).await.switch, OFF_BY_FAILURES);
    stack.queue(Queue::Notices).wait_for_count(2).await;
    let [EndpointNotice::Failing(_), EndpointNotice::Disabled(notice)] = &stack.take_all_notices().await[..] else {
        panic!("not a warning and a notice of the switch-off")
    };
    let last = delivery.progress.attempts.last().unwrap();
    assert_eq!((notice.event, notice.last_status), (Some(EventKind::ListingSold), last.status));
    assert_eq!(*notice, DisabledNotice::new(&endpoint, &delivery, last, notice.disabled_at));
    assert!(notice.disabled_at >= delivery.progress.attempts.last().unwrap().at);
}

/// Asserts that each attempt's headers carry the time of that attempt, not of the first one. `begun` and `begun_at`
/// are the same moment on two clocks.
fn assert_each_tells_when_it_was_sent(posts: &[Received], begun: Instant, begun_at: Timestamp) {
    let sent_at = |one: &Received| {
        let sent_at: i64 = one.header("x-service-timestamp").parse().unwrap();
        assert_eq!((one.header("webhook-timestamp"), one.header("accept")), (&*sent_at.to_string(), "*/*"));
        let arrived_at = begun_at.seconds() + i64::try_from((one.at - begun).as_secs()).unwrap();
        assert!((arrived_at - 2..=arrived_at + 2).contains(&sent_at), "sent at {sent_at}, arrived at {arrived_at}");
        sent_at
    };
    let sent_at: Vec<i64> = posts.iter().map(sent_at).collect();
    assert!(sent_at.is_sorted() && sent_at.first() < sent_at.last(), "{sent_at:?}");
}
