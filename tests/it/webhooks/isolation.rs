//! A receiver that hangs must not delay anybody else.

use std::time::Duration;

use guard::Policy;
use local::workers::SenderConfig;
use platform::resources::Queue;
use tests::{Answer, Receiver, Stack, hand, sale, uuid};
use types::ids::UserId;
use webhook::transport::{Reach, Transport};
use webhooks::Schedule;
use webhooks::delivery::Status;

use super::Scene;

/// More deliveries than the first lane has instances for, even with one message per batch.
const HANGING_DELIVERIES: u128 = 2_000;
const HEALTHY_ENDPOINTS: u128 = 50;
/// The time that a receiver has to answer. It is long, so that the order of events does not depend on the speed of
/// the machine.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

fn patient() -> SenderConfig {
    let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
    let transport = Transport::with_deadline(reach, ANSWER_TIMEOUT).unwrap();
    SenderConfig { transport, schedule: Schedule::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_hangs_delays_nobody_else() {
    let stack = Stack::new().await;
    let (hanging, healthy) = (Receiver::start(|_, _| Answer::Hang).await, Receiver::answering(204).await);
    let user: UserId = uuid(5).into();
    let (endpoint, _) = stack.endpoint(user, &hanging.url).await;
    let events: Vec<_> = (0..HANGING_DELIVERIES).map(|event| sale(event, user)).collect();
    for some in events.chunks(100) {
        stack.fan_out(some).await;
    }
    let mut behind = Vec::new();
    for other in 0..HEALTHY_ENDPOINTS {
        let user = uuid(100 + other).into();
        stack.endpoint(user, &healthy.url).await;
        behind.push(sale(HANGING_DELIVERIES + other, user));
    }
    stack.fan_out(&behind).await;

    let _workers = stack.workers_sending(patient()).await;
    healthy.received(behind.len()).await;
    // By then none of the hanging attempts has ended.
    let admin = stack.webhooks();
    let (mut deliveries, mut from) = (0, None);
    loop {
        let page = admin.deliveries(endpoint.id, from).await.unwrap();
        deliveries += page.deliveries.len();
        for delivery in &page.deliveries {
            assert_eq!(delivery.progress.attempts, []);
        }
        from = page.next;
        if from.is_none() {
            break;
        }
    }
    assert_eq!(deliveries, events.len());
    stack.endpoint_when(user, |endpoint| endpoint.slow_until.is_some()).await;
    let [first, retry, slow] = Queue::LANES.map(|lane| stack.queue(lane));
    let (first, retry, slow) = (first.await, retry.await, slow.await);
    assert_eq!(first.visible_count().await, 0);
    // Each fan-out of a hundred lets ten into the first lane. The others are in the retry lane, or went on to the slow
    // lane once the endpoint was known to be slow.
    let waiting = retry.count().await + slow.count().await;
    assert!(waiting >= u64::try_from(HANGING_DELIVERIES / 10 * 9).unwrap(), "{waiting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_took_a_second_stays_in_the_slow_lane_for_a_minute() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let [first, slow] = [Queue::WebhooksFirst, Queue::WebhooksSlow].map(|queue| scene.stack.queue(queue));
    let (first, slow) = (first.await, slow.await);
    let (held, before) = (scene.event(1).await, scene.event(2).await);
    let (sender, message) = (scene.stack.sender(), [scene.stack.next_message(held).await]);
    let answered = async {
        scene.stack.endpoint_when(scene.user, |endpoint| endpoint.slow_until.is_some()).await;
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), answered);
    assert_eq!(scene.standing(held).await, (Status::Delivered, 1));

    assert_eq!(first.take(2).await.len(), 2);
    let message = [scene.stack.next_message(before).await];
    assert_eq!(hand(&sender, &message).await, [0; 0]);
    assert_eq!(scene.standing(before).await, (Status::Pending, 0));
    scene.event(3).await;
    assert_eq!((first.count().await, slow.count().await), (0, 2));
    assert_eq!(hand(&sender, &slow.take(2).await).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 3);
    scene.wait(60);
    scene.event(4).await;
    assert_eq!((first.count().await, slow.count().await), (1, 0));
}
