//! Receivers that hang must not delay anybody else.

use std::time::Duration;

use admin::webhooks::NewEndpoint;
use guard::Policy;
use local::workers::SenderConfig;
use platform::resources::Queue;
use tests::{Answer, Receiver, Stack, hand, message, sale, uuid};
use types::event::EventKind;
use types::ids::UserId;
use webhook::transport::{Reach, Transport};
use webhooks::delivery::{Delivery, Dispatch, Lane, Progress, Status};
use webhooks::share::PLACES;
use webhooks::{Call, Schedule, delivery_id};

use super::Scene;

const HANGING_ACCOUNTS: u128 = 10;
const ENDPOINTS: u128 = 10;
const EVENTS: u128 = 10;
const HEALTHY_ENDPOINTS: u128 = 50;
/// The time that a receiver has to respond. It is long, so that the order of events does not depend on the speed of the
/// machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

fn patient() -> SenderConfig {
    let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
    let transport = Transport::with_deadline(reach, RESPONSE_TIMEOUT).unwrap();
    SenderConfig { transport, schedule: Schedule::default() }
}

/// Adds ten endpoints to an account. Each has a path of its own.
async fn ten_endpoints(stack: &Stack, user_id: UserId, url: &str) {
    for number in 0..ENDPOINTS {
        let new = NewEndpoint { user_id, url: format!("{url}/{number}"), events: [EventKind::ListingSold].into() };
        stack.webhooks().add(new).await.unwrap();
    }
}

/// Stores a delivery whose first attempt failed, and sends the message for the second.
async fn retry(stack: &Stack, event: u128, user: UserId) {
    let (endpoint, now) = (stack.endpoint_of(user).await, stack.now());
    let id = delivery_id(uuid(event).into(), endpoint.id);
    let progress = Progress { failed_attempts: 1, ..Progress::new(id, Status::Pending, now, now) };
    let delivery = Delivery {
        id,
        endpoint_id: endpoint.id,
        account_id: user,
        event: EventKind::ListingSold,
        is_test: false,
        created_at: now,
        body: "{}".to_owned(),
        progress,
    };
    let admin = stack.webhooks();
    admin.store.put_delivery(&delivery).await.unwrap();
    admin.queues.call_once(Lane::Retry, Call::new(Dispatch::next_of(&delivery), 0)).await.unwrap();
}

/// Ten accounts with ten endpoints that never respond have a thousand deliveries in the queues. Behind these, fifty
/// other accounts have first attempts and retries.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_hang_delay_neither_first_attempts_nor_retries_of_others() {
    let (stack, healthy) = (Stack::new().await, Receiver::answering(204).await);
    let mut hanging = Vec::new();
    for account in 0..HANGING_ACCOUNTS {
        let (receiver, user) = (Receiver::start(|_, _| Answer::Hang).await, UserId::from(uuid(1_000 + account)));
        ten_endpoints(&stack, user, &receiver.url).await;
        let events: Vec<_> = (0..EVENTS).map(|event| sale(10_000 + 100 * account + event, user)).collect();
        stack.fan_out(&events).await;
        hanging.push(receiver);
    }
    for other in 0..HEALTHY_ENDPOINTS {
        let user = uuid(100 + other).into();
        let (endpoint, _) = stack.endpoint(user, &healthy.url).await;
        stack.prove(&endpoint).await;
        stack.fan_out(&[sale(other, user)]).await;
        retry(&stack, 500 + other, user).await;
    }

    let _workers = stack.workers_sending(patient()).await;
    healthy.received(2 * usize::try_from(HEALTHY_ENDPOINTS).unwrap()).await;
    // By then no attempt has ended that hangs, and no account has had more of them than it has places.
    for receiver in &hanging {
        let mut paths: Vec<_> = receiver.so_far().into_iter().map(|attempt| attempt.path).collect();
        assert!(paths.len() <= PLACES, "{paths:?}");
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), receiver.so_far().len(), "two attempts to one endpoint: {paths:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_took_a_second_stays_in_the_slow_lane_for_a_minute() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let [first, retry, slow] = Queue::LANES.map(|queue| scene.stack.queue(queue));
    let (first, retry, slow) = (first.await, retry.await, slow.await);
    let held = scene.event(1).await;
    let (sender, first_message) = (scene.stack.sender(), [scene.stack.next_message(held).await]);
    let responded = async {
        scene.stack.endpoint_when(scene.user, |endpoint| endpoint.slow_until.is_some()).await;
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &first_message), responded);
    assert_eq!(scene.standing(held).await, (Status::Delivered, 1));
    first.purge().await;

    // Its next delivery takes the slow lane, and so does one whose message is in another lane already.
    let late = scene.stored(2).await;
    scene.event(3).await;
    assert_eq!([first.count().await, retry.count().await, slow.count().await], [0, 0, 2]);
    slow.purge().await;
    for lane in [Lane::First, Lane::Retry] {
        let message = message(lane, &scene.stack.next_message(late).await.body.unwrap());
        assert_eq!(hand(&sender, &[message]).await, [0; 0]);
    }
    assert_eq!((slow.count().await, scene.receiver.so_far().len()), (2, 1));
    assert_eq!(hand(&sender, &slow.take(2).await).await, [0; 0]);
    assert_eq!(scene.receiver.so_far().len(), 2);
    assert!(!scene.stack.endpoint_of(scene.user).await.is_prompt, "a minute must pass");

    scene.wait(60);
    let last = scene.event(4).await;
    assert_eq!(hand(&sender, &slow.take(1).await).await, [0; 0]);
    assert_eq!(scene.standing(last).await, (Status::Delivered, 1));
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_keeps_the_slow_lane_waiting_stays_there_for_another_minute() {
    let scene = Scene::with(|_| Answer::Held(204)).await;
    let marked_until = scene.stack.now().plus_millis(60_000);
    scene.stack.webhooks().store.mark_slow(scene.user, scene.endpoint.id, marked_until).await.unwrap();
    let id = scene.event(1).await;
    let (slow, sender) = (scene.stack.queue(Queue::WebhooksSlow).await, scene.stack.sender());
    let message = slow.take(1).await;
    scene.wait(50);
    let marked_again = async {
        scene.stack.endpoint_when(scene.user, |endpoint| endpoint.slow_until > Some(marked_until)).await;
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), marked_again);
    assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
}
