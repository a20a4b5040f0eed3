//! Seven attempts, each at its time.

use platform::resources::Queue;
use tests::{Received, Receiver, SignatureValidity, Stack, sale, to_loopback, uuid};
use tokio::time::{Duration, Instant};
use types::clock::{Clock, SystemClock};
use types::timestamp::Timestamp;
use webhooks::delivery::{Failure, Status};
use webhooks::delivery_id;
use webhooks::notice::DisabledNotice;
use webhooks::notice::EndpointNotice;

use super::OFF_BY_FAILURES;

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
