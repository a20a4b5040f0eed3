//! Receivers that hang must not delay anybody else.

use std::time::Duration;

use admin::webhooks::NewEndpoint;
use guard::Policy;
use local::workers::SenderConfig;
use tests::{Answer, Receiver, Stack, hand, sale, uuid};
use types::event::EventKind;
use types::ids::{EndpointId, UserId};
use webhook::transport::{Reach, Transport};
use webhooks::delivery::{Delivery, Dispatch, Lane, Progress, Status};
use webhooks::drain::IN_FLIGHT;
use webhooks::{Call, Schedule, delivery_id};

use super::Scene;

const HANGING_ACCOUNTS: u128 = 10;
const ENDPOINTS: u128 = 10;
const EVENTS: u128 = 12;
const HEALTHY_ENDPOINTS: u128 = 50;
/// The time that a receiver has to respond. It is long, so that the order of events does not depend on the speed of the
/// machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

fn patient() -> SenderConfig {
    let reach = Reach { policy: Policy::with_loopback(), ..Reach::public() };
    let transport = Transport::with_deadline(reach, RESPONSE_TIMEOUT).unwrap();
    SenderConfig { transport, schedule: Schedule::default() }
}

/// Adds an endpoint for sales.
async fn endpoint(stack: &Stack, user_id: UserId, url: String) -> EndpointId {
    let new = NewEndpoint { user_id, url, events: [EventKind::ListingSold].into() };
    stack.webhooks().add(new).await.unwrap().0.id
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
    stack.webhooks().store.put_delivery(&delivery).await.unwrap();
    stack.lanes().call_once(Lane::Retry, Call::new(Dispatch::next_of(&delivery), 0)).await.unwrap();
}

/// Ten accounts with ten endpoints that never respond have more than a thousand deliveries in the queues. Behind these,
/// fifty other accounts have first attempts and retries.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_hang_delay_neither_first_attempts_nor_retries_of_others() {
    let (stack, healthy) = (Stack::new().await, Receiver::answering(204).await);
    let mut hanging = Vec::new();
    for account in 0..HANGING_ACCOUNTS {
        let (receiver, user) = (Receiver::start(|_, _| Answer::Hang).await, UserId::from(uuid(1_000 + account)));
        for number in 0..ENDPOINTS {
            endpoint(&stack, user, format!("{}/{number}", receiver.url)).await;
        }
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
    // By then no attempt has ended that hangs, and no endpoint has had more of them than a drain makes.
    for receiver in &hanging {
        for number in 0..ENDPOINTS {
            let path = format!("/{number}");
            let attempts = receiver.so_far().into_iter().filter(|attempt| attempt.path == path).count();
            assert!(attempts <= IN_FLIGHT, "{attempts} attempts to {path}");
        }
    }
}

/// The drain of an account has a hundred deliveries of one endpoint that hangs. A new endpoint and a test of it do not
/// wait behind them.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_endpoint_is_served_beside_a_sibling_that_hangs() {
    let (stack, user) = (Stack::new().await, UserId::from(uuid(5)));
    let (hanging, healthy) = (Receiver::start(|_, _| Answer::Hang).await, Receiver::answering(204).await);
    endpoint(&stack, user, hanging.url.clone()).await;
    stack.fan_out(&(0..100).map(|event| sale(1_000 + event, user)).collect::<Vec<_>>()).await;
    let _workers = stack.workers_sending(patient()).await;
    hanging.received(IN_FLIGHT).await;

    let new = endpoint(&stack, user, healthy.url.clone()).await;
    let test = stack.webhooks().test(new, None).await.unwrap();
    stack.fan_out(&[sale(1, user)]).await;
    healthy.received(2).await;
    for id in [test, delivery_id(uuid(1).into(), new)] {
        stack.delivery_as(id, Status::Delivered).await;
    }
    assert_eq!(hanging.so_far().len(), IN_FLIGHT, "none of the attempts that hang has ended");
}

/// A hundred deliveries wait of which one attempt in ten takes long. No other waits for those.
#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_takes_long_delays_no_others_of_its_endpoint() {
    let stack = Stack::new().await;
    let receiver = Receiver::start(|number, _| if number == 5 { Answer::Held(204) } else { Answer::Status(204) }).await;
    let (endpoint, _) = stack.endpoint(uuid(5).into(), &receiver.url).await;
    stack.prove(&endpoint).await;
    stack.fan_out(&(0..100).map(|event| sale(1_000 + event, uuid(5).into())).collect::<Vec<_>>()).await;
    let _workers = stack.workers_sending(patient()).await;
    receiver.received(100).await;
    receiver.release_all();
    for event in 0..100 {
        stack.delivery_as(delivery_id(uuid(1_000 + event).into(), endpoint.id), Status::Delivered).await;
    }
    assert_eq!(receiver.so_far().len(), 100);
}

/// An attempt that hangs for three seconds is enough. Its endpoint's next deliveries wait for the drain, whichever lane
/// they come from, and a prompt answer ends that.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_is_left_to_the_drain_until_it_responds_promptly() {
    let scene = Scene::with(|number| if number == 1 { Answer::Held(204) } else { Answer::Status(204) }).await;
    let held = scene.event(1).await;
    let (sender, message) = (scene.stack.sender(), [scene.stack.next_message(held).await]);
    let marked = async {
        scene.stack.endpoint_when(scene.user, |endpoint| !endpoint.is_prompt).await;
        scene.receiver.release_all();
    };
    tokio::join!(hand(&sender, &message), marked);
    assert_eq!(scene.standing(held).await, (Status::Delivered, 1));

    let (first, second) = (scene.event(2).await, scene.stored(3).await);
    for id in [first, second] {
        assert_eq!(hand(&sender, &[scene.stack.next_message(id).await]).await, [0; 0]);
        assert_eq!(scene.standing(id).await, (Status::Pending, 0));
    }
    assert_eq!(scene.receiver.so_far().len(), 1);
    scene.stack.drain(scene.user).await;
    for id in [first, second] {
        assert_eq!(scene.standing(id).await, (Status::Delivered, 1));
    }
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
}
