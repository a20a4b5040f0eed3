//! Receivers that hang must not delay anybody else.

use admin::webhooks::NewEndpoint;
use common::event::EventKind;
use common::ids::{EndpointId, UserId};
use tests::{Answer, Receiver, Stack, delivery, patient, sale, uuid};
use webhooks::delivery::{Dispatch, Lane, Status};
use webhooks::drain::IN_FLIGHT;
use webhooks::promptness::SLOW_FOR_SECONDS;
use webhooks::{QueueMessage, delivery_id};

use super::Scene;

const HANGING_ACCOUNTS: u128 = 5;
/// The endpoints of each. One more is added later.
const ENDPOINTS: u128 = 9;
const EVENTS: u128 = 12;
const HEALTHY_ENDPOINTS: usize = 20;

/// Adds an endpoint for sales.
async fn endpoint(stack: &Stack, user_id: UserId, url: String) -> EndpointId {
    let new = NewEndpoint { user_id, url, events: [EventKind::ListingSold].into() };
    stack.webhooks().add(new).await.unwrap().0.id
}

/// Five accounts with nine endpoints that never respond have hundreds of deliveries in the queues. Behind these, twenty
/// other accounts have first attempts and retries. Then a sibling of the endpoints that hang is added.
#[tokio::test(flavor = "multi_thread")]
async fn accounts_that_hang_delay_neither_others_nor_a_new_endpoint_of_their_own() {
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
    for other in 0..HEALTHY_ENDPOINTS as u128 {
        let (endpoint, _) = stack.endpoint(uuid(100 + other).into(), &healthy.url).await;
        stack.prove(&endpoint).await;
        stack.fan_out(&[sale(other, endpoint.account_id)]).await;
        let mut retry = delivery(500 + other, &endpoint, Status::Pending, stack.now());
        retry.progress.failed_attempts = 1;
        stack.lanes().send_one(Lane::Retry, QueueMessage::Attempt(Dispatch::next_of(&retry)), 0).await.unwrap();
        stack.put_deliveries(&[retry]).await;
    }

    let _workers = stack.workers_sending(patient()).await;
    healthy.received(2 * HEALTHY_ENDPOINTS).await;
    // The drain of that account is busy with attempts that hang.
    hanging[0].received(IN_FLIGHT).await;
    let user = uuid(1_000).into();
    let new = endpoint(&stack, user, healthy.url.clone()).await;
    let test = stack.webhooks().test(new, None).await.unwrap();
    stack.fan_out(&[sale(1_000, user)]).await;
    healthy.received(2 * HEALTHY_ENDPOINTS + 2).await;
    for id in [test, delivery_id(uuid(1_000).into(), new)] {
        stack.delivery_as(id, Status::Delivered).await;
    }
    // By then no attempt has ended that hangs, and no endpoint has had more of them than a drain makes.
    for receiver in &hanging {
        for number in 0..ENDPOINTS {
            let path = format!("/{number}");
            let attempts = receiver.so_far().into_iter().filter(|attempt| attempt.path == path).count();
            assert!(attempts <= IN_FLIGHT, "{attempts} attempts to {path}");
        }
    }
}

/// An attempt that hangs for three seconds is enough. Its endpoint's next deliveries wait for the drain, whichever lane
/// they come from, until it has been prompt after five minutes.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_hangs_is_left_to_the_drain_until_it_responds_promptly() {
    let scene = Scene::with(|number| if number == 1 { Answer::Held(204) } else { Answer::Status(204) }).await;
    let (held, message) = scene.sent(1).await;
    let marked = async {
        scene.stack.endpoint_when(scene.user, |endpoint| !endpoint.is_prompt).await;
        scene.receiver.release_all();
    };
    tokio::join!(scene.handle(&message), marked);
    assert_eq!(scene.standing(held).await, (Status::Delivered, 1));

    let ids = [scene.event(2).await, scene.stored(3).await];
    for id in ids {
        scene.attempt(id).await;
        assert_eq!(scene.standing(id).await, (Status::Pending, 0));
    }
    assert_eq!(scene.receiver.so_far().len(), 1);
    scene.stack.drain(scene.user).await;
    scene.assert_delivered(&ids).await;
    assert!(!scene.stack.endpoint_of(scene.user).await.is_prompt, "it would hang again at once");
    scene.wait(SLOW_FOR_SECONDS);
    let last = scene.event(4).await;
    scene.attempt(last).await;
    scene.stack.drain(scene.user).await;
    assert_eq!(scene.standing(last).await, (Status::Delivered, 1));
    assert!(scene.stack.endpoint_of(scene.user).await.is_prompt);
}
