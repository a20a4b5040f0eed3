//! The same message, many times.
//!
//! An acknowledgement that comes after another sender has taken the attempt over.
//!
//! Messages that cannot be read, among others that can.
//!
//! Steps that the store takes for invalid: their messages do not come again and again, and nothing waits for them.
//!
//! What the last failure does, and that it does it only once.
//!
//! Seven attempts, each at its time.

use std::collections::BTreeSet;

use aws_lambda_events::sqs::SqsMessage;
use aws_sdk_sqs::types::QueueAttributeName::VisibilityTimeout;
use platform::resources::Queue;
use tests::{
    Answer, DeadLetter, Fault, Received, Receiver, SignatureValidity, Stack, hand, message, sale, to_loopback, uuid,
};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};
use types::clock::{Clock, SystemClock};
use types::ids::DeliveryId;
use types::timestamp::Timestamp;
use webhooks::delivery::{Failure, Lane, Status};
use webhooks::delivery_id;
use webhooks::endpoint::Switch;
use webhooks::notice::{DisabledNotice, EndpointNotice, disabled_notice_id};

use super::{OFF_BY_FAILURES, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_message_at_many_senders_at_once_make_one_post() {
    for copies in [2, 50] {
        let scene = Scene::with(|_| Answer::Held(204)).await;
        let id = scene.event(1).await;
        let message = [scene.stack.next_message(id).await];
        let senders = [scene.stack.sender(), scene.stack.sender()];
        let mut hands = JoinSet::new();
        for sender in senders.iter().cycle().take(copies) {
            let (sender, message) = (sender.clone(), message.clone());
            hands.spawn(async move { hand(&sender, &message).await });
        }
        // All senders give up except the one whose POST is open.
        for _ in 1..copies {
            assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
        }
        assert_eq!(scene.receiver.received(1).await.len(), 1);
        // Their messages are not lost: each has sent a copy that waits until the open attempt must have ended.
        let retry = scene.stack.queue(Queue::WebhooksRetry).await;
        assert_eq!((retry.count().await, retry.visible_count().await), (copies as u64 - 1, 0));
        scene.receiver.release_all();
        assert_eq!(hands.join_next().await.unwrap().unwrap(), [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
        scene.outlast_leases();
        assert_eq!(hand(&scene.stack.sender(), &message).await, [0; 0]);
        assert_eq!(scene.receiver.so_far().len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn copies_of_a_message_in_one_batch_make_one_post_and_one_recorded_attempt() {
    for (status, standing) in [(204, Status::Delivered), (500, Status::Pending)] {
        let scene = Scene::answering(status).await;
        let id = scene.event(1).await;
        let message = scene.stack.next_message(id).await;
        let sender = scene.stack.sender();
        for _ in 0..2 {
            assert_eq!(hand(&sender, &vec![message.clone(); 10]).await, [0; 0]);
            scene.outlast_leases();
        }
        assert_eq!(scene.standing(id).await, (standing, 1));
        assert_eq!(scene.receiver.so_far().len(), 1);
    }
}

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

const UNREADABLE: [&str; 4] = ["null", "{", r#"{"type":"attempt"}"#, r#"{"type":"recall"}"#];

#[tokio::test(flavor = "multi_thread")]
async fn the_unreadable_messages_of_a_batch_become_dead_letters_at_once_with_the_reason() {
    let scene = Scene::answering(204).await;
    let (mut batch, mut readable) = (Vec::new(), Vec::new());
    // Two deliveries per endpoint: more than four in a batch would change lanes.
    for user in [10, 20, 30] {
        let scene = scene.other(user).await;
        for event in [user, user + 1] {
            let id = scene.event(event).await;
            batch.push(scene.stack.next_message(id).await);
            readable.push(id);
        }
    }
    for (position, body) in [1, 3, 5, 9].into_iter().zip(UNREADABLE) {
        batch.insert(position, message(Lane::First, body));
    }
    assert_eq!(hand(&scene.stack.sender(), &batch).await, [0; 0]);
    let letters = scene.stack.queue(Queue::WebhooksDead).await.take_letters(UNREADABLE.len()).await;
    let bodies: BTreeSet<&str> = letters.iter().map(|letter| letter.body.as_str()).collect();
    assert_eq!(bodies, BTreeSet::from(UNREADABLE));
    let told = |letter: &DeadLetter| letter.attribute("defect").starts_with("unreadable message: ");
    assert!(letters.iter().all(told), "{letters:?}");
    for id in readable {
        assert_eq!((scene.standing(id).await, scene.posts(id).len()), ((Status::Delivered, 1), 1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_message_becomes_a_dead_letter_and_the_others_are_delivered_once() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(204).await, uuid(5).into());
    let (endpoint, _) = stack.endpoint(user, &receiver.url).await;
    let [first, dead] = [stack.queue(Queue::WebhooksFirst).await, stack.queue(Queue::WebhooksDead).await];
    // A message that is received twice would stay hidden longer than the test waits.
    first.set_attribute(VisibilityTimeout, "600").await;
    stack.fan_out(&[1, 2, 3, 4].map(|event| sale(event, user))).await;
    first.send("{").await;
    stack.fan_out(&[5, 6, 7, 8, 9].map(|event| sale(event, user))).await;
    let _workers = stack.workers().await;
    assert_eq!(dead.take(1).await[0].body.as_deref(), Some("{"));
    for event in 1..=9 {
        let delivery = stack.delivery_as(delivery_id(uuid(event).into(), endpoint.id), Status::Delivered).await;
        assert_eq!(delivery.progress.attempts.len(), 1);
    }
    first.wait_for_count(0).await;
    assert_eq!((receiver.so_far().len(), dead.count().await), (9, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_the_store_takes_for_invalid_becomes_a_dead_letter_with_the_reason_at_once() {
    let scene = Scene::answering(204).await;
    let [poison, other] = [scene.stored(1).await, scene.event(2).await];
    let [dead, retry] = [Queue::WebhooksDead, Queue::WebhooksRetry].map(|queue| scene.stack.queue(queue));
    let (dead, retry) = tokio::join!(dead, retry);
    let batch = [scene.stack.next_message(poison).await, scene.stack.next_message(other).await];
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let key: &'static str = poison.to_string().leak();
    proxy.plan(move |operation| if is_step(operation) { Fault::Invalid(key) } else { Fault::None });
    assert_eq!(hand(&sender, &batch).await, [0; 0]);

    let [letter] = &dead.take_letters(1).await[..] else { panic!("not one letter") };
    assert_eq!(Some(&letter.body), batch[0].body.as_ref());
    assert!(letter.attribute("defect").starts_with("invalid request: ValidationException"), "{letter:?}");
    assert_eq!((dead.count().await, retry.count().await), (0, 0));
    assert_eq!(scene.standing(other).await, (Status::Delivered, 1));

    // Its wake-up brings the delivery back. By then the store takes its steps.
    assert_eq!(scene.standing(poison).await, (Status::Pending, 0));
    proxy.set_fault(Fault::None);
    scene.stack.queue(Queue::WebhooksFirst).await.purge().await;
    scene.wait(5 * 60);
    scene.sweep_and_drain().await;
    assert_eq!(scene.standing(poison).await, (Status::Delivered, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_record_of_an_attempt_may_be_invalid_as_well() {
    for status in [204, 500] {
        let scene = Scene::answering(status).await;
        let (sender, proxy) = scene.stack.sender_behind_proxy().await;
        let message = [scene.stack.next_message(scene.event(1).await).await];
        let mut steps = 0;
        proxy.plan(move |operation| {
            steps += usize::from(is_step(operation));
            if is_step(operation) && steps == 2 { Fault::Error("ValidationException") } else { Fault::None }
        });
        assert_eq!(hand(&sender, &message).await, [0; 0], "{status}");
        assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 1, "{status}");
        assert_eq!(scene.receiver.so_far().len(), 1, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_whose_copy_cannot_be_sent_stays_in_its_queue() {
    let scene = Scene::answering(204).await;
    let (sender, proxy) = scene.stack.sender_behind_proxy().await;
    let message = [scene.stack.next_message(scene.event(1).await).await];
    proxy.plan(|operation| match operation {
        "SendMessageBatch" => Fault::Refuse,
        _ if is_step(operation) => Fault::Error("ValidationException"),
        _ => Fault::None,
    });
    assert_eq!(hand(&sender, &message).await, [0]);
    assert_eq!(scene.stack.queue(Queue::WebhooksDead).await.count().await, 0);
}

/// Returns whether a call may be a step of a delivery.
fn is_step(operation: &str) -> bool {
    matches!(operation, "PutItem" | "UpdateItem")
}

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

/// The specification's delays between attempts, in seconds.
const DELAYS_SECONDS: [u32; 6] = [30, 5 * 60, 30 * 60, 2 * 60 * 60, 6 * 60 * 60, 24 * 60 * 60];
/// Divides the delays to 1, 1, 1, 1, 2 and 5 seconds. The last two wait in the table, the others in the queue.
const TIME_SCALE: u32 = 20_000;
const BOTH_VALID: SignatureValidity = SignatureValidity { service: true, standard: true };

#[tokio::test(flavor = "multi_thread")]
async fn seven_attempts_follow_each_other_as_specified_and_then_the_endpoint_is_off() {
    let (stack, receiver, user) = (Stack::new().await, Receiver::answering(500).await, uuid(5).into());
    let (endpoint, secret) = stack.endpoint(user, &receiver.url).await;
    let (clock, begun) = (SystemClock::new(), Instant::now());
    let begun_at = clock.now();
    let _workers = stack.workers_in_real_time(to_loopback(TIME_SCALE)).await;
    stack.feed_queue().send(&[sale(1, user).to_string()]).await;

    let id = delivery_id(uuid(1).into(), endpoint.id);
    let posts = receiver.received(7).await;
    let delivery = stack.delivery_as(id, Status::Failed).await;
    assert_eq!(delivery.progress.failure, Some(Failure::Unacknowledged));
    let statuses: Vec<_> = delivery.progress.attempts.iter().map(|attempt| attempt.status).collect();
    assert_eq!(statuses, [Some(500); 7]);

    assert_none_is_early(&posts);
    for one in &posts {
        assert_eq!((one.id(), one.header("webhook-id")), (&*id.to_string(), &*id.to_string()));
        assert_eq!((one.header("x-service-event"), &*one.body), ("listing.sold", delivery.body.as_bytes()));
        assert_eq!(one.json()["id"], id.to_string());
        assert_eq!(one.signed_with(&secret), BOTH_VALID);
    }
    assert_each_tells_when_it_was_sent(&posts, begun, begun_at);

    assert_eq!(stack.endpoint_of(user).await.switch, OFF_BY_FAILURES);
    stack.queue(Queue::Notices).await.wait_for_count(2).await;
    let [EndpointNotice::Failing(warning), EndpointNotice::Disabled(notice)] = &stack.take_all_notices().await[..]
    else {
        panic!("not a warning and a notice of the switch-off")
    };
    assert_eq!((warning.delivery_id, warning.failed_attempts), (id, 4));
    assert_eq!(warning.failing_since, delivery.progress.attempts[0].at);
    let expected = DisabledNotice::new(&endpoint, id, notice.disabled_at);
    assert_eq!(*notice, expected);
    assert!(notice.disabled_at >= delivery.progress.attempts[6].at);

    stack.feed_queue().send(&[sale(2, user).to_string()]).await;
    stack.delivery_as(delivery_id(uuid(2).into(), endpoint.id), Status::Held).await;
    stack.queue(Queue::WebhooksFirst).await.wait_for_count(0).await;
    assert_eq!(receiver.so_far().len(), 7);
    assert_eq!(stack.take_notices().await, []);
}

fn assert_none_is_early(posts: &[Received]) {
    for (delay, pair) in DELAYS_SECONDS.into_iter().zip(posts.windows(2)) {
        let (waited, delay) = (pair[1].at - pair[0].at, Duration::from_secs(delay.div_ceil(TIME_SCALE).into()));
        assert!(waited >= delay, "{waited:?} instead of {delay:?}");
    }
}

/// Asserts that each attempt's headers carry the time of that attempt, not of the first one. `begun` and `begun_at`
/// are the same moment on two clocks.
fn assert_each_tells_when_it_was_sent(posts: &[Received], begun: Instant, begun_at: Timestamp) {
    let sent_at = |one: &Received| {
        let sent_at: i64 = one.header("x-service-timestamp").parse().unwrap();
        assert_eq!(one.header("webhook-timestamp"), sent_at.to_string());
        let arrived_at = begun_at.seconds() + i64::try_from((one.at - begun).as_secs()).unwrap();
        assert!((arrived_at - 2..=arrived_at + 2).contains(&sent_at), "sent at {sent_at}, arrived at {arrived_at}");
        sent_at
    };
    let sent_at: Vec<i64> = posts.iter().map(sent_at).collect();
    assert!(sent_at.is_sorted() && sent_at.first() < sent_at.last(), "{sent_at:?}");
}
